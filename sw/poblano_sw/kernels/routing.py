"""Routers: which experts a token goes to, and what each counts."""

from __future__ import annotations

from poblano_sw.kernel import Builder, Matrix

__all__ = ["route"]


def route(builder: Builder, indices: Matrix, weights: Matrix, logits: Matrix, bias: Matrix) -> None:
    """Choose the experts of a token as GPT-OSS does.

    The k largest logits with bias, the lowest expert first among equals; a softmax over them gives
    the weights.

    Parameters
    ----------
    builder:
        Takes the commands.
    indices, weights:
        uint32 and binary32 `[1, k]` in L1.
    logits, bias:
        binary32 `[1, experts]` in L1; the logits become those with bias.
    """
    with builder.scope():
        best = builder.matrix(1, weights.cols, name="best logits")
        total, largest = (builder.matrix(1, 1, name=name) for name in ("total", "largest"))
        builder.vector(logits, operation1=("add", bias), d=logits)
        builder.topk(logits, best, indices)
        builder.vector(best, reduction=("maximum", largest))
        builder.vector(
            best,
            operation1=("subtract", largest),
            function="exp",
            d=best,
            reduction=("sum", total),
        )
        builder.vector(total, function="reciprocal", d=total)
        builder.vector(best, factor1=total, d=weights)
