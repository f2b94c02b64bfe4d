"""Rounds binary32 to binary16."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import shift_right
from poblano.arith.fp32_fields import is_nan, unpack
from poblano.component import Component
from poblano_golden.formats import FP16, FP32

__all__ = ["Fp32ToFp16"]

_DROPPED = FP32.mantissa_bits - FP16.mantissa_bits
_LEAST = FP32.bias - FP16.bias + 1
"""Binary32's exponent field of binary16's least normal number."""


class Fp32ToFp16(Component):
    """Rounds one binary32 number to binary16.

    IEEE 754 to nearest, ties to even; subnormals are kept, overflow gives infinity, the sign of
    zero is kept, and every NaN becomes 0x7E00. Combinational.

    Members
    -------
    i:
        The binary32 number.
    o:
        The binary16 number.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(FP32.element_bits), "o": Out(FP16.element_bits)})

    def elaborate(self, platform: object) -> Module:
        # Below the least normal number the significand is shifted to that number's exponent. Its
        # leading bit, where there is one, adds 1 to the exponent, as rounding up may.
        m = Module()
        exponent, significand = unpack(m, self.i, "i")
        low = Signal()
        distance, above = Signal(range(_LEAST)), Signal(FP32.exponent_bits)
        m.d.comb += [
            low.eq(exponent < _LEAST),
            distance.eq(Mux(low, _LEAST - exponent, 0)),
            above.eq(Mux(low, 0, exponent - _LEAST)),
        ]
        shifted, lost = shift_right(m, significand, distance, "shifted")
        kept, dropped = shifted[_DROPPED:], shifted[:_DROPPED]
        up, nan, infinite = Signal(), Signal(), Signal()
        packed = Signal(FP16.mantissa_bits + FP32.exponent_bits)
        m.d.comb += [
            up.eq(dropped[-1] & (dropped[:-1].any() | lost | kept[0])),
            packed.eq((above << FP16.mantissa_bits) + kept + up),
            nan.eq(is_nan(self.i)),
            infinite.eq(packed[FP16.mantissa_bits :] >= (1 << FP16.exponent_bits) - 1),
        ]
        quiet = FP16.mantissa_bits - 1
        m.d.comb += self.o.eq(
            Cat(
                packed[:quiet] & ~infinite.replicate(quiet),
                Mux(infinite, nan, packed[quiet]),
                packed[FP16.mantissa_bits : 15] | infinite.replicate(FP16.exponent_bits),
                self.i[31] & ~nan,
            )
        )
        return m
