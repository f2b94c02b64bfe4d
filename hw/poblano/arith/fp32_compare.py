"""Comparison of binary32 numbers, and the larger and the smaller of two."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_fields import canonical, is_nan
from poblano.component import Component

__all__ = ["Fp32Compare"]


class Fp32Compare(Component):
    """Compares two binary32 numbers.

    Combinational.

    Members
    -------
    a, b:
        The numbers.
    less, equal:
        Whether a < b and a = b, as IEEE 754 says: -0 equals +0.
    unordered:
        Whether one is a NaN; then neither `less` nor `equal`.
    maximum, minimum:
        The larger and the smaller: -0 is below +0, and a NaN on either side gives 0x7FC00000.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(32),
                "b": In(32),
                "less": Out(1),
                "equal": Out(1),
                "unordered": Out(1),
                "maximum": Out(32),
                "minimum": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        # Magnitudes compare as integers. `below` orders -0 below +0, as maximum and minimum do.
        m = Module()
        a, b = self.a, self.b
        smaller, same, below, zeros = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            smaller.eq(a[:31] < b[:31]),
            same.eq(a == b),
            zeros.eq(~(a[:31] | b[:31]).any()),
            below.eq(
                Mux(a[31] ^ b[31], a[31], Mux(a[31], ~(smaller | same), smaller)),
            ),
            self.unordered.eq(is_nan(a) | is_nan(b)),
            self.less.eq(below & ~zeros & ~self.unordered),
            self.equal.eq((same | zeros) & ~self.unordered),
            self.maximum.eq(canonical(Mux(below, b, a), self.unordered)),
            self.minimum.eq(canonical(Mux(below, a, b), self.unordered)),
        ]
        return m
