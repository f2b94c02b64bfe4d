"""Elementary functions of binary32, as the hardware computes them.

An argument is split into an exponent and a fixed-point fraction, a table of quadratics
(`poblano_golden.table_polynomial`) gives the significand of the result with 27 bits below the
point, and one rounding to nearest even, subnormals kept, gives binary32. Nothing flushes, overflow
gives infinity, and every NaN result is 0x7FC00000. Arguments are float32 arrays.

Errors are measured over every argument that matters, in units of the exact result's last place
(2**-149 where the result is subnormal); `tests/golden/test_golden_elementary.py` holds to them.
"""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F32, I64, require_dtype
from poblano_golden.fp32 import canonical
from poblano_golden.table_polynomial import EXP2, FRACTION_BITS, RECIPROCAL, RECIPROCAL_SQRT

__all__ = [
    "LOG2_E",
    "LOG2_E_BITS",
    "POWER_BITS",
    "exp",
    "exp2",
    "power_parts",
    "reciprocal",
    "reciprocal_sqrt",
    "sigmoid",
]

LOG2_E_BITS = 36
"""Bits below the point of `LOG2_E`."""

POWER_BITS = 15
"""`power_parts` tells numbers apart whose magnitude is below 2**POWER_BITS."""

_ONE = 1 << FRACTION_BITS
_HIDDEN = 1 << 23
_BIAS = 127


def _log2_e() -> int:
    """Return log2(e), rounded to nearest: 1 / ln(2), where ln(2) = sum of 1 / (k 2**k)."""
    bits = 2 * LOG2_E_BITS
    ln_2 = sum((1 << (2 * bits)) // (k << k) for k in range(1, 2 * bits))
    return ((1 << (2 * bits + LOG2_E_BITS + 1)) // ln_2 + 1) >> 1


LOG2_E = _log2_e()
"""log2(e) * 2**36."""


def exp2(x: F32) -> F32:
    """Return 2**x, within 0.691 ulp. 2**-inf is +0."""
    significand, exponent = _power(x, _aligned(x))
    return _finish(x, significand, exponent)


def exp(x: F32) -> F32:
    """Return e**x, within 0.737 ulp: 2**(x log2(e)), the product rounded down in fixed point."""
    significand, exponent = _power(x, _aligned(x, LOG2_E))
    return _finish(x, significand, exponent)


def power_parts(x: F32) -> tuple[I64, I64]:
    """Return 2**x as significand * 2**(exponent - 27), which no exponent makes overflow.

    |x| is rounded down to a multiple of 2**-27, and to the largest below 2**15. The significand
    lies in [2**27, 2**28), the exponent is floor(x). Of a NaN neither means anything.
    """
    magnitude = np.minimum(_aligned(x), (1 << (FRACTION_BITS + POWER_BITS)) - 1)
    return _power(x, magnitude)


def reciprocal(x: F32) -> F32:
    """Return 1 / x, within 0.682 ulp. Of a zero it is an infinity, of an infinity a zero."""
    exponent, fraction = _normalised(x)
    significand = RECIPROCAL(fraction << (FRACTION_BITS - 23))
    magnitude = _finish(x, significand, -1 - exponent)
    magnitude = np.where(
        np.isinf(x), np.float32(0), np.where(x == 0, np.float32(np.inf), magnitude)
    )
    return canonical(np.copysign(magnitude, x))


def reciprocal_sqrt(x: F32) -> F32:
    """Return 1 / sqrt(x), within 0.776 ulp: +-inf for +-0, +0 for +inf, NaN for x < 0."""
    exponent, fraction = _normalised(x)
    argument = ((exponent & 1) << (FRACTION_BITS - 1)) | (fraction << (FRACTION_BITS - 24))
    root = _finish(x, RECIPROCAL_SQRT(argument), -1 - (exponent >> 1))
    root = np.where(np.isinf(x), np.float32(0), root)
    root = np.where(x < 0, np.float32(np.nan), root)
    return canonical(np.where(x == 0, np.copysign(np.float32(np.inf), x), root))


def sigmoid(x: F32) -> F32:
    """Return 1 / (1 + e**-x), within 0.883 ulp; nothing is rounded to binary32 on the way."""
    significand, exponent = _power(-np.asarray(x), _aligned(x, LOG2_E))
    smaller = np.where(exponent < 0, significand, _ONE) >> np.minimum(np.abs(exponent), 62)
    total = np.where(exponent < 0, _ONE, significand) + smaller
    carry = total >> (FRACTION_BITS + 1)
    fraction = (total >> carry) & (_ONE - 1)
    return _finish(x, RECIPROCAL(fraction), -1 - np.maximum(exponent, 0) - carry)


def _aligned(x: F32, factor: int = 1 << LOG2_E_BITS) -> I64:
    """Return floor(|x| * factor * 2**28 / 2**36), and 2**37 - 1 for |x| of 2**8 or more."""
    require_dtype("x", x, np.float32)
    bits = np.asarray(x).view(np.uint32).astype(np.int64)
    exponent = ((bits >> 23) & 0xFF) - _BIAS
    product = ((bits & (_HIDDEN - 1)) | _HIDDEN) * factor
    unit_shift = LOG2_E_BITS + 23 - FRACTION_BITS
    return product >> np.clip(unit_shift - exponent, 0, 62)


def _power(x: F32, magnitude: I64) -> tuple[I64, I64]:
    """Return significand and exponent of 2 to the power of +-magnitude, the sign that of x."""
    power = np.where(np.signbit(x), -magnitude, magnitude)
    return EXP2(power & (_ONE - 1)), power >> FRACTION_BITS


def _normalised(x: F32) -> tuple[I64, I64]:
    """Return the exponent of |x| and 23 bits of fraction, of subnormals too; of 1 for specials."""
    require_dtype("x", x, np.float32)
    regular = np.where(np.isfinite(x) & (x != 0), np.abs(x), np.float32(1))
    significand, exponent = np.frexp(regular)
    fraction = np.ldexp(significand.astype(np.float64), 24).astype(np.int64) - _HIDDEN
    return exponent.astype(np.int64) - 1, fraction


def _finish(x: F32, significand: I64, exponent: I64) -> F32:
    """Return significand * 2**(exponent - 27) rounded once to binary32; NaN where x is."""
    with np.errstate(all="ignore"):
        exact = np.ldexp(significand.astype(np.float64), exponent - FRACTION_BITS)
        rounded = exact.astype(np.float32)
    return canonical(np.where(np.isnan(x), x, rounded))
