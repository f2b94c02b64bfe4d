"""Attention of one KV head: scores, softmax and weighted sum of values.

Scores are products of MX blocks along the head, weights of the values products of MX blocks along
the tokens. Keys come in chunks. With scale c, a row q keeps a maximum m, a sum t of weights and a
sum o of values; a chunk of keys k_j and values v_j makes them, with a = exp(m - m'),

    m' = max(m, max(c q k_j))        t' = a t + sum of w_j        w_j = exp(c q k_j - m')
    o' = a o + sum of w_j v_j

where the w_j in o' are quantised to MX blocks and those in t' are not, and w_j is 0 for keys that
the row does not see. A row begins with its sink: m is the sink and t is 1; without one m is
`LEAST_MAXIMUM` and t is 0. The result is o / t; a row that sees no key gives zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BLOCK_SIZE, MxFormat
from poblano_golden.kernels.attention import LEAST_MAXIMUM, LEAST_SUM
from poblano_sw.kernel import Blocks, Builder, Mask, Matrix
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
    mask:
        Which keys a row sees; None for all.
    sink:
        One logit a row in HBM, `[1, rows]`, not scaled; None for none.
    """

    q: Blocks
    k: Blocks
    v: Blocks
    o: Matrix
    mask: Mask | None = None
    sink: Matrix | None = None


def attention(
    builder: Builder,
    jobs: Sequence[Attend],
    *,
    scale: float,
    weights: MxFormat,
    rule: str = "even",
    chunk: int | None = None,
) -> None:
    """Run jobs one behind the other; loads, scores, softmax and sums of neighbours overlap.

    Parameters
    ----------
    builder:
        Takes the commands.
    jobs:
        What to do, all in the same formats and with the same head. A step, a chunk of a job, must
        fit L1 twice.
    scale:
        What scores are multiplied by.
    weights, rule:
        Format and scale rule of the w_j in the sums of values.
    chunk:
        Keys of a chunk, a multiple of 32; all of a job's by default.

    Raises
    ------
    PoblanoError
        If buffers do not fit L1, or the chunk is no multiple of 32.
    """
    rows, tokens = max(job.q.rows for job in jobs), max(job.k.rows for job in jobs)
    keys = tokens if chunk is None else min(tokens, chunk)
    if keys % BLOCK_SIZE and keys != tokens:
        raise PoblanoError(f"a chunk must be a multiple of {BLOCK_SIZE}; got {chunk}")
    first = jobs[0]
    head, value_head = first.q.cols, first.v.rows
    blocks, matrix = builder.blocks, builder.matrix
    with builder.scope():
        steps = _StepBuffers(
            k=Ring(2, lambda: blocks(keys, head, first.k.fmt, name="keys")),
            v=Ring(2, lambda: blocks(value_head, keys, first.v.fmt, name="values")),
            s=Ring(2, lambda: matrix(rows, keys, name="scores")),
            w=Ring(2, lambda: blocks(rows, keys, weights, name="weights")),
            o=Ring(2, lambda: matrix(rows, value_head, name="chunk's sums")),
            factor=Ring(3, lambda: matrix(1, rows, name="factors")),
        )
        wholes = _JobBuffers(
            q=Ring(2, lambda: blocks(rows, head, first.q.fmt, name="queries")),
            o=Ring(2, lambda: matrix(rows, value_head, name="sums")),
            result=Ring(2, lambda: matrix(rows, value_head, first.o.number, name="results")),
            m=Ring(3, lambda: matrix(1, rows, name="maxima")),
            t=Ring(3, lambda: matrix(1, rows, name="sums of weights")),
            sink=Ring(2, lambda: matrix(1, rows, name="sinks")),
            new=matrix(1, rows, name="new maxima"),
            part=matrix(1, rows, name="a chunk's sums of weights"),
        )
        run = _Run(builder, scale, rule, keys, steps, wholes)
        pipelined(run.steps(jobs))


@dataclass(frozen=True)
class _StepBuffers:
    k: Ring[Blocks]
    v: Ring[Blocks]
    s: Ring[Matrix]
    w: Ring[Blocks]
    o: Ring[Matrix]
    factor: Ring[Matrix]


