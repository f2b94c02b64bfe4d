"""Elements of the MX formats: codes to numbers and back, exactly.

Source: OCP Microscaling Formats (MX) Specification v1.0, section 5.3; IEEE 754-2019 for
rounding to nearest even.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from poblano_golden.arrays import F32, F64, I64, U8, require_dtype
from poblano_golden.formats import MxFormat

__all__ = ["decode", "encode", "integers", "nan_code"]


def decode(codes: U8, fmt: MxFormat) -> F32:
    """Return the number that each element code stands for, exactly.

    Parameters
    ----------
    codes:
        Element codes, one a byte, any shape. Codes of fewer than eight bits sit in the low bits.
    fmt:
        The element's format.

    Returns
    -------
    float32, same shape. NaN is 0x7FC00000; the sign of zero is kept; MXINT8 is two's
    complement in units of 1/64, so 0x80 is -2.0.

    Raises
    ------
    ValueError
        If `codes` is not uint8 or a code has more bits than the format.
    """
    _check_codes(codes, fmt)
    return _values(fmt)[codes]


def encode(values: F32 | F64, fmt: MxFormat) -> U8:
    """Return the code nearest to each number: one rounding, to nearest even, saturating.

    The rounding sees every bit of a float64, so nothing is rounded twice. Magnitudes beyond
    `fmt.largest`, infinities too, become `fmt.largest` with their sign. A number that rounds to
    zero keeps its sign in the floating-point formats. MXINT8 never becomes -128. A NaN becomes
    `nan_code(fmt)`, whatever its sign.

    Parameters
    ----------
    values:
        Numbers, any shape, in units of the block's scale.
    fmt:
        The element's format.

    Returns
    -------
    uint8 codes, same shape.

    Raises
    ------
    ValueError
        If `values` is neither float32 nor float64, or holds a NaN that the format has no code for.
    """
    require_dtype("values", values, np.float32, np.float64)
    exact = values.astype(np.float64)
    nan = np.isnan(exact)
    magnitude = np.minimum(np.where(nan, 0.0, np.abs(exact)), fmt.largest)
    fraction_bits, least = _significand(fmt)
    exponent = np.frexp(np.maximum(magnitude, 2.0**least))[1] - 1
    steps = np.rint(np.ldexp(magnitude, fraction_bits - exponent)).astype(np.int64)
    # A significand that rounds up to the next power of two carries into the exponent field.
    code = steps + ((exponent - least).astype(np.int64) << fraction_bits)
    negative = np.signbit(exact)
    if fmt.is_integer:
        code = np.where(negative, -code, code) & 0xFF
    else:
        code = code | (negative.astype(np.int64) << (fmt.element_bits - 1))
    if nan.any():
        code = np.where(nan, nan_code(fmt), code)
    return code.astype(np.uint8)


def integers(codes: U8, fmt: MxFormat) -> I64:
    """Return each element as an integer multiple of `2**fmt.lsb_exponent`.

    Raises
    ------
    ValueError
        As `decode`, and if a code stands for a NaN or an infinity.
    """
    values = decode(codes, fmt).astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"codes of {fmt.name} must be finite to be integers")
    return np.ldexp(values, -fmt.lsb_exponent).astype(np.int64)


def nan_code(fmt: MxFormat) -> int:
    """Return the code that `encode` gives a NaN: 0x7F in E4M3, 0x7E (quiet) in E5M2.

    Raises
    ------
    ValueError
        If the format has none.
    """
    if not fmt.has_nan:
        raise ValueError(f"{fmt.name} has no code for NaN")
    top = (1 << (fmt.element_bits - 1)) - 1
    return top if not fmt.has_infinity else top - (1 << (fmt.mantissa_bits - 1)) + 1


def _significand(fmt: MxFormat) -> tuple[int, int]:
    """Bits below the leading one, and the exponent at which numbers stop being normal."""
    if fmt.is_integer:
        return fmt.bias, 0
    return fmt.mantissa_bits, 1 - fmt.bias


def _check_codes(codes: U8, fmt: MxFormat) -> None:
    require_dtype("codes", codes, np.uint8)
    if codes.size and int(codes.max()) >> fmt.element_bits:
        raise ValueError(
            f"a code of {fmt.name} must be below {1 << fmt.element_bits}, not {int(codes.max())}"
        )


@lru_cache
def _values(fmt: MxFormat) -> F32:
    """Return the value of every code."""
    codes = np.arange(1 << fmt.element_bits)
    if fmt.is_integer:
        return np.ldexp((codes ^ 0x80) - 0x80, fmt.lsb_exponent).astype(np.float32)
    sign = codes >> (fmt.element_bits - 1)
    exponent = (codes >> fmt.mantissa_bits) & ((1 << fmt.exponent_bits) - 1)
    fraction = codes & ((1 << fmt.mantissa_bits) - 1)
    normal = exponent > 0
    significand = fraction + (normal << fmt.mantissa_bits)
    magnitude = np.ldexp(significand, np.where(normal, exponent - 1, 0) + fmt.lsb_exponent)
    values = np.where(sign == 1, -magnitude, magnitude).astype(np.float32)
    top = exponent == (1 << fmt.exponent_bits) - 1
    if fmt.has_infinity:
        values[top] = np.where(sign[top] == 1, -np.inf, np.inf)
        values[top & (fraction > 0)] = np.nan
    elif fmt.has_nan:
        values[top & (fraction == (1 << fmt.mantissa_bits) - 1)] = np.nan
    return values
