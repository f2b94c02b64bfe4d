"""Attention of one KV head over MX blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.elementary import exp, reciprocal
from poblano_golden.formats import BLOCK_SIZE, MxFormat, num_blocks
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.matmul import matmul
from poblano_golden.reductions import maximum

__all__ = ["LEAST_MAXIMUM", "LEAST_SUM", "attention"]

LEAST_MAXIMUM = fp32.constant(-(2.0**120))
"""What the maximum of a row counts as at least, so that a row without keys has one."""

LEAST_SUM = fp32.constant(2.0**-100)
"""What the sum of a row's weights counts as at least."""


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
    chunk: int | None = None,
) -> F32:
    """Return the results `[rows, head]`; a row that sees no key gives zeros.

    Keys come in chunks; for each the maximum m of the scaled scores so far, the sum t of weights
    and the sum o of weighted values are brought up to date (online softmax): the weights are
    exp(score - m), what was summed before is multiplied by exp(old m - m).

    Parameters
    ----------
    q, k:
        `[rows, head]` and `[tokens, head]`.
    v:
        Transposed, `[head, tokens]`.
    valid:
        bool `[rows, tokens]`: which keys a row sees.
    scale:
        What scores are multiplied by, rounded to binary32.
    weights, rule:
        Format and scale rule in which weights are multiplied with values.
    sums:
        The order of the sums of weights.
    sink:
        float32 `[rows]`, a logit a row that is not scaled: m and t begin with it and 1.
    chunk:
        Keys of a chunk; all by default.
    """
    rows, tokens = valid.shape
    m = np.full((rows, 1), LEAST_MAXIMUM) if sink is None else sink[:, None]
    t: F32 | None = None if sink is None else np.ones((rows, 1), np.float32)
    o: F32 | None = None
    step = chunk or tokens
    for begin in range(0, tokens, step):
        part = slice(begin, min(tokens, begin + step))
        scores = np.where(valid[:, part], matmul(q, _rows(k, part)), np.float32(-np.inf))
        scores = fp32.multiply(scores, fp32.constant(scale))
        new = fp32.maximum(maximum(scores)[:, None], m)
        factor = exp(fp32.subtract(m, new))
        w = exp(fp32.subtract(scores, new))
        total = sums(w)
        t = total if t is None else fp32.add(fp32.multiply(t, factor), total)
        product = matmul(quantise(w, weights, rule), _columns(v, part))
        o = product if o is None else fp32.add(fp32.multiply(o, factor), product)
        m = new
    assert o is not None
    assert t is not None
    return fp32.multiply(o, reciprocal(fp32.maximum(t, LEAST_SUM)))


def _rows(x: MxTensor, part: slice) -> MxTensor:
    return MxTensor(x.codes[part], x.scales[part], x.fmt, x.rule)


def _columns(x: MxTensor, part: slice) -> MxTensor:
    blocks = slice(part.start // BLOCK_SIZE, num_blocks(part.stop))
    return MxTensor(x.codes[:, part].copy(), x.scales[:, blocks].copy(), x.fmt, x.rule)
