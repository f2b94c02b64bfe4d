"""What the scale of a block, and its codes, depend on of one number."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.mx_encoding import QuantiserPlan
from poblano.component import Component
from poblano_golden.formats import FP32

__all__ = ["MxCandidate"]


class MxCandidate(Component):
    """Tells whether a number would raise its block's scale if it were the largest. Combinational.

    Parameters
    ----------
    formats:
        Names of the MX formats.

    Members
    -------
    exponent, fraction, sticky:
        The number: exponent field, leading bits of the fraction, whether a bit below is set.
    needed:
        Leading bits of the fraction that must be 1 to raise the scale.
    exact:
        Whether that is enough; else another bit must be set.
    before:
        High exponent bits one less than those of the largest number.
    raises:
        Whether it would raise the scale.
    nonzero:
        Whether the exponent field is not 0.
    distant:
        Whether the high exponent bits are not `before`.
    """

    def __init__(self, *, formats: tuple[str, ...]) -> None:
        self.plan = plan = QuantiserPlan(formats)
        super().__init__(
            {
                "exponent": In(FP32.exponent_bits),
                "fraction": In(plan.fraction_bits),
                "sticky": In(1),
                "needed": In(plan.deciding_bits),
                "exact": In(1),
                "before": In(FP32.exponent_bits - plan.near_bits),
                "raises": Out(1),
                "nonzero": Out(1),
                "distant": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        head = self.fraction[-self.plan.deciding_bits :]
        tail = self.fraction[: -self.plan.deciding_bits]
        follows = (head & ~self.needed).any() | tail.any() | self.sticky
        m.d.comb += [
            self.raises.eq((head | ~self.needed).all() & (self.exact | follows)),
            self.nonzero.eq(self.exponent.any()),
            self.distant.eq(self.exponent[self.plan.near_bits :] != self.before),
        ]
        return m
