"""Workloads of attention over a cache that is there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poblano_golden.kernels import attention as golden_attention
from poblano_golden.vector import valid_columns
from poblano_sw.kernel import Blocks, Mask
from poblano_sw.kernels.attention import Attend, attention
from poblano_sw.kernels.workloads.case import Case, quantised
from poblano_sw.kernels.workloads.workload import Expected, Workload, total_bytes

__all__ = ["attended"]


@dataclass(frozen=True)
class _Head:
    """A KV head of a workload: its tensors in HBM, and its jobs by their first query."""

    keys: Blocks
    values: Blocks
    jobs: Mapping[int, Attend]


def attended(case: Case, *, causal: bool) -> Workload:
    """Return attention of heads, causal in tiles of queries or of one token's."""
    shape, builder = case.shape, case.builder
    tokens, head = shape["tokens"], shape["head"]
    width = shape.get("values", head)
    rows = tokens if causal else shape["rows"]
    tile = shape.get("tile", rows)
    heads: list[_Head] = []
    for number in range(shape["heads"]):
        keys = builder.blocks(tokens, head, case.fmt, place="hbm_0", name=f"keys {number}")
        values = builder.blocks(width, tokens, case.fmt, place="hbm_0", name=f"values {number}")
        jobs: dict[int, Attend] = {}
        for first in range(0, rows, tile):
            count = min(tile, rows - first)
            seen = min(tokens, -(-(first + count) // 32) * 32) if causal else tokens
            name = f"results {number}, {first}"
            jobs[first] = Attend(
                builder.blocks(count, head, case.fmt, place="hbm_0", name="queries"),
                keys[:seen],
                values[:, :seen],
                builder.matrix(count, width, place="hbm_0", name=name),
                Mask(first + 1 if causal else tokens, 1 if causal else 0, shape["window"]),
                sink=builder.matrix(1, count, place="hbm_0") if shape["sinks"] else None,
            )
        heads.append(_Head(keys, values, jobs))
    attention(
        builder,
        [job for head in heads for job in head.jobs.values()],
        scale=1 / math.sqrt(head),
        weights=case.fmt,
        chunk=shape["chunk"],
    )
    work = Workload(builder)
    for one in heads:
        _numbers(case, work, one, rows, tokens)
    return work


def _numbers(case: Case, work: Workload, head: _Head, rows: int, tokens: int) -> None:
    """Give a head its numbers, and its jobs what must come out."""
    fmt, width = case.fmt, case.shape["head"]
    q, k, v = (case.normal(count, width) for count in (rows, tokens, tokens))
    v = v[:, : head.values.rows]
    if case.shape.get("latent"):
        v = k[:, : head.values.rows]
    sinks = case.normal(1, rows)
    work.inputs += [(head.keys, quantised(k, fmt)), (head.values, quantised(v.T, fmt))]
    work.port_bytes += total_bytes([head.keys, head.values])
    scale = 1 / math.sqrt(width)
    for first, job in head.jobs.items():
        part, seen = slice(first, first + job.q.rows), job.k.rows
        sink = None if job.sink is None else sinks[:, part]
        if job.sink is not None:
            work.inputs.append((job.sink, sinks[:, part]))
        work.inputs.append((job.q, quantised(q[part], fmt)))
        work.port_bytes += total_bytes([job.q, job.o])
        mask = job.mask
        assert mask is not None
        valid = valid_columns(job.q.rows, seen, mask.limit, mask.limit_step, mask.window)
        golden = golden_attention.attention(
            quantised(q[part], fmt),
            quantised(k[:seen], fmt),
            quantised(v[:seen].T, fmt),
            valid,
            scale=scale,
            weights=fmt,
            rule="even",
            sums=case.sums,
            sink=None if sink is None else sink[0],
            chunk=case.shape["chunk"],
        )
        scores = np.where(valid, q[part].astype(np.float64) @ k[:seen].T * scale, -np.inf)
        top = scores.max(1, keepdims=True)
        if sink is not None:
            top = np.maximum(top, sink.T)
        weights = np.exp(scores - top)
        total = weights.sum(1, keepdims=True)
        if sink is not None:
            total = total + np.exp(sink.T - top)
        work.outputs.append(Expected(job.o, golden, weights @ v[:seen] / total))
