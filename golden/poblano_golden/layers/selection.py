"""The largest k of a row in float64, in the order of `reductions.top_k`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F64, I64, require_dtype

__all__ = ["argmax", "top_k"]


def top_k(x: F64, k: int) -> I64:
    """Return the indices of the k largest along the last axis, the largest first.

    -0 is below +0, NaN above all. Among equals the lowest index comes first.

    Raises
    ------
    ValueError
        If `k` is not 1 to the number of elements along the last axis, or `x` is not float64.
    """
    require_dtype("x", x, np.float64)
    if k not in range(1, x.shape[-1] + 1):
        raise ValueError(f"k must be 1 to {x.shape[-1]}, the elements of a row, not {k}")
    bits = np.where(np.isnan(x), np.nan, x).view(np.int64)
    ascending = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
    order: NDArray[np.int64] = np.argsort(~ascending, axis=-1, kind="stable")
    return order[..., :k]


def argmax(x: F64) -> I64:
    """Return the lowest index of the largest along the last axis.

    Raises
    ------
    ValueError
        If there are no elements along the last axis, or `x` is not float64.
    """
    return top_k(x, 1)[..., 0]
