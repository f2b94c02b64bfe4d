"""Workloads of a token that is decoded: appended to the cache, and chosen at the end."""

from __future__ import annotations

import math

import numpy as np

from poblano_golden import fp32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.kernels import attention as golden_attention
from poblano_golden.kernels import norm as golden_norm
from poblano_golden.matmul import matmul
from poblano_golden.reductions import argmax
from poblano_sw.kernel import UINT32
from poblano_sw.kernels.attention import Attend, attention
from poblano_sw.kernels.head import best_token
from poblano_sw.kernels.kv_cache import append, place_cache
from poblano_sw.kernels.norm import rms_norm
from poblano_sw.kernels.pieces import place_pieces
from poblano_sw.kernels.workloads.case import Case, quantised
from poblano_sw.kernels.workloads.workload import Expected, Workload, total_bytes

__all__ = ["decode_step", "last_token"]


def decode_step(case: Case) -> Workload:
    """Return a token appended to a cache, and attention over it."""
    shape, builder, fmt = case.shape, case.builder, case.fmt
    tokens, head, rows = shape["tokens"], shape["head"], shape["rows"]
    position, scale = tokens - 1, 1 / math.sqrt(head)
    cache = place_cache(builder, tokens, head, fmt)
    (k, k_outside), (v, v_outside) = (case.pair(1, head, name) for name in "kv")
    queries = builder.blocks(rows, head, fmt, place="hbm_0", name="queries")
    result = builder.matrix(rows, head, place="hbm_0", name="results")
    builder.load(k, k_outside)
    builder.load(v, v_outside)
    append(builder, cache, k, v, position=position)
    keys, values = cache.of(tokens)
    attend = Attend(queries, keys, values, result)
    attention(builder, [attend], scale=scale, weights=fmt, chunk=shape["chunk"])

    q, all_k, all_v = (case.normal(count, head) for count in (rows, tokens, tokens))
    first = position // 32 * 32
    opened = np.zeros((head, 32), np.float32)
    opened[:, : tokens - first] = fp32.from_bf16_bits(fp32.to_bf16_bits(all_v[first:].T))
    block = quantise(opened[:, : tokens - first].copy(), fmt, "even")
    before = opened.copy()
    before[:, position - first] = 0
    work = Workload(builder, port_bytes=total_bytes([keys, values, queries, result, k, v]))
    work.inputs += [(k_outside, all_k[position:]), (v_outside, all_v[position:])]
    work.inputs += [(queries, quantised(q, fmt)), (cache.open_values, before)]
    if position:
        work.inputs.append((cache.keys[:position], quantised(all_k[:position], fmt)))
    closed = [block]
    if first:
        known = quantised(all_v[:first].T, fmt)
        work.inputs.append((cache.values[:, :first], known))
        closed.insert(0, known)
    codes, scales = (
        np.concatenate([getattr(part, name) for part in closed], axis=1)
        for name in ("codes", "scales")
    )
    whole = MxTensor(codes, scales, fmt, "even")
    golden = golden_attention.attention(
        quantised(q, fmt),
        quantised(all_k, fmt),
        whole,
        np.ones((rows, tokens), np.bool_),
        scale=scale,
        weights=fmt,
        rule="even",
        sums=case.sums,
        chunk=shape["chunk"],
    )
    scores = q.astype(np.float64) @ all_k.T * scale
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = weights @ all_v / weights.sum(1, keepdims=True)
    work.outputs += [
        Expected(result, golden, exact),
        Expected(cache.keys, quantised(all_k, fmt), all_k.astype(np.float64)),
        Expected(cache.values, whole, all_v.T.astype(np.float64)),
        Expected(cache.open_values, opened, opened.astype(np.float64)),
    ]
    return work


def last_token(case: Case) -> Workload:
    """Return final norm, logits and arg-max of a token."""
    shape, builder = case.shape, case.builder
    vocabulary, hidden = shape["vocabulary"], shape["hidden"]
    embedding = place_pieces(builder, 1, vocabulary, hidden, case.fmt, shape["piece"], "embedding")
    (x, x_outside), (weight, weight_outside) = (
        case.pair(1, hidden, name) for name in ("x", "weight")
    )
    token, token_outside = (
        builder.matrix(1, 1, UINT32, place=place, name="token") for place in ("l1", "hbm_0")
    )
    normed = builder.blocks(1, hidden, case.fmt, name="normalised x")
    builder.load(x, x_outside)
    builder.load(weight, weight_outside)
    rms_norm(builder, normed, x, weight, epsilon=1e-5)
    best_token(builder, token, normed, embedding)
    builder.store(token_outside, token)
    numbers, weights = case.normal(1, hidden), case.normal(1, hidden)
    matrix = quantise(case.normal(vocabulary, hidden), case.fmt, "even")
    scaled = golden_norm.rms_norm(numbers, weights, epsilon=1e-5, sums=case.sums)
    logits = matmul(quantise(scaled, case.fmt, "even"), matrix)
    best = argmax(logits)[None]
    return Workload(
        builder,
        [
            (x_outside, numbers),
            (weight_outside, weights),
            *embedding.inputs(0, matrix),
        ],
        [Expected(token_outside, best, best.astype(np.float64))],
        port_bytes=embedding.port_bytes + total_bytes([x, weight, token]),
    )
