"""Rotary position embedding in binary32."""

from __future__ import annotations

import numpy as np

from poblano_golden import fp32
from poblano_golden.arrays import F32

__all__ = ["rotate_halves", "rotate_pairs"]


def rotate_pairs(x: F32, cosine: F32, sine: F32) -> F32:
    """Return x cos + partner sin, where columns 2i and 2i + 1 are partners.

    The sine's table carries the signs: - in even columns, + in odd ones.
    """
    partner = x.reshape(*x.shape[:-1], -1, 2)[..., ::-1].reshape(x.shape)
    return fp32.add(fp32.multiply(partner, sine), fp32.multiply(x, cosine))


def rotate_halves(x: F32, cosine: F32, sine: F32) -> F32:
    """Return x cos + partner sin, where columns i and i + half are partners.

    The sine's table carries the signs: - in the lower half, + in the upper.
    """
    partner = np.roll(x, x.shape[-1] // 2, axis=-1)
    return fp32.add(fp32.multiply(x, cosine), fp32.multiply(partner, sine))
