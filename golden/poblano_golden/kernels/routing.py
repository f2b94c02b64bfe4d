"""Routers in binary32."""

from __future__ import annotations

import numpy as np

from poblano_golden import fp32
from poblano_golden.arrays import F32, I64
from poblano_golden.elementary import exp, reciprocal, sigmoid
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.reductions import maximum, top_k

__all__ = ["route", "route_groups"]


def route(logits: F32, bias: F32, k: int, sums: RowSums) -> tuple[F32, I64]:
    """Return weights and numbers of the k experts of every row, `[rows, k]` each.

    The largest logits with bias, the lowest expert first among equals; then a softmax over them.
    """
    best, indices = top_k(fp32.add(logits, bias), k)
    w = exp(fp32.subtract(best, maximum(best)[:, None]))
    return fp32.multiply(w, reciprocal(sums(w))), indices


def route_groups(
    logits: F32, bias: F32, k: int, *, groups: int, kept: int, scale: float, sums: RowSums
) -> tuple[F32, I64]:
    """Return weights and numbers of the k experts of a token, `[1, k]` each.

    Scores are sigmoids of the logits `[1, experts]`, a bias counts in the choice only. Of `groups`
    groups of neighbours the `kept` with the largest sums of their two best biased scores remain.
    The weights are the scores of the k best over their sum, times `scale`.
    """
    scores = sigmoid(logits)
    biased = fp32.add(scores, bias).reshape(groups, -1)
    if kept < groups:
        of_groups = sums(top_k(biased, 2)[0]).T
        masked = np.full_like(biased, -np.inf)
        for group in top_k(of_groups, kept)[1][0]:
            masked[group] = biased[group]
        biased = masked
    indices = top_k(biased.reshape(1, -1), k)[1]
    chosen = scores[:, indices[0]]
    inverse = reciprocal(sums(chosen))
    return fp32.multiply(fp32.multiply(chosen, inverse), fp32.constant(scale)), indices
