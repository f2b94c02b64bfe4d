"""Reductions of binary32 numbers, each in a stated order.

An axis is read in beats of `lanes` neighbours: element i lies in lane i % lanes of beat i // lanes.
Where the order matters it is stated; maxima, their places and the largest k do not depend on it.
Numbers are ordered as `fp32.maximum` orders them: -0 below +0, NaN above all. Among equals the
lowest index comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_golden.arrays import F32, I64, require_dtype
from poblano_golden.elementary import POWER_BITS, power_parts
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["POWER_SUM_BITS", "argmax", "maximum", "power_sum", "top_k", "total"]

POWER_SUM_BITS = 36
"""Bits below the point of the sums of `power_sum`."""


def total(x: F32, lanes: int, ways: int = 1, axis: int = -1) -> F32:
    """Return the sum along `axis`: a binary tree over the lanes of a beat, then beat by beat.

    In a beat neighbours are added, (0, 1), (2, 3) and so on, then neighbouring sums, to one. The
    sum of beat j is added to accumulator j % ways, each +0 at first, in ascending order of the
    beat; the accumulators are added by such a tree too. Lanes past the end of the axis hold +0. A
    sum is never -0, and that of no elements is +0.

    Raises
    ------
    ValueError
        If `lanes` or `ways` is not a power of two, or `x` not float32.
    """
    require_dtype("x", x, np.float32)
    for name, count in (("lanes", lanes), ("ways", ways)):
        if count < 1 or count & (count - 1):
            raise ValueError(f"{name} must be a power of two, not {count}")
    rows = np.moveaxis(x, axis, -1)
    turns = -(-rows.shape[-1] // (lanes * ways))
    padded = np.zeros((*rows.shape[:-1], turns * ways * lanes), np.float32)
    padded[..., : rows.shape[-1]] = rows
    beats = _tree(padded.reshape(*rows.shape[:-1], turns, ways, lanes))
    return _tree(fp32.ascending_sum(beats, -2))


def _tree(x: F32) -> F32:
    """Return sums along the last axis, whose length is a power of two, neighbours first."""
    while x.shape[-1] > 1:
        x = fp32.add(x[..., 0::2], x[..., 1::2])
    return x[..., 0]


def power_sum(x: F32, lanes: int) -> tuple[F32, F32]:
    """Return a reference and the sum of 2**(x - reference) of every row.

    The reference is the largest floor(x). The sum is an integer in units of 2**-36, rounded once
    to binary32 at the end. Beat by beat of `lanes` neighbours, in ascending order: the reference
    becomes the largest floor so far, the sum is shifted right by as much as it grew, and the terms
    `power_parts`, shifted right likewise, are added. What is shifted out is dropped. So with n
    elements the sum is short by less than n * 2**-36 and one rounding of what the table gives.

    Floors are taken of numbers clamped to below 2**15 in magnitude. A term of -infinity is 0, and
    a row without others has reference -32768 and sum +0. A NaN or +infinity makes both NaN.

    Parameters
    ----------
    x:
        float32 `[rows, cols]`.

    Returns
    -------
    Both float32 `[rows]`.
    """
    require_dtype("x", x, np.float32)
    rows, cols = x.shape
    padded = np.full((rows, -(-cols // lanes) * lanes), -np.inf, np.float32)
    padded[:, :cols] = x
    significand, exponent = power_parts(padded)
    significand = np.where(np.isneginf(padded), 0, significand << (POWER_SUM_BITS - FRACTION_BITS))
    reference = np.full(rows, -(1 << POWER_BITS), np.int64)
    total = np.zeros(rows, np.int64)
    for start in range(0, padded.shape[1], lanes):
        terms, floors = (part[:, start : start + lanes] for part in (significand, exponent))
        largest = np.maximum(reference, floors.max(axis=1))
        total >>= np.minimum(largest - reference, 63)
        total += (terms >> np.minimum(largest[:, None] - floors, 63)).sum(axis=1)
        reference = largest
    # a bit for all that float64 would round away keeps the one rounding
    kept = np.where(total >> 53 != 0, (total >> 9 | (total & 511 != 0)) << 9, total)
    rounded = fp32.from_float64(kept.astype(np.float64) * 2.0**-POWER_SUM_BITS)
    spoilt = (np.isnan(x) | np.isposinf(x)).any(axis=1)
    nan = np.float32(np.nan)
    return (
        fp32.canonical(np.where(spoilt, nan, reference.astype(np.float32))),
        fp32.canonical(np.where(spoilt, nan, rounded)),
    )


def maximum(x: F32, axis: int = -1) -> F32:
    """Return the largest along `axis`; of no elements it is -infinity."""
    require_dtype("x", x, np.float32)
    lowest = int(fp32.order_keys(fp32.constant(-np.inf)))
    return fp32.from_order_keys(fp32.order_keys(x).max(axis=axis, initial=lowest))


def argmax(x: F32, axis: int = -1) -> I64:
    """Return the lowest index of the largest along `axis`.

    Raises
    ------
    ValueError
        If there are no elements along `axis`, or `x` is not float32.
    """
    return np.take(top_k(x, 1, axis)[1], 0, axis)


def top_k(x: F32, k: int, axis: int = -1) -> tuple[F32, I64]:
    """Return the k largest along `axis`, the largest first, and their indices.

    Raises
    ------
    ValueError
        If `k` is not 1 to the number of elements along `axis`, or `x` is not float32.
    """
    require_dtype("x", x, np.float32)
    if k not in range(1, x.shape[axis] + 1):
        raise ValueError(f"k must be 1 to {x.shape[axis]}, the elements of a row, not {k}")
    keys = -fp32.order_keys(x).astype(np.int64)
    indices: NDArray[np.int64] = np.argsort(keys, axis, kind="stable")
    indices = np.take(indices, np.arange(k), axis)
    return fp32.canonical(np.take_along_axis(x, indices, axis)), indices
