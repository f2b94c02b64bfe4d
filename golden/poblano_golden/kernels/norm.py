"""RMSNorm in binary32."""

from __future__ import annotations

from poblano_golden import fp32
from poblano_golden.arrays import F32
from poblano_golden.elementary import reciprocal_sqrt
from poblano_golden.kernels.row_sums import RowSums

__all__ = ["rms_norm"]


def rms_norm(x: F32, weight: F32, *, epsilon: float, sums: RowSums) -> F32:
    """Return x / sqrt(mean(x^2) + epsilon) * weight, `[rows, cols]`.

    The sum of squares is multiplied by 1 / cols rounded to binary32; then comes, rounded each:
    + epsilon, reciprocal root, x times that, times weight.
    """
    mean = fp32.multiply(sums(fp32.multiply(x, x)), fp32.constant(1 / x.shape[1]))
    root = reciprocal_sqrt(fp32.add(mean, fp32.constant(epsilon)))
    return fp32.multiply(fp32.multiply(x, root), weight)
