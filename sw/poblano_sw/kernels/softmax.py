"""Softmax of rows in two passes: reference and sum of the powers, then every power over it."""

from __future__ import annotations

from poblano_golden.kernels.softmax import LOG2_E
from poblano_sw.kernel import Builder, Matrix

__all__ = ["softmax"]


def softmax(builder: Builder, d: Matrix, x: Matrix) -> None:
    """Write the softmax of every row of x to d; both are `[rows, cols]` in L1.

    A row of -infinity alone gives NaN.
    """
    with builder.scope():
        parts = builder.matrix(2, x.rows, name="references and sums")
        scale = float(LOG2_E)
        builder.vector(x, factor1=scale, reduction=("softmax", parts))
        builder.vector(
            x,
            factor1=scale,
            operation1=("subtract", parts[:1]),
            function="exp2",
            divisor=parts[1:],
            d=d,
        )
