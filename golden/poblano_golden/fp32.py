"""Binary32 arithmetic as the hardware does it, and conversion to and from BF16, FP16 and INT8.

Each operation is the IEEE 754-2019 binary32 operation: one rounding to nearest even, subnormals
kept, no exception flags, and every NaN result is 0x7FC00000. There is no fused multiply-add.
Arguments are float32 arrays (or numpy scalars) that broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F32, F64, I8, U16, require_dtype

__all__ = [
    "absolute",
    "add",
    "ascending_sum",
    "canonical",
    "constant",
    "equal",
    "from_bf16_bits",
    "from_float64",
    "from_fp16_bits",
    "from_int8",
    "from_order_keys",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "order_keys",
    "select",
    "subtract",
    "to_bf16_bits",
    "to_fp16_bits",
    "to_int8",
]

NAN_BITS = 0x7FC00000
_NAN = np.uint32(NAN_BITS).view(np.float32)
_BF16_NAN = np.uint16(0x7FC0)
_FP16_NAN = np.uint16(0x7E00)


def add(a: F32, b: F32) -> F32:
    """Return a + b. An exact zero sum is +0 unless both operands are -0."""
    _check(a, b)
    with np.errstate(all="ignore"):
        return canonical(a + b)


def subtract(a: F32, b: F32) -> F32:
    """Return a - b."""
    _check(a, b)
    with np.errstate(all="ignore"):
        return canonical(a - b)


def multiply(a: F32, b: F32) -> F32:
    """Return a * b."""
    _check(a, b)
    with np.errstate(all="ignore"):
        return canonical(a * b)


def negate(x: F32) -> F32:
    """Return -x: the sign of a zero changes too."""
    _check(x)
    return canonical(-x)


def absolute(x: F32) -> F32:
    """Return |x|."""
    _check(x)
    return canonical(np.abs(x))


def equal(a: F32, b: F32) -> NDArray[np.bool_]:
    """Return whether a = b: -0 equals +0, and nothing equals a NaN."""
    _check(a, b)
    return np.equal(a, b)


def less(a: F32, b: F32) -> NDArray[np.bool_]:
    """Return whether a < b: -0 equals +0, and it is false of a NaN."""
    _check(a, b)
    return np.less(a, b)


def less_equal(a: F32, b: F32) -> NDArray[np.bool_]:
    """Return whether a <= b: -0 equals +0, and it is false of a NaN."""
    _check(a, b)
    return np.less_equal(a, b)


def select(condition: NDArray[np.bool_], a: F32, b: F32) -> F32:
    """Return a where the condition holds, otherwise b; what is not chosen has no effect."""
    require_dtype("condition", condition, np.bool_)
    _check(a, b)
    return canonical(np.where(condition, a, b))


def maximum(a: F32, b: F32) -> F32:
    """Return the larger: -0 is below +0, and a NaN on either side wins (IEEE 754 `maximum`)."""
    _check(a, b)
    chosen = np.where(order_keys(a) >= order_keys(b), a, b)
    return np.where(np.isnan(a) | np.isnan(b), _NAN, chosen)


def minimum(a: F32, b: F32) -> F32:
    """Return the smaller: -0 is below +0, and a NaN on either side wins (IEEE 754 `minimum`)."""
    _check(a, b)
    chosen = np.where(order_keys(a) <= order_keys(b), a, b)
    return np.where(np.isnan(a) | np.isnan(b), _NAN, chosen)


def order_keys(x: F32) -> NDArray[np.int32]:
    """Return integers in the order of the numbers: -0 below +0, NaN above all, NaNs alike."""
    _check(x)
    bits = np.asarray(canonical(x)).view(np.int32)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def from_order_keys(keys: NDArray[np.int32]) -> F32:
    """Return the numbers of `order_keys`."""
    require_dtype("keys", keys, np.int32)
    return np.where(keys < 0, keys ^ 0x7FFFFFFF, keys).astype(np.int32).view(np.float32)


def ascending_sum(x: F32, axis: int = -1) -> F32:
    """Return the sum along `axis` by binary32 adds from +0, in ascending index order.

    The first add is +0 + x[0], so a sum is never -0.
    """
    _check(x)
    terms = np.moveaxis(x, axis, 0)
    total = np.zeros(terms.shape[1:], np.float32)
    for term in terms:
        total = add(total, term)
    return total


def canonical(x: F32) -> F32:
    """Return `x` with every NaN replaced by 0x7FC00000."""
    return np.where(np.isnan(x), _NAN, x)


def from_float64(x: F64) -> F32:
    """Return float64 numbers rounded once to binary32: overflow to infinity, subnormals kept."""
    require_dtype("x", x, np.float64)
    with np.errstate(all="ignore"):
        return canonical(x.astype(np.float32))


def to_bf16_bits(x: F32) -> U16:
    """Return the bits of `x` rounded to BF16, nearest even; NaN is 0x7FC0."""
    _check(x)
    bits = np.asarray(x).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), _BF16_NAN, rounded.astype(np.uint16))


def constant(x: float) -> F32:
    """Return a number rounded to binary32, an array without dimensions."""
    return np.asarray(x, np.float32)


def from_bf16_bits(bits: U16) -> F32:
    """Return BF16 bits as float32: exact, NaN made canonical."""
    require_dtype("bits", bits, np.uint16)
    return canonical((np.asarray(bits).astype(np.uint32) << 16).view(np.float32))


def to_fp16_bits(x: F32) -> U16:
    """Return the bits of `x` rounded to binary16, nearest even; NaN is 0x7E00."""
    _check(x)
    with np.errstate(all="ignore"):
        rounded = np.asarray(x).astype(np.float16).view(np.uint16)
    return np.where(np.isnan(x), _FP16_NAN, rounded)


def from_fp16_bits(bits: U16) -> F32:
    """Return binary16 bits as float32: exact, NaN made canonical."""
    require_dtype("bits", bits, np.uint16)
    with np.errstate(all="ignore"):
        return canonical(np.asarray(bits).view(np.float16).astype(np.float32))


def to_int8(x: F32) -> I8:
    """Return `x` rounded to the nearest integer, ties to even, within -128 to 127; NaN gives 0."""
    _check(x)
    return np.clip(np.rint(np.nan_to_num(x)), -128, 127).astype(np.int8)


def from_int8(x: I8) -> F32:
    """Return int8 numbers as float32: exact, zero is +0."""
    require_dtype("x", x, np.int8)
    return np.asarray(x).astype(np.float32)


def _check(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        require_dtype("an operand", array, np.float32)
