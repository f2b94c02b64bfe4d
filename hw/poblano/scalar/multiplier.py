"""A product of two 64-bit numbers in steps."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.scalar.instructions import REGISTER_WIDTH
from poblano.scalar.timing import MULTIPLY_STEPS

__all__ = ["ScalarMultiplier"]

_STEP = REGISTER_WIDTH // MULTIPLY_STEPS


class ScalarMultiplier(Component):
    """Computes a * b modulo 2**64 in `MULTIPLY_STEPS` cycles with a multiplier of 64 x 16 bits.

    Horner's rule: the highest 16 bits of b first. The product is there from the cycle after the
    last step until the next start.

    Members
    -------
    start, a, b:
        Begins a product; steps follow in the next cycles.
    last:
        The last step is done in this cycle.
    product:
        The product.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "a": In(REGISTER_WIDTH),
                "b": In(REGISTER_WIDTH),
                "last": Out(1),
                "product": Out(REGISTER_WIDTH),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        first = Signal(REGISTER_WIDTH)
        second = Signal(REGISTER_WIDTH)  # the part for the next step is at the top
        left = Signal(range(MULTIPLY_STEPS + 1))
        part = Signal(REGISTER_WIDTH)
        m.d.comb += [
            part.eq(first * second[-_STEP:]),
            self.last.eq(left == 1),
        ]
        with m.If(left != 0):
            m.d.sync += [
                self.product.eq((self.product << _STEP) + part),
                second.eq(second << _STEP),
                left.eq(left - 1),
            ]
        with m.If(self.start):
            m.d.sync += [
                first.eq(self.a),
                second.eq(self.b),
                self.product.eq(0),
                left.eq(MULTIPLY_STEPS),
            ]
        return m
