"""Attention of one KV head: scores, softmax and weighted sum of values.

Scores are products of MX blocks along the head, weights of the values products of MX blocks along
the tokens. With scale c, and rows q, for every row

    m = max(c q k_j), with the row's sink if there is one
    w_j = exp(c q k_j - m), 0 for keys that the row does not see
    o = (sum of w_j v_j) / (sum of w_j + exp(sink - m))

where the w_j of the numerator are quantised to MX blocks, those of the denominator are not. A row
that sees no key gives zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from poblano_golden.formats import MxFormat
from poblano_golden.kernels.attention import LEAST_MAXIMUM, LEAST_SUM
from poblano_sw.kernel import Blocks, Builder, Matrix
from poblano_sw.kernel.pipeline import Ring, pipelined

__all__ = ["Attend", "attention"]

@dataclass(frozen=True)
class Attend:
    """Rows of queries that attend to the same keys.

    Parameters
    ----------
    q:
        Queries in HBM, `[rows, head]`, blocks along the head.
    k:
        Keys in HBM, `[tokens, head]`, blocks along the head.
    v:
        Values in HBM, transposed, `[head, tokens]`, blocks along the tokens.
    o:
        The results in HBM, `[rows, head]`.
    limit, limit_step:
        Row r sees the keys before `limit + r * limit_step`; None for all.
    window:
        How many of these at most, 0 for all.
    sink:
        One logit a row in HBM, `[1, rows]`, not scaled; None for none.
    """

    q: Blocks
    k: Blocks
    v: Blocks
    o: Matrix
    limit: int | None = None
    limit_step: int = 0
    window: int = 0
    sink: Matrix | None = None


def attention(
    builder: Builder,
    jobs: Sequence[Attend],
    *,
    scale: float,
    weights: MxFormat,
    rule: str = "even",
) -> None:
    """Run jobs one behind the other; loads, scores, softmax and sums of neighbours overlap.

    Parameters
    ----------
    builder:
        Takes the commands.
    jobs:
        What to do; all of the shapes fit L1 twice.
    scale:
        What scores are multiplied by.
    weights:
        The format of the w_j in the sums of values.
    rule:
        The scale rule of the w_j.
    """
    rows = max(job.q.rows for job in jobs)
    tokens = max(job.k.rows for job in jobs)
    head, value_head = jobs[0].q.cols, jobs[0].v.rows
    job_number = jobs[0].o.number
    k_format, v_format, q_format = jobs[0].k.fmt, jobs[0].v.fmt, jobs[0].q.fmt
    with builder.scope():
        make = builder.matrix
        buffers = _Buffers(
            q=Ring(2, lambda: builder.blocks(rows, head, q_format, name="queries")),
            k=Ring(2, lambda: builder.blocks(tokens, head, k_format, name="keys")),
            v=Ring(2, lambda: builder.blocks(value_head, tokens, v_format, name="values")),
            s=Ring(2, lambda: make(rows, tokens, name="scores")),
            w=Ring(2, lambda: builder.blocks(rows, tokens, weights, name="weights")),
            o=Ring(2, lambda: make(rows, value_head, name="sums")),
            results=Ring(2, lambda: make(rows, value_head, job_number, name="results")),
            numbers=Ring(3, lambda: [make(1, rows, name=name) for name in ("m", "sum", "sink")]),
        )
        pipelined(
            _attend(builder, job, number, buffers, scale, rule) for number, job in enumerate(jobs)
        )


@dataclass(frozen=True)
class _Buffers:
    q: Ring[Blocks]
    k: Ring[Blocks]
    v: Ring[Blocks]
    s: Ring[Matrix]
    w: Ring[Blocks]
    o: Ring[Matrix]
    results: Ring[Matrix]
    numbers: Ring[list[Matrix]]


def _attend(
    builder: Builder, job: Attend, number: int, buffers: _Buffers, scale: float, rule: str
) -> Iterator[None]:
    """Yield between the stages of a job."""
    rows, tokens = job.q.rows, job.k.rows
    q, k = builder.view(buffers.q[number], rows, job.q.cols), buffers.k[number]
    k = builder.view(k, tokens, job.k.cols)
    v = builder.view(buffers.v[number], job.v.rows, tokens)
    o = builder.view(buffers.o[number], rows, job.v.rows)
    s = builder.view(buffers.s[number], rows, tokens)
    w = builder.view(buffers.w[number], rows, tokens)
    m, total, sink = (builder.view(item, 1, rows) for item in buffers.numbers[number])
    builder.load(q, job.q)
    builder.load(k, job.k)
    if job.sink is not None:
        builder.load(sink, job.sink)
    yield
    builder.load(v, job.v)
    builder.matmul(s, q, k)
    yield
    mask = {
        "limit": job.limit,
        "limit_step": job.limit_step,
        "window": job.window,
        "fill": -np.inf,
    }
    builder.vector(s, factor1=scale, reduction=("maximum", m), **mask)
    least = float(LEAST_MAXIMUM) if job.sink is None else sink
    builder.vector(m, operation1=("maximum", least), d=m)
    builder.vector(
        s,
        factor1=scale,
        operation1=("subtract", m),
        function="exp",
        d=w,
        rule=rule,
        reduction=("sum", total),
        **mask,
    )
    if job.sink is not None:
        builder.vector(sink, operation1=("subtract", m), function="exp", d=sink)
        builder.vector(total, operation1=("add", sink), d=total)
    builder.vector(total, operation1=("maximum", float(LEAST_SUM)), function="reciprocal", d=total)
    yield
    builder.matmul(o, w, v)
    yield
    result = builder.view(buffers.results[number], rows, job.v.rows)
    builder.vector(o, factor1=total, d=result)
    builder.store(job.o, result)
