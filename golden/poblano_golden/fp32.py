"""Binary32 arithmetic as the hardware does it, and conversion to BF16 and FP16.

Each operation is the IEEE 754-2019 binary32 operation: one rounding to nearest even, subnormals
kept, no exception flags, and every NaN result is 0x7FC00000. There is no fused multiply-add.
Arguments are float32 arrays (or numpy scalars) that broadcast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F32, F64, U16, require_dtype

__all__ = [
    "add",
    "ascending_sum",
    "canonical",
    "from_bf16_bits",
    "from_float64",
    "from_fp16_bits",
    "maximum",
    "minimum",
    "multiply",
    "subtract",
    "to_bf16_bits",
    "to_fp16_bits",
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


def maximum(a: F32, b: F32) -> F32:
    """Return the larger: -0 is below +0, and a NaN on either side wins (IEEE 754 `maximum`)."""
    _check(a, b)
    chosen = np.where(_order(a) >= _order(b), a, b)
    return np.where(np.isnan(a) | np.isnan(b), _NAN, chosen)


def minimum(a: F32, b: F32) -> F32:
    """Return the smaller: -0 is below +0, and a NaN on either side wins (IEEE 754 `minimum`)."""
    _check(a, b)
    chosen = np.where(_order(a) <= _order(b), a, b)
    return np.where(np.isnan(a) | np.isnan(b), _NAN, chosen)


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


def _order(x: F32) -> NDArray[np.int32]:
    """Return integers in the order of the numbers, -0 below +0."""
    bits = np.asarray(x).view(np.int32)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def _check(*arrays: NDArray[Any]) -> None:
    for array in arrays:
        require_dtype("an operand", array, np.float32)