@dataclass(frozen=True)
class _JobBuffers:
    q: Ring[Blocks]
    o: Ring[Matrix]
    result: Ring[Matrix]
    m: Ring[Matrix]
    t: Ring[Matrix]
    sink: Ring[Matrix]
    new: Matrix
    part: Matrix


@dataclass(frozen=True)
class _Run:
    builder: Builder
    scale: float
    rule: str
    chunk: int
    buffers: _StepBuffers
    wholes: _JobBuffers

    def steps(self, jobs: Sequence[Attend]) -> Iterator[Iterator[None]]:
        """Yield the steps of all jobs."""
        step = 0
        for number, job in enumerate(jobs):
            for begin in range(0, job.k.rows, self.chunk):
                yield self._step(job, number, begin, step)
                step += 1

    def _step(self, job: Attend, number: int, begin: int, step: int) -> Iterator[None]:
        """Yield between the stages of a chunk."""
        builder, buffers, wholes = self.builder, self.buffers, self.wholes
        end = min(job.k.rows, begin + self.chunk)
        rows, keys, head = job.q.rows, end - begin, job.v.rows
        is_first, is_last = begin == 0, end == job.k.rows

        q = builder.view(wholes.q[number], rows, job.q.cols)
        k = builder.view(buffers.k[step], keys, job.k.cols)
        if is_first:
            builder.load(q, job.q)
            if job.sink is not None:
                builder.load(builder.view(wholes.sink[number], 1, rows), job.sink)
        builder.load(k, job.k[begin:end])
        yield
        v = builder.view(buffers.v[step], head, keys)
        s = builder.view(buffers.s[step], rows, keys)
        builder.load(v, job.v[:, begin:end])
        builder.matmul(s, q, k)
        yield
        w = builder.view(buffers.w[step], rows, keys)
        self._weigh(job, number, begin, step, s, w)
        yield
        product = builder.view(buffers.o[step], rows, head)
        builder.matmul(product, w, v)
        yield
        o = builder.view(wholes.o[number], rows, head)
        if not is_first:
            factor = builder.view(buffers.factor[step], 1, rows)
            builder.vector(o, factor1=factor, operation1=("add", product), d=o)
        elif not is_last:
            builder.vector(product, d=o)
        if is_last:
            t = builder.view(wholes.t[number], 1, rows)
            result = builder.view(wholes.result[number], rows, head)
            builder.vector(product if is_first else o, factor1=t, d=result)
            builder.store(job.o, result)

    def _weigh(self, job: Attend, number: int, begin: int, step: int, s: Matrix, w: Blocks) -> None:
        """Turn scores into weights; bring the maximum and the sum of weights up to date."""
        builder, wholes, rows = self.builder, self.wholes, s.rows
        m, t, new, part, sink, factor = (
            builder.view(buffer, 1, rows)
            for buffer in (
                wholes.m[number],
                wholes.t[number],
                wholes.new,
                wholes.part,
                wholes.sink[number],
                self.buffers.factor[step],
            )
        )
        mask = None
        if job.mask is not None:
            mask = replace(job.mask, limit=job.mask.limit - begin)
        is_first = begin == 0
        before = m
        if is_first:
            before = float(LEAST_MAXIMUM) if job.sink is None else sink
        builder.vector(s, factor1=self.scale, reduction=("maximum", new), mask=mask, fill=-math.inf)
        builder.vector(new, operation1=("maximum", before), d=new)
        has_factor = not is_first or job.sink is not None
        if isinstance(before, Matrix):
            builder.vector(before, operation1=("subtract", new), function="exp", d=factor)
        is_last = begin + s.cols == job.k.rows
        if not is_last:
            builder.vector(new, d=m)
        builder.vector(
            s,
            factor1=self.scale,
            operation1=("subtract", new),
            function="exp",
            d=w,
            rule=self.rule,
            reduction=("sum", part if has_factor else t),
            mask=mask,
            fill=-math.inf,
        )
        if not is_first:
            builder.vector(t, factor1=factor, operation1=("add", part), d=t)
        elif has_factor:
            builder.vector(factor, operation1=("add", part), d=t)
        if is_last:
            least = float(LEAST_SUM)
            builder.vector(t, operation1=("maximum", least), function="reciprocal", d=t)
