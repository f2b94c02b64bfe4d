"""Rounds binary32 to BF16."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano_golden.formats import BF16, FP32

__all__ = ["Fp32ToBf16"]

_DROPPED = FP32.element_bits - BF16.element_bits


class Fp32ToBf16(Component):
    """Rounds one binary32 number to BF16.

    IEEE 754 to nearest, ties to even; subnormals are kept, overflow gives infinity, the sign of
    zero is kept, and every NaN becomes 0x7FC0. Combinational.

    Members
    -------
    i:
        The binary32 number.
    o:
        The BF16 number.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(FP32.element_bits), "o": Out(BF16.element_bits)})

    def elaborate(self, platform: object) -> Module:
        # The formats share the exponent, so one is added to the kept bits as to an integer: a
        # carry out of the fraction enters the exponent, and out of the largest number infinity.
        m = Module()
        dropped, kept, sign = self.i[:_DROPPED], self.i[_DROPPED:-1], self.i[-1]
        nan = Signal()
        up = Signal()
        magnitude = Signal(len(kept))
        m.d.comb += [
            nan.eq(self.i[FP32.mantissa_bits : -1].all() & self.i[: FP32.mantissa_bits].any()),
            up.eq(dropped[-1] & (dropped[:-1].any() | kept[0])),
            magnitude.eq(kept + up),
        ]
        quiet = BF16.mantissa_bits - 1
        m.d.comb += self.o.eq(
            Cat(
                magnitude[:quiet] & ~nan.replicate(quiet),
                magnitude[quiet:] | nan.replicate(len(magnitude) - quiet),
                sign & ~nan,
            )
        )
        return m
