"""Rounds an exact integer with an exponent to binary32."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages, delayed, normalise
from poblano.component import Component
from poblano_golden.formats import FP32

__all__ = ["Fp32Round"]

_SIGNIFICAND = FP32.mantissa_bits + 1


class Fp32Round(Component):
    """Rounds value * 2**exponent to IEEE 754 binary32.

    To nearest, ties to even; subnormals are kept; overflow gives infinity; an exact zero is +0
    and a negative number that rounds to zero is -0. Latency `stages` cycles, one number a cycle,
    no backpressure.

    Parameters
    ----------
    width:
        Bits of the signed value, at least 2.
    exponents:
        Every exponent that may occur.
    infinities:
        Whether the inputs `infinity` and `infinity_sign` exist.
    stages:
        Registers at the output, 0 or 1.

    Members
    -------
    value, exponent:
        The number.
    nan:
        The result is 0x7FC00000, whatever the number.
    infinity, infinity_sign:
        The result is infinite with this sign, unless `nan`.
    result:
        The binary32 number.

    Raises
    ------
    ValueError
        If the width is below 2, the range is empty, or `stages` is not 0 or 1.
    """

    def __init__(
        self, *, width: int, exponents: range, infinities: bool = False, stages: int = 0
    ) -> None:
        if width < 2:
            raise ValueError(f"width must be at least 2, not {width}")
        if not exponents:
            raise ValueError(f"exponents must be a range that is not empty, not {exponents}")
        self.width = width
        self.exponents = exponents
        self.infinities = infinities
        self.stages = checked_stages("stages", stages, 1)
        infinity = {"infinity": In(1), "infinity_sign": In(1)} if infinities else {}
        super().__init__(
            {
                "value": In(signed(width)),
                "exponent": In(Shape.cast(exponents)),
                "nan": In(1),
                **infinity,
                "result": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        # A negative value is -(x + 1), where x is its complement, and x + 1 is x followed by
        # ones without end: one bit of that tail is kept and further ones enter as x is shifted.
        # So nothing is added before rounding, which tells a tie (0111...) from less than half.
        m = Module()
        sign = self.value[-1]
        low = max(_SIGNIFICAND + 2 - self.width, 1)
        digits = Signal(self.width - 1 + low)
        m.d.comb += digits.eq(
            Cat(sign.replicate(low), self.value[:-1] ^ sign.replicate(self.width - 1))
        )

        # limit: how far the top digit lies above the least normal number; so far it may be
        # shifted. What lies below is shifted right, to the subnormals' exponent.
        offset = self.width - 2 + FP32.bias - 1
        limit = Signal(range(self.exponents.start + offset, self.exponents.stop + offset))
        m.d.comb += limit.eq(self.exponent + offset)
        deep = limit[-1] if self.exponents.start + offset < 0 else C(0, 1)
        above = Signal(range(max(1, self.exponents.stop + offset)))
        m.d.comb += above.eq(Mux(deep, 0, limit))
        normal, count = normalise(m, digits, above, sign, "normal")

        window = normal[-(_SIGNIFICAND + 1) :]
        rest = normal[: -(_SIGNIFICAND + 1)]
        sticky = (rest ^ sign.replicate(len(rest))).any() if len(rest) else C(0, 1)
        if self.exponents.start + offset < 0:
            window, sticky = self._shift_right(m, window, sticky, limit, sign)

        # The leading digit, where there is one, adds 1 to the exponent, as rounding up may.
        leading, guard, odd = window[-1], window[0] ^ sign, window[1] ^ sign
        up, biased = Signal(), Signal(max(len(above), FP32.exponent_bits) + 1)
        packed = Signal(len(biased) + FP32.mantissa_bits)
        m.d.comb += [
            up.eq(sign ^ (guard & (sticky | odd))),
            biased.eq(Mux(leading, (above - count)[: len(above)], 0)),
            packed.eq(Cat(window[1:-1], biased) + Cat(up, C(0, FP32.mantissa_bits - 1), leading)),
        ]

        infinite = packed[FP32.mantissa_bits :] >= (1 << FP32.exponent_bits) - 1
        result_sign = sign
        if self.infinities:
            infinite = infinite | self.infinity
            result_sign = Mux(self.infinity, self.infinity_sign, sign)
        special, result = Signal(), Signal(32)
        m.d.comb += [
            special.eq(self.nan | infinite),
            result.eq(
                Cat(
                    Mux(special, 0, packed[: FP32.mantissa_bits - 1]),
                    Mux(special, self.nan, packed[FP32.mantissa_bits - 1]),
                    packed[FP32.mantissa_bits : 31] | special.replicate(FP32.exponent_bits),
                    result_sign & ~self.nan,
                )
            ),
            self.result.eq(delayed(m, result, self.stages, "result")),
        ]
        return m

    def _shift_right(
        self, m: Module, window: Value, sticky: Value, limit: Signal, sign: Value
    ) -> tuple[Value, Value]:
        """Shift right by -limit where that is positive; what falls off goes into `sticky`."""
        stages = len(window).bit_length()
        distance, far = Signal(len(limit)), Signal()
        m.d.comb += [
            distance.eq(Mux(limit[-1], -limit, 0)),
            far.eq(distance[stages:].any()),
        ]
        for k in range(stages):
            taken, shifted = Signal(name=f"deep_{k}"), Signal(len(window), name=f"window_{k}")
            lost = Signal(name=f"lost_{k}")
            step = min(1 << k, len(window))
            m.d.comb += [
                taken.eq(distance[k] | far),
                shifted.eq(Mux(taken, window >> step, window)),
                lost.eq(sticky | (taken & (window[:step] ^ sign.replicate(step)).any())),
            ]
            window, sticky = shifted, lost
        return window, sticky
