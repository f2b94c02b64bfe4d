"""The activations of gated MLPs."""

from __future__ import annotations

import numpy as np

from poblano_golden.arrays import F64

__all__ = ["clamped_swiglu", "sigmoid", "silu"]


def sigmoid(x: F64) -> F64:
    """Return 1 / (1 + e^-x)."""
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def silu(x: F64) -> F64:
    """Return x sigmoid(x); NaN of -infinity, which is infinity times 0."""
    with np.errstate(invalid="ignore"):
        return x * sigmoid(x)


def clamped_swiglu(gate_up: F64, alpha: float = 1.702, limit: float = 7.0) -> F64:
    """Return GPT-OSS's activation: gate sigmoid(alpha gate) (up + 1), both clamped.

    Parameters
    ----------
    gate_up:
        float64 `[tokens, 2 intermediate]`: gates in the even columns, ups in the odd ones.
    alpha:
        Factor of the gate inside the sigmoid.
    limit:
        The gate is clamped to at most `limit`, not below; the up to -limit..limit. NaN stays.

    Returns
    -------
    float64 `[tokens, intermediate]`.
    """
    gate = np.minimum(gate_up[..., 0::2], limit)
    up = np.clip(gate_up[..., 1::2], -limit, limit)
    with np.errstate(invalid="ignore"):
        return gate * sigmoid(alpha * gate) * (up + 1)
