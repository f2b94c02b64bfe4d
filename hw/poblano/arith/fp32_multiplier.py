"""The IEEE 754 binary32 multiplier."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages, delayed
from poblano.arith.fp32_fields import is_infinite, is_nan, is_zero, unpack
from poblano.arith.fp32_round import Fp32Round
from poblano.component import Component, once
from poblano_golden.formats import FP32

__all__ = ["Fp32Multiplier"]

_LAST_PLACE = FP32.bias + FP32.mantissa_bits
"""A number is its significand, an integer, times 2**(exponent field - this)."""

_EXPONENTS = range(2 - 2 * _LAST_PLACE, 2 * 254 - 2 * _LAST_PLACE + 1)


class Fp32Multiplier(Component):
    """Multiplies two IEEE 754 binary32 numbers.

    Round to nearest even, subnormals kept, overflow to infinity; every NaN result is 0x7FC00000,
    and so is zero times infinity. Latency `stages` cycles, one product a cycle, no backpressure.

    Parameters
    ----------
    stages:
        Registers, 0 to 2: at the output; then between product and rounding.

    Members
    -------
    a, b:
        The factors.
    result:
        Their product.

    Raises
    ------
    ValueError
        If `stages` is not 0 to 2.
    """

    def __init__(self, *, stages: int = 0) -> None:
        self.stages = checked_stages("stages", stages, 2)
        super().__init__({"a": In(32), "b": In(32), "result": Out(32)})

    @property
    def latency(self) -> int:
        """Cycles from the factors to their product."""
        return self.stages

    def elaborate(self, platform: Any) -> Module:
        # The product of two significands is exact, and rounded as any integer is. It is rounded
        # without its sign, which joins at the end: to nearest even is the same both ways.
        m = Module()
        rounding: Any = Fp32Round(
            width=2 * FP32.mantissa_bits + 3, exponents=_EXPONENTS, infinities=True
        )
        m.submodules.rounding = once(rounding, platform)
        (a_exponent, a), (b_exponent, b) = (
            unpack(m, number, name) for number, name in ((self.a, "a"), (self.b, "b"))
        )
        product = Signal(len(a) + len(b))
        exponent = Signal(Shape.cast(_EXPONENTS))
        nan, infinite, sign = Signal(), Signal(), Signal()
        a_infinite, b_infinite = (is_infinite(x) for x in (self.a, self.b))
        m.d.comb += [
            product.eq(a * b),
            exponent.eq(a_exponent + b_exponent - 2 * _LAST_PLACE),
            infinite.eq(a_infinite | b_infinite),
            nan.eq(
                is_nan(self.a) | is_nan(self.b) | (infinite & (is_zero(self.a) | is_zero(self.b)))
            ),
            sign.eq(self.a[31] ^ self.b[31]),
        ]
        between = int(self.stages >= 2)
        special = delayed(m, Cat(nan, infinite, sign & ~nan), between, "special")
        m.d.comb += [
            rounding.value.eq(delayed(m, product, between, "product")),
            rounding.exponent.eq(delayed(m, exponent, between, "exponent")),
            rounding.nan.eq(special[0]),
            rounding.infinity.eq(special[1]),
            rounding.infinity_sign.eq(0),
        ]
        result = Cat(rounding.result[:31], special[2])
        m.d.comb += self.result.eq(delayed(m, result, int(self.stages >= 1), "result"))
        return m
