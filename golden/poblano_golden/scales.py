"""E8M0 block scales: which power of two a block of elements shares.

Every rule works on the bits of the block's largest magnitude with integers only. Let
`amax = m * 2**e` with `1 <= m < 2`, subnormal amax normalised first. The scale's exponent is
then `e - fmt.max_exponent`, and one more

- `floor`: never;
- `round_up`: when `m` exceeds the significand of `fmt.largest`, which makes it
  ceil(log2(amax / largest)): nothing in the block saturates;
- `even`: when `m`, rounded to nearest even to the element's own precision, becomes 2.

Source: OCP Microscaling Formats (MX) Specification v1.0, section 6.3 (`floor`, its
recommendation); `round_up` as in Triton and cuBLAS; `even` as in torchao.
"""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F32, F64, I64, U8, require_dtype
from poblano_golden.formats import SCALE_BIAS, SCALE_NAN, SCALE_RULES, MxFormat

__all__ = ["require_rule", "scale_bytes", "scale_values"]

_LARGEST_BYTE = 254
_FRACTION_BITS = 23
_INFINITY_BITS = 0x7F800000


def scale_bytes(amax: F32, fmt: MxFormat, rule: str) -> U8:
    """Return the scale byte of blocks whose largest magnitude is `amax`.

    Parameters
    ----------
    amax:
        The largest magnitude of each block, any shape; a NaN or an infinity where the block
        holds one.
    fmt:
        The format of the elements.
    rule:
        A name in `SCALE_RULES`.

    Returns
    -------
    uint8, same shape: the exponent plus 127 clamped to 0..254; 0 for amax 0; 0xFF for NaN or
    infinity.

    Raises
    ------
    ValueError
        If the rule is unknown, `amax` is not float32 or an amax is negative.
    """
    require_rule(rule)
    require_dtype("amax", amax, np.float32)
    if (amax < 0).any():
        raise ValueError(f"amax must not be negative, not {amax.min()}")
    bits = (np.asarray(amax).view(np.uint32) & 0x7FFFFFFF).astype(np.int64)
    exponent, fraction = _normalise(bits)
    byte = exponent - fmt.max_exponent + SCALE_BIAS + _steps_up(fraction, fmt, rule)
    byte = np.where(bits == 0, 0, np.clip(byte, 0, _LARGEST_BYTE))
    return np.where(bits >= _INFINITY_BITS, SCALE_NAN, byte).astype(np.uint8)


def scale_values(scales: U8) -> F64:
    """Return what each scale byte stands for: 2**(byte - 127), NaN for 0xFF; exact.

    Raises
    ------
    ValueError
        If `scales` is not uint8.
    """
    require_dtype("scales", scales, np.uint8)
    return _SCALE_VALUES[scales]


def require_rule(rule: str) -> None:
    """Refuse a scale rule that does not exist.

    Raises
    ------
    ValueError
        If `rule` is not in `SCALE_RULES`.
    """
    if rule not in SCALE_RULES:
        raise ValueError(f"a scale rule must be one of {', '.join(SCALE_RULES)}, not {rule!r}")


def _normalise(bits: I64) -> tuple[I64, I64]:
    """Return exponent and 23-bit fraction of positive binary32 bits, subnormals too."""
    field, fraction = bits >> _FRACTION_BITS, bits & ((1 << _FRACTION_BITS) - 1)
    # frexp of an integer below 2**53 is exact: its exponent is the bit length.
    length = np.frexp(fraction.astype(np.float64))[1].astype(np.int64)
    shift = np.where(field == 0, _FRACTION_BITS + 1 - length, 0)
    exponent = np.where(field == 0, -126 - shift, field - 127)
    return exponent, (fraction << shift) & ((1 << _FRACTION_BITS) - 1)


def _steps_up(fraction: I64, fmt: MxFormat, rule: str) -> I64:
    """Return 1 where the rule takes the next power of two, from the fraction bits of amax."""
    if rule == "floor":
        return np.zeros_like(fraction)
    if rule == "round_up":
        largest = round((fmt.largest / 2.0**fmt.max_exponent - 1) * (1 << _FRACTION_BITS))
        return (fraction > largest).astype(np.int64)
    # The fraction kept is all ones just below 2, hence odd: a tie goes up.
    kept = fmt.bias if fmt.is_integer else fmt.mantissa_bits
    ones = (1 << (kept + 1)) - 1
    return (fraction >> (_FRACTION_BITS - kept - 1) == ones).astype(np.int64)


_SCALE_VALUES: F64 = np.append(np.ldexp(1.0, np.arange(SCALE_NAN) - SCALE_BIAS), np.nan)
