"""The IEEE 754 binary32 adder."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages, delayed, normalise
from poblano.arith.fp32_fields import unpack
from poblano.component import Component
from poblano_golden.formats import FP32

__all__ = ["Fp32Adder"]

_FRACTION = FP32.mantissa_bits
_TAIL = 3
"""Bits kept below the significand: guard, round, and the or of all others."""


class Fp32Adder(Component):
    """Adds two IEEE 754 binary32 numbers.

    Round to nearest even, subnormals kept, overflow to infinity; every NaN result is 0x7FC00000;
    an exact zero sum is +0 unless both operands are -0. Latency `stages` cycles, one sum a
    cycle, no backpressure.

    Parameters
    ----------
    stages:
        Registers, 0 to 3: at the output; then before normalisation; then after alignment.

    Members
    -------
    a, b:
        The operands.
    result:
        Their sum.

    Raises
    ------
    ValueError
        If `stages` is not 0 to 3.
    """

    def __init__(self, *, stages: int = 0) -> None:
        self.stages = checked_stages("stages", stages, 3)
        super().__init__({"a": In(32), "b": In(32), "result": Out(32)})

    def elaborate(self, platform: object) -> Module:
        # Order the operands by magnitude; shift the smaller one right; add or subtract;
        # normalise, not below the least normal exponent; round. A NaN is larger than an
        # infinity, which is larger than any number, so the larger operand tells the special cases.
        m = Module()
        swap = Signal()
        large, small = Signal(32), Signal(32)
        m.d.comb += [
            swap.eq(self.a[:31] < self.b[:31]),
            large.eq(Mux(swap, self.b, self.a)),
            small.eq(Mux(swap, self.a, self.b)),
        ]
        large_exponent, large_significand = unpack(m, large, "large")
        small_exponent, small_significand = unpack(m, small, "small")
        distance = Signal(FP32.exponent_bits)
        m.d.comb += distance.eq(large_exponent - small_exponent)
        aligned = self._align(m, small_significand, distance)

        differ = Signal()
        special = Signal()
        nan = Signal()
        m.d.comb += [
            differ.eq(large[31] ^ small[31]),
            special.eq(large[_FRACTION:31].all()),
            nan.eq(special & (large[:_FRACTION].any() | (differ & small[_FRACTION:31].all()))),
        ]
        after_align = delayed(
            m,
            Cat(aligned, large_significand, large_exponent, differ, special, nan, large[31]),
            int(self.stages >= 3),
            "aligned",
        )
        total = Signal(len(aligned) + 1)
        aligned, significand, exponent, differ, special, nan, sign = _split(
            after_align, len(aligned), len(large_significand), FP32.exponent_bits, 1, 1, 1, 1
        )
        m.d.comb += total.eq(
            Cat(C(0, _TAIL), significand) + (aligned ^ differ.replicate(len(aligned))) + differ
        )
        carry = Signal()
        m.d.comb += carry.eq(total[-1] & ~differ)
        after_add = delayed(
            m,
            Cat(total[:-1], carry, exponent, differ, special, nan, sign),
            int(self.stages >= 2),
            "added",
        )
        result = self._round(m, *_split(after_add, len(total), FP32.exponent_bits, 1, 1, 1, 1))
        m.d.comb += self.result.eq(delayed(m, result, int(self.stages >= 1), "result"))
        return m

    def _align(self, m: Module, significand: Value, distance: Value) -> Value:
        """Shift the smaller significand right; the last bit is the or of all that fell off.

        What is shifted further than the stages reach is less than a quarter of the other
        operand's last place, and changes nothing.
        """
        value: Value = Cat(C(0, _TAIL - 1), significand)
        width = len(value)
        stages = (width - 1).bit_length()
        far = Signal()
        m.d.comb += far.eq(distance[stages:].any())
        sticky: Value = C(0, 1)
        for k in range(stages):
            shifted, lost = Signal(width, name=f"align_{k}"), Signal(name=f"lost_{k}")
            m.d.comb += [
                shifted.eq(Mux(distance[k], value >> (1 << k), value)),
                lost.eq(sticky | (distance[k] & value[: 1 << k].any())),
            ]
            value, sticky = shifted, lost
        aligned = Signal(width + 1)
        m.d.comb += aligned.eq(Mux(far, 0, Cat(sticky, value)))
        return aligned

    def _round(
        self,
        m: Module,
        total: Value,
        exponent: Value,
        differ: Value,
        special: Value,
        nan: Value,
        sign: Value,
    ) -> Value:
        normal, count = normalise(m, total, exponent, C(0, 1), "normal")
        fraction, guard, sticky = normal[_TAIL + 1 : -1], normal[_TAIL], normal[:_TAIL].any()
        leading, up, biased = normal[-1], Signal(), Signal(FP32.exponent_bits)
        packed = Signal(31)
        m.d.comb += [
            up.eq(guard & (sticky | fraction[0])),
            biased.eq(Mux(leading, exponent - count, 0)),
            packed.eq(Cat(fraction, biased) + Cat(up, C(0, _FRACTION - 1), leading)),
        ]
        infinite = Signal()
        zero = Signal()
        m.d.comb += [
            infinite.eq(special | packed[_FRACTION:].all()),
            zero.eq(~normal.any()),
        ]
        result = Signal(32)
        m.d.comb += result.eq(
            Cat(
                Mux(infinite, 0, packed[: _FRACTION - 1]),
                Mux(infinite, nan, packed[_FRACTION - 1]),
                packed[_FRACTION:] | infinite.replicate(FP32.exponent_bits),
                sign & ~nan & ~(zero & differ),
            )
        )
        return result


def _split(value: Value, *widths: int) -> list[Value]:
    """Take a concatenation apart."""
    parts: list[Value] = []
    for width in widths:
        parts.append(value[:width])
        value = value[width:]
    return parts
