"""Routers: which experts a token goes to, and what each counts."""

from __future__ import annotations

import math

from poblano_golden.errors import PoblanoError
from poblano_sw.kernel import FP32, UINT32, Builder, Mask, Matrix

__all__ = ["route", "route_groups"]

_KEEP_ROWS = """
# r1: numbers of the rows that are kept, r2: how many, r3: a list of row numbers, r4: its length
    add r5, r3, r0
    add r6, r4, r0
fill: store32 r4, r5, 0
    addi r5, r5, 4
    addi r6, r6, -1
    bne r6, r0, fill
keep: load32 r6, r1, 0
    add r5, r6, r6
    add r5, r5, r5
    add r5, r5, r3
    store32 r6, r5, 0
    addi r1, r1, 4
    addi r2, r2, -1
    bne r2, r0, keep
    halt
"""
"""Writes a list with its own places where they are kept, and with its length at all others."""


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


def route_groups(
    builder: Builder,
    indices: Matrix,
    weights: Matrix,
    logits: Matrix,
    bias: Matrix,
    *,
    groups: int,
    kept: int,
    scale: float,
) -> None:
    """Choose the experts of a token as DeepSeek does; with one group as Kimi does.

    Scores are sigmoids of the logits; a bias counts in the choice only. A group's score is the sum
    of its two best biased ones; the `kept` best groups remain, of the others no expert is chosen.
    The weights of the k best are their scores over the sum of them, times `scale`. The lowest
    number goes first among equals.

    Parameters
    ----------
    builder:
        Takes the commands.
    indices, weights:
        uint32 and binary32 `[1, k]` in L1.
    logits, bias:
        binary32 `[1, experts]` in L1; the logits become the scores.
    groups, kept:
        Groups of neighbouring experts, and how many of them remain.
    scale:
        What the weights are multiplied by.
    """
    experts, k = logits.cols, weights.cols
    if experts % groups or experts // groups < _GROUP_BEST:
        raise PoblanoError(
            f"{experts} experts must make {groups} groups of {_GROUP_BEST} experts at least"
        )
    if not 1 <= kept <= groups or k > experts // groups * kept:
        raise PoblanoError(f"{kept} groups of {groups} must hold the {k} experts that are chosen")
    with builder.scope():
        table = builder.matrix(groups + 1, experts // groups, name="biased scores")
        biased = table[:groups]
        flat = biased.reshaped(1, experts)
        best = builder.matrix(1, k, name="best scores")
        builder.vector(logits, function="sigmoid", d=logits)
        builder.vector(logits, operation1=("add", bias), d=flat)
        if kept < groups:
            flat = _best_groups(builder, table, kept).reshaped(1, experts)
        builder.topk(flat, best, indices)
        total = builder.matrix(1, 1, name="total")
        chosen = best.reshaped(k, 1)
        builder.vector(logits.reshaped(experts, 1), index=indices, d=chosen)
        builder.vector(best, reduction=("sum", total))
        builder.vector(total, function="reciprocal", d=total)
        builder.vector(best, factor1=total, factor2=scale, d=weights)


_GROUP_BEST = 2
"""Experts whose scores make that of their group."""


def _best_groups(builder: Builder, table: Matrix, kept: int) -> Matrix:
    """Return the scores of the best groups at their places, -infinity at the others.

    `table` has a row a group, and one more, which becomes -infinity.
    """
    groups, cols = table.rows - 1, table.cols
    biased, nothing = table[:groups], table[groups:]
    masked = builder.matrix(groups, cols, name="masked scores")
    two, places = (
        builder.matrix(groups, _GROUP_BEST, number, name="best of groups")
        for number in (FP32, UINT32)
    )
    scores, best = builder.matrix(1, groups), builder.matrix(1, kept)
    rows, taken = (builder.matrix(1, count, UINT32, name="groups") for count in (kept, groups))
    code = builder.code(_KEEP_ROWS, name="choice of groups")
    builder.vector(nothing, mask=Mask(0), fill=-math.inf, d=nothing)
    builder.topk(biased, two, places)
    builder.vector(two, reduction=("sum", scores))
    builder.topk(scores, best, rows)
    registers = (rows.address, kept, taken.address, groups)
    builder.scalar(code, registers, reads=(rows,), writes=(taken,))
    builder.vector(table, index=taken, d=masked)
    return masked
