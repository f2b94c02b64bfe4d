"""The exact dot product of two MX blocks."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.lanes import LanePlan
from poblano.arith.operand import operand_layout
from poblano.component import Component

__all__ = ["DotProduct"]


class DotProduct(Component):
    """Multiplies the lanes of two operands and sums them exactly over the beats of a block.

    Latency `multiply_stages + sum_stages` cycles from the last beat; one beat a cycle; no
    backpressure. Beats of a block may have gaps between them, other blocks' beats may not come
    between them.

    Parameters
    ----------
    formats:
        Format pairs of the unit.
    multiply_stages, sum_stages:
        Registers, 0 or 1, after the multipliers and after the sum.

    Members
    -------
    a, b:
        The operands' lanes.
    mode:
        Index into `modes(formats)`.
    first, last, valid:
        Whether this beat is the first and the last of its block, and whether there is a beat.
    sum, exponent:
        The block's dot product, exact: sum * 2**exponent.
    nan:
        An element or a scale of the block was NaN, or infinities met their match.
    infinity, infinity_sign:
        Where a format has infinities: the dot product is infinite, with this sign.
    sum_valid:
        The block's last beat was presented a latency ago.

    Raises
    ------
    ValueError
        If a number of stages is not 0 or 1.
    """

    def __init__(
        self, *, formats: tuple[str, ...], multiply_stages: int = 0, sum_stages: int = 0
    ) -> None:
        for name, stages in (("multiply_stages", multiply_stages), ("sum_stages", sum_stages)):
            if stages not in (0, 1):
                raise ValueError(f"{name} must be 0 or 1, not {stages}")
        self.plan = LanePlan(formats)
        self.multiply_stages = multiply_stages
        self.sum_stages = sum_stages
        layout = operand_layout(formats)
        infinity = {"infinity": Out(1), "infinity_sign": Out(1)} if self.plan.has_infinity else {}
        super().__init__(
            {
                "a": In(layout),
                "b": In(layout),
                "mode": In(self.plan.mode_width),
                "first": In(1),
                "last": In(1),
                "valid": In(1),
                "sum": Out(signed(self.plan.sum_width)),
                "exponent": Out(Shape.cast(self.plan.sum_exponent_range)),
                "nan": Out(1),
                **infinity,
                "sum_valid": Out(1),
            }
        )
