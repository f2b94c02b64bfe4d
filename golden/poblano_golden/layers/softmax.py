"""Softmax with an optional sink, and what it is of a row that holds nothing."""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F64, require_dtype

__all__ = ["softmax"]


def softmax(x: F64, sink: F64 | None = None) -> F64:
    """Return e^x over the sum of the row's e^x, rows along the last axis.

    A row without elements, or of -infinity alone, gives zeros, with a sink too. A NaN, or
    +infinity, makes its row NaN.

    Parameters
    ----------
    x:
        float64 `[..., n]`.
    sink:
        float64 that broadcasts to `[...]`: one more element a row, which joins the sum and is
        dropped.

    Raises
    ------
    ValueError
        If `x` is not float64.
    """
    require_dtype("x", x, np.float64)
    largest = np.max(x, axis=-1, initial=-np.inf)
    if sink is not None:
        largest = np.maximum(largest, sink)
    shift = np.where(np.isneginf(largest), 0.0, largest)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x - shift[..., None])
        total = np.sum(powers, axis=-1)
        if sink is not None:
            total = total + np.exp(sink - shift)
    return powers / np.where(total == 0, 1.0, total)[..., None]
