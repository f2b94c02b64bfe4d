"""Root-mean-square normalisation."""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F64
from poblano_golden.layers.shapes import require_shape

__all__ = ["rms_norm"]


def rms_norm(x: F64, weight: F64, epsilon: float) -> F64:
    """Return x / sqrt(mean(x^2) + epsilon) times weight, the mean over the last axis.

    Parameters
    ----------
    x:
        float64 `[tokens, hidden]`.
    weight:
        float64 `[hidden]`.
    epsilon:
        Added to the mean square, above 0: a row of zeros gives zeros.

    Raises
    ------
    ValueError
        If a type or a shape is wrong, or `epsilon` not above 0.
    """
    require_shape("weight", weight, "hidden")
    require_shape("x", x, "tokens", weight.size)
    if not epsilon > 0:
        raise ValueError(f"epsilon must be above 0, not {epsilon:g}")
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + epsilon) * weight
