"""Routers in binary32."""

from __future__ import annotations

from poblano_golden import fp32
from poblano_golden.arrays import F32, I64
from poblano_golden.elementary import exp, reciprocal
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.reductions import maximum, top_k

__all__ = ["route"]


def route(logits: F32, bias: F32, k: int, sums: RowSums) -> tuple[F32, I64]:
    """Return weights and numbers of the k experts of every row, `[rows, k]` each.

    The largest logits with bias, the lowest expert first among equals; then a softmax over them.
    """
    best, indices = top_k(fp32.add(logits, bias), k)
    w = exp(fp32.subtract(best, maximum(best)[:, None]))
    return fp32.multiply(w, reciprocal(sums(w))), indices
