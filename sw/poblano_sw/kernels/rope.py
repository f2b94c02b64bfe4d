"""Rotary position embedding of heads, half-split or interleaved.

A pair (x, y) turns into (x cos - y sin, y cos + x sin). The tables hold, for every column of a
head, the cosine and the sine with its sign: - in the column of x, + in the column of y.
"""

from __future__ import annotations

from poblano_sw.kernel import Builder, Matrix
from poblano_sw.kernel.tensors import Tensor

__all__ = ["rotate_halves", "rotate_pairs"]


def rotate_pairs(builder: Builder, d: Tensor, x: Matrix, cosine: Matrix, sine: Matrix) -> None:
    """Turn the pairs (0, 1), (2, 3), ... of every row, in one pass.

    `x` and `d` are `[rows, head]`, the tables `[1, head]` or `[rows, head]`; all lie in L1.
    """
    builder.vector(x, factor1=cosine, left2="pair", factor2=sine, operation2=("add", "m1"), d=d)


def rotate_halves(builder: Builder, d: Matrix, x: Matrix, cosine: Matrix, sine: Matrix) -> None:
    """Turn the pairs (0, h), (1, h + 1), ... of every row, 2h its columns, in four passes.

    `x` and `d` are `[rows, head]` and not the same, the tables `[1, head]` or `[rows, head]`.
    """
    half = x.cols // 2
    low, high = slice(0, half), slice(half, x.cols)
    with builder.scope():
        product = builder.matrix(x.rows, half, name="products")
        for here, other in ((low, high), (high, low)):
            builder.vector(x[:, other], factor1=sine[:, here], d=product)
            builder.vector(
                x[:, here],
                factor1=cosine[:, here],
                operation1=("add", product),
                d=d[:, here],
            )
