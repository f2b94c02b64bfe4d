"""Splits the argument of an exponential into a whole exponent and a fraction."""

from __future__ import annotations

from amaranth.hdl import *

from poblano.arith.datapath import delayed, shift_right
from poblano_golden.elementary import LOG2_E, LOG2_E_BITS, POWER_BITS
from poblano_golden.formats import FP32
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["EXPONENT_WIDTH", "PARTS_EXPONENT_WIDTH", "power_argument"]

EXPONENT_WIDTH = 10
"""Bits of a signed exponent: powers reach from 2**-512 to 2**511."""

PARTS_EXPONENT_WIDTH = POWER_BITS + 1
"""Bits of the exponent of `poblano_golden.elementary.power_parts`."""


def power_argument(
    m: Module,
    x: Value,
    scaled: Value,
    negated: Value,
    product_stages: int,
    exponent_width: int = EXPONENT_WIDTH,
) -> tuple[Signal, Signal]:
    """Return the parts of p = x, or x * log2(e) if `scaled`; of -p if `negated`.

    The magnitude of p is rounded down to a multiple of 2**-27; from |x| = 2**(exponent_width - 1)
    on, half of that if scaled, it is the largest. `scaled` may be a constant.

    Parameters
    ----------
    product_stages:
        Registers after the multiplication by log2(e).
    exponent_width:
        Bits of floor(p).

    Returns
    -------
    The fraction of p, `FRACTION_BITS` wide, and floor(p), signed.
    """
    fixed_bits = FRACTION_BITS + exponent_width - 1
    top = FP32.bias + exponent_width - 2  # the largest exponent field that does not saturate
    significand = Cat(x[: FP32.mantissa_bits], C(1, 1))
    dropped = LOG2_E_BITS + FP32.mantissa_bits - (top - FP32.bias) - FRACTION_BITS
    # scaled arguments lie a place lower: their products need a bit more before the shift
    product, fixed = Signal(fixed_bits + 1 + dropped), Signal(fixed_bits + 1)
    m.d.comb += [
        product.eq(significand * LOG2_E),
        fixed.eq(Mux(scaled, product[dropped:], significand << (LOG2_E_BITS - dropped))),
    ]
    exponent_field, large = x[FP32.mantissa_bits : 31], Signal()
    m.d.comb += large.eq(exponent_field > Mux(scaled, top - 1, top))
    fixed, field, large, negative = (
        delayed(m, value, product_stages, name)
        for value, name in (
            (fixed, "fixed"),
            (exponent_field, "field"),
            (large, "large_held"),
            (x[31] ^ negated, "negative"),
        )
    )
    distance = Signal(range(top + 1))
    m.d.comb += distance.eq(top - field)
    shifted, _ = shift_right(m, fixed, distance, "aligned")
    magnitude, power = Signal(fixed_bits), Signal(signed(fixed_bits + 1))
    fraction, exponent = Signal(FRACTION_BITS), Signal(signed(exponent_width))
    m.d.comb += [
        magnitude.eq(shifted | large.replicate(fixed_bits)),
        power.eq((magnitude ^ negative.replicate(fixed_bits + 1)) + negative),
        fraction.eq(power),
        exponent.eq(power[FRACTION_BITS:]),
    ]
    return fraction, exponent
