"""Softmax of rows: exp(x - m) / sum, m being the maximum, in three passes."""

from __future__ import annotations

from poblano_sw.kernel import Builder, Matrix

__all__ = ["softmax"]


def softmax(builder: Builder, d: Matrix, x: Matrix) -> None:
    """Write the softmax of every row of x to d; both are `[rows, cols]` in L1.

    What is divided is multiplied by a reciprocal rounded to binary32.
    """
    with builder.scope():
        m, total = (builder.matrix(1, x.rows, name=name) for name in ("maxima", "sums"))
        builder.vector(x, reduction=("maximum", m))
        builder.vector(x, operation1=("subtract", m), function="exp", d=d, reduction=("sum", total))
        builder.vector(total, function="reciprocal", d=total)
        builder.vector(d, factor1=total, d=d)
