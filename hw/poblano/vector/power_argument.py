"""Splits the argument of an exponential into a whole exponent and a fraction."""

from __future__ import annotations

from amaranth.hdl import *

from poblano.arith.datapath import delayed, shift_right
from poblano_golden.elementary import LOG2_E, LOG2_E_BITS
from poblano_golden.formats import FP32
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["EXPONENT_WIDTH", "power_argument"]

EXPONENT_WIDTH = 10
"""Bits of a signed exponent: powers reach from 2**-512 to 2**511."""

_LARGE = FP32.bias + 7
"""The largest exponent field of an argument that does not saturate."""

_FIXED_BITS = FRACTION_BITS + EXPONENT_WIDTH - 1
"""Bits of a magnitude in fixed point."""


def power_argument(
    m: Module, x: Value, scaled: Value, negated: Value, product_stages: int
) -> tuple[Signal, Signal]:
    """Return the parts of p = x, or x * log2(e) if `scaled`; of -p if `negated`.

    The magnitude is rounded down to a multiple of 2**-27; from |x| = 2**8 on it is the largest.
    `scaled` may be a constant.

    Parameters
    ----------
    product_stages:
        Registers after the multiplication by log2(e).

    Returns
    -------
    The fraction of p, `FRACTION_BITS` wide, and floor(p), signed.
    """
    significand = Cat(x[: FP32.mantissa_bits], C(1, 1))
    dropped = LOG2_E_BITS + FP32.mantissa_bits - 7 - FRACTION_BITS
    product, fixed = Signal(_FIXED_BITS + dropped), Signal(_FIXED_BITS)
    m.d.comb += [
        product.eq(significand * LOG2_E),
        fixed.eq(Mux(scaled, product[dropped:], significand << (LOG2_E_BITS - dropped))),
    ]
    fixed, field, negative = (
        delayed(m, value, product_stages, name)
        for value, name in (
            (fixed, "fixed"),
            (x[FP32.mantissa_bits : 31], "field"),
            (x[31] ^ negated, "negative"),
        )
    )
    distance, large = Signal(range(_LARGE + 1)), Signal()
    m.d.comb += [large.eq(field > _LARGE), distance.eq(_LARGE - field)]
    shifted, _ = shift_right(m, fixed, distance, "aligned")
    magnitude, power = Signal(_FIXED_BITS), Signal(signed(_FIXED_BITS + 1))
    fraction, exponent = Signal(FRACTION_BITS), Signal(signed(EXPONENT_WIDTH))
    m.d.comb += [
        magnitude.eq(shifted | large.replicate(_FIXED_BITS)),
        power.eq((magnitude ^ negative.replicate(_FIXED_BITS + 1)) + negative),
        fraction.eq(power),
        exponent.eq(power[FRACTION_BITS:]),
    ]
    return fraction, exponent
