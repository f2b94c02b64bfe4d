"""Narrow formats as binary32: all exact."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import normalise
from poblano.arith.fp32_fields import NAN, canonical, is_nan
from poblano.component import Component
from poblano_golden.formats import BF16, FP16, FP32

__all__ = ["Bf16ToFp32", "Fp16ToFp32", "Int8ToFp32"]


class Bf16ToFp32(Component):
    """Widens one BF16 number to binary32. NaN becomes 0x7FC00000. Combinational.

    Members
    -------
    i:
        The BF16 number.
    o:
        The same number in binary32.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(BF16.element_bits), "o": Out(FP32.element_bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        number, nan = Signal(FP32.element_bits), Signal()
        m.d.comb += [
            number.eq(Cat(C(0, FP32.element_bits - BF16.element_bits), self.i)),
            nan.eq(is_nan(number)),
            self.o.eq(canonical(number, nan)),
        ]
        return m


class Fp16ToFp32(Component):
    """Widens one binary16 number to binary32. NaN becomes 0x7FC00000. Combinational.

    Members
    -------
    i:
        The binary16 number.
    o:
        The same number in binary32.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(FP16.element_bits), "o": Out(FP32.element_bits)})

    def elaborate(self, platform: object) -> Module:
        # A subnormal's leading 1 is brought to the place of the hidden bit.
        m = Module()
        bits = FP16.mantissa_bits
        fraction, field, sign = self.i[:bits], self.i[bits:-1], self.i[-1]
        normal = Signal()
        m.d.comb += normal.eq(field.any())
        significand, count = normalise(m, Cat(fraction, normal), C(bits, 4), C(0, 1), "normal")
        exponent = Signal(FP32.exponent_bits)
        m.d.comb += exponent.eq(
            Cat(field[0] | ~normal, field[1:]) + (FP32.bias - FP16.bias) - count
        )
        fraction32 = Cat(C(0, FP32.mantissa_bits - bits), significand[:bits])
        with m.If(field.all() & fraction.any()):
            m.d.comb += self.o.eq(NAN)
        with m.Elif(field.all()):
            m.d.comb += self.o.eq(Cat(C(0, FP32.mantissa_bits), C(0xFF, 8), sign))
        with m.Elif(~significand[-1]):
            m.d.comb += self.o.eq(Cat(C(0, 31), sign))
        with m.Else():
            m.d.comb += self.o.eq(Cat(fraction32, exponent, sign))
        return m


class Int8ToFp32(Component):
    """Converts one two's complement integer of eight bits to binary32; 0 is +0. Combinational.

    Members
    -------
    i:
        The integer.
    o:
        The same number in binary32.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(signed(8)), "o": Out(FP32.element_bits)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        magnitude = Signal(8)
        m.d.comb += magnitude.eq(Mux(self.i[7], -self.i, self.i))
        significand, count = normalise(m, magnitude, C(7, 3), C(0, 1), "normal")
        exponent = Signal(FP32.exponent_bits)
        m.d.comb += exponent.eq(FP32.bias + 7 - count)
        fraction = Cat(C(0, FP32.mantissa_bits - 7), significand[:7])
        with m.If(significand[7]):
            m.d.comb += self.o.eq(Cat(fraction, exponent, self.i[7]))
        return m
