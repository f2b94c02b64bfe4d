"""Rounds binary32 to an eight-bit integer."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import shift_right
from poblano.arith.fp32_fields import is_nan, unpack
from poblano.component import Component
from poblano_golden.formats import FP32

__all__ = ["Fp32ToInt8"]

_LARGE = FP32.bias + 7
"""The exponent field of 128: larger numbers saturate, this and smaller ones are aligned to it."""

_POINT = FP32.mantissa_bits - 7
"""Bits below the point of an aligned significand."""


class Fp32ToInt8(Component):
    """Rounds one binary32 number to a two's complement integer of eight bits.

    To nearest, ties to even, then saturates to -128 to 127, infinities too; NaN becomes 0.
    Combinational.

    Members
    -------
    i:
        The binary32 number.
    o:
        The integer.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(FP32.element_bits), "o": Out(signed(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        exponent, significand = unpack(m, self.i, "i")
        sign = self.i[31]
        distance = Signal(range(_LARGE))
        m.d.comb += distance.eq(_LARGE - exponent)
        shifted, lost = shift_right(m, significand, distance, "shifted")
        whole, part = shifted[_POINT:], shifted[:_POINT]
        up, large, rounded = Signal(), Signal(), Signal(9)
        m.d.comb += [
            up.eq(part[-1] & (part[:-1].any() | lost | whole[0])),
            rounded.eq(whole + up),
            large.eq((exponent > _LARGE) | rounded[7:].any()),
        ]
        with m.If(is_nan(self.i)):
            m.d.comb += self.o.eq(0)
        with m.Elif(large):
            m.d.comb += self.o.eq(Mux(sign, -128, 127))
        with m.Else():
            m.d.comb += self.o.eq(Mux(sign, -rounded[:7], rounded[:7]))
        return m
