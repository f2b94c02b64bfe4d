"""One unit of the tensor engine: block dot product, rounding, accumulation."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.lanes import LanePlan
from poblano.arith.operand import operand_layout
from poblano.component import Component

__all__ = ["TensorUnit"]


class TensorUnit(Component):
    """Adds the dot product of two MX blocks to a binary32 accumulator that lies outside.

    One beat a cycle, no backpressure. `poblano.arith.latency` says in which cycle, counted from
    the block's last beat, `accumulator` is read (`accumulator_latency`) and `result` can be read
    (`unit_latency`). The dot product is exact with both scales, rounded once to binary32
    (nearest even, subnormals kept, overflow to infinity); the sum is the binary32 sum.

    Parameters
    ----------
    formats:
        Format pairs of the unit.
    multiply_stages, sum_stages, round_stages, add_stages:
        Pipeline registers after each part; 0 is none. `add_stages` is at most 3, the others 1.

    Members
    -------
    a, b, mode, first_beat, last_beat, valid:
        A beat of a block, as `DotProduct` takes it.
    accumulator:
        The binary32 number to add to.
    result:
        accumulator + dot product, binary32.
    """

    def __init__(
        self,
        *,
        formats: tuple[str, ...],
        multiply_stages: int = 1,
        sum_stages: int = 1,
        round_stages: int = 1,
        add_stages: int = 2,
    ) -> None:
        self.plan = LanePlan(formats)
        layout = operand_layout(formats)
        super().__init__(
            {
                "a": In(layout),
                "b": In(layout),
                "mode": In(self.plan.mode_width),
                "first_beat": In(1),
                "last_beat": In(1),
                "valid": In(1),
                "accumulator": In(32),
                "result": Out(32),
            }
        )
