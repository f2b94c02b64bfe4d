"""GPT-OSS's mixture of experts for one token, over MX blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poblano_golden import fp32
from poblano_golden.arrays import F32, I64
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.elementary import exp, reciprocal, sigmoid
from poblano_golden.formats import MxFormat
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.matmul import matmul
from poblano_golden.reductions import maximum, top_k

__all__ = ["ALPHA", "LIMIT", "Expert", "clamped_swiglu", "moe", "route"]

ALPHA = fp32.constant(1.702)
"""What the gate is multiplied by inside the sigmoid."""

LIMIT = fp32.constant(7.0)
"""Where gate and up are clamped."""


@dataclass(frozen=True)
class Expert:
    """An expert: gate, up `[intermediate, hidden]`, down `[hidden, intermediate]`, biases."""

    gate: MxTensor
    up: MxTensor
    down: MxTensor
    gate_bias: F32
    up_bias: F32
    down_bias: F32


def route(logits: F32, bias: F32, k: int, sums: RowSums) -> tuple[F32, I64]:
    """Return weights and numbers of the k experts of every row, `[rows, k]` each.

    The largest logits with bias, the lowest expert first among equals; then a softmax over them.
    """
    best, indices = top_k(fp32.add(logits, bias), k)
    w = exp(fp32.subtract(best, maximum(best)[:, None]))
    return fp32.multiply(w, reciprocal(sums(w))), indices


def clamped_swiglu(gate: F32, up: F32) -> F32:
    """Return s up + s with s = gate sigmoid(1.702 gate), gate and up clamped: (up + 1) s."""
    gate = fp32.minimum(gate, LIMIT)
    up = fp32.maximum(fp32.minimum(up, LIMIT), -LIMIT)
    gated = fp32.multiply(sigmoid(fp32.multiply(gate, ALPHA)), gate)
    return fp32.add(fp32.multiply(up, gated), gated)


def moe(
    x: MxTensor, experts: Sequence[Expert], weights: F32, *, activations: MxFormat, rule: str
) -> F32:
    """Return the weighted sum of the chosen experts, in their order, `[1, hidden]`.

    Parameters
    ----------
    x:
        A token `[1, hidden]`.
    experts:
        Those chosen.
    weights:
        float32 `[len(experts)]`.
    activations, rule:
        Format and scale rule in which the hidden activations are quantised.
    """
    total: F32 | None = None
    for expert, weight in zip(experts, weights, strict=True):
        gate = fp32.add(matmul(x, expert.gate), expert.gate_bias)
        up = fp32.add(matmul(x, expert.up), expert.up_bias)
        h = quantise(clamped_swiglu(gate, up), activations, rule)
        y = fp32.multiply(fp32.add(matmul(h, expert.down), expert.down_bias), weight)
        total = y if total is None else fp32.add(y, total)
    assert total is not None
    return total
