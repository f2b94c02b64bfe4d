"""RMSNorm: x / sqrt(mean(x^2) + epsilon) * weight."""

from __future__ import annotations

from poblano_sw.kernel import Builder, Matrix
from poblano_sw.kernel.tensors import Tensor

__all__ = ["rms_norm"]


def rms_norm(builder: Builder, d: Tensor, x: Matrix, weight: Matrix, *, epsilon: float) -> None:
    """Normalise the rows of x, all in L1.

    The sum of squares is multiplied by 1 / columns rounded to binary32.

    Parameters
    ----------
    builder:
        Takes the commands.
    d:
        The results `[rows, cols]`: plain numbers, or MX blocks for a product that follows.
    x:
        `[rows, cols]`.
    weight:
        `[1, cols]`.
    epsilon:
        Added to the mean of squares.
    """
    with builder.scope():
        root = builder.matrix(1, x.rows, name="roots")
        builder.vector(x, factor1="a", reduction=("sum", root))
        builder.vector(
            root,
            factor1=1 / x.cols,
            operation1=("add", epsilon),
            function="reciprocal_sqrt",
            d=root,
        )
        builder.vector(x, factor1=root, factor2=weight, d=d)
