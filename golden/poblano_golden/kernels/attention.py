"""Attention of one KV head over MX blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.elementary import exp, reciprocal
from poblano_golden.formats import MxFormat
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.matmul import matmul
from poblano_golden.reductions import maximum

__all__ = ["LEAST_MAXIMUM", "LEAST_SUM", "attention", "softmax"]

LEAST_MAXIMUM = np.float32(-(2.0**120))
"""What the maximum of a row counts as at least, so that a row without keys has one."""

LEAST_SUM = np.float32(2.0**-100)
"""What the sum of a row's weights counts as at least."""


def softmax(x: F32, sums: RowSums) -> F32:
    """Return exp(x - maximum) times the reciprocal of its sum, for every row."""
    w = exp(fp32.subtract(x, maximum(x)[:, None]))
    return fp32.multiply(w, reciprocal(sums(w)))


def attention(
    q: MxTensor,
    k: MxTensor,
    v: MxTensor,
    valid: NDArray[np.bool_],
    *,
    scale: float,
    weights: MxFormat,
    rule: str,
    sums: RowSums,
    sink: F32 | None = None,
) -> F32:
    """Return the results `[rows, head]`; a row that sees no key gives zeros.

    For every row, with scores c q k_j, m their maximum and that of the sink if there is one, and
    w_j = exp(c q k_j - m), the sum of w_j v_j times the reciprocal of the sum of all w_j and
    exp(sink - m). The w_j of the first sum are quantised, blocks along the tokens.

    Parameters
    ----------
    q, k:
        `[rows, head]` and `[tokens, head]`.
    v:
        Transposed, `[head, tokens]`.
    valid:
        bool `[rows, tokens]`: which keys a row sees.
    scale:
        c, rounded to binary32.
    weights, rule:
        Format and scale rule of the quantised w_j.
    sums:
        The order of the sum of w_j.
    sink:
        float32 `[rows]`, a logit a row that is not scaled.
    """
    scores = np.where(valid, matmul(q, k), np.float32(-np.inf))
    scores = fp32.multiply(scores, np.float32(scale))
    least = LEAST_MAXIMUM if sink is None else sink[:, None]
    m = fp32.maximum(maximum(scores)[:, None], least)
    w = exp(fp32.subtract(scores, m))
    total = sums(w)
    if sink is not None:
        total = fp32.add(total, exp(fp32.subtract(sink[:, None], m)))
    inverse = reciprocal(fp32.maximum(total, LEAST_SUM))
    return fp32.multiply(matmul(quantise(w, weights, rule), v), inverse)
