"""The check of what callers pass to a layer: float64 arrays of a stated shape."""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F64, require_dtype

__all__ = ["require_shape"]

_MAY_BE_EMPTY = ("tokens", "queries", "keys")


def require_shape(name: str, x: F64, *axes: str | int) -> None:
    """Refuse an array that is not float64 `[*axes]`.

    An axis is given by its size, or by its name if it may have any size from 1: of `tokens`,
    `queries` and `keys` there may be none.

    Raises
    ------
    ValueError
        If the type or the shape is another.
    """
    require_dtype(name, x, np.float64)
    fits = x.ndim == len(axes) and all(
        size == axis if isinstance(axis, int) else size > 0 or axis in _MAY_BE_EMPTY
        for size, axis in zip(x.shape, axes, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must be [{', '.join(map(str, axes))}], not {list(x.shape)}")
