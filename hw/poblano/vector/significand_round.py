"""Rounds a significand in fixed point to binary32."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import shift_right
from poblano.arith.fp32_fields import canonical
from poblano.component import Component
from poblano.vector.power_argument import EXPONENT_WIDTH
from poblano_golden.formats import FP32
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["SignificandRound"]

_DROPPED = FRACTION_BITS - FP32.mantissa_bits
_INFINITY = (1 << FP32.exponent_bits) - 1


class SignificandRound(Component):
    """Rounds significand * 2**(exponent - 27) to binary32, and gives it a sign.

    To nearest, ties to even; subnormals are kept; overflow gives infinity. Combinational.

    Members
    -------
    significand:
        In [2**27 - 1, 2**28]: what lies outside [2**27, 2**28) rounds into it, or to its end.
    exponent:
        The exponent, signed.
    sign:
        The sign of the result.
    nan:
        The result is 0x7FC00000.
    result:
        The binary32 number.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "significand": In(FRACTION_BITS + 2),
                "exponent": In(signed(EXPONENT_WIDTH)),
                "sign": In(1),
                "nan": In(1),
                "result": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        # above: how far the exponent lies above the least normal one. Below, the significand is
        # shifted. Its leading 1, where it is left, adds 1 to the exponent, as rounding up may.
        m = Module()
        above = Signal(signed(EXPONENT_WIDTH + 1))
        low, distance = Signal(), Signal(EXPONENT_WIDTH)
        m.d.comb += [
            above.eq(self.exponent + (FP32.bias - 1)),
            low.eq(above[-1]),
            distance.eq(Mux(low, -above, 0)),
        ]
        shifted, lost = shift_right(m, self.significand, distance, "shifted")
        kept, dropped = shifted[_DROPPED:], shifted[:_DROPPED]
        up, infinite = Signal(), Signal()
        packed = Signal(FP32.mantissa_bits + EXPONENT_WIDTH)
        m.d.comb += [
            up.eq(dropped[-1] & (dropped[:-1].any() | lost | kept[0])),
            packed.eq(
                Cat(C(0, FP32.mantissa_bits), Mux(low, 0, above[:EXPONENT_WIDTH])) + kept + up
            ),
            infinite.eq(packed[FP32.mantissa_bits :] >= _INFINITY),
        ]
        magnitude = Mux(infinite, _INFINITY << FP32.mantissa_bits, packed[:31])
        m.d.comb += self.result.eq(canonical(Cat(magnitude[:31], self.sign), self.nan))
        return m
