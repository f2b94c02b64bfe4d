"""Array types of the golden models, and the checks of what callers pass in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["F32", "F64", "I8", "I64", "U8", "U16", "U32", "require_dtype"]

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I8 = NDArray[np.int8]
I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]


def require_dtype(name: str, array: object, *dtypes: type[np.generic]) -> None:
    """Refuse an array of any other type or byte order: nothing is converted silently.

    Raises
    ------
    ValueError
        If `array` is not a numpy array, or its type is not one of `dtypes` in native order.
    """
    dtype: object = getattr(array, "dtype", None)
    wanted = [np.dtype(d) for d in dtypes]
    if dtype is None or dtype not in wanted:
        names = " or ".join(d.name for d in wanted)
        found = type(array).__name__ if dtype is None else dtype
        raise ValueError(f"{name} must be a numpy array of {names}, not {found}")
