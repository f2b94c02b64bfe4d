"""Gated MLPs of one token over MX blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from poblano_golden import fp32
from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.elementary import sigmoid
from poblano_golden.formats import MxFormat
from poblano_golden.matmul import matmul

__all__ = ["ALPHA", "GATES", "LIMIT", "Mlp", "add_mlps", "clamped_swiglu", "silu"]

ALPHA = fp32.constant(1.702)
"""What the clamped gate is multiplied by inside the sigmoid."""

LIMIT = fp32.constant(7.0)
"""Where the clamped gate ends above, and its up on both sides."""


def silu(gate: F32, up: F32) -> F32:
    """Return (sigmoid(gate) gate) up, rounded three times."""
    return fp32.multiply(up, fp32.multiply(sigmoid(gate), gate))


def clamped_swiglu(gate: F32, up: F32) -> F32:
    """Return s up + s with s = gate sigmoid(1.702 gate), gate and up clamped: (up + 1) s."""
    gate = fp32.minimum(gate, LIMIT)
    up = fp32.maximum(fp32.minimum(up, LIMIT), -LIMIT)
    gated = fp32.multiply(sigmoid(fp32.multiply(gate, ALPHA)), gate)
    return fp32.add(fp32.multiply(up, gated), gated)


GATES: Mapping[str, Callable[[F32, F32], F32]] = {"silu": silu, "clamped": clamped_swiglu}
"""What makes h of gate and up, by name."""


@dataclass(frozen=True)
class Mlp:
    """Gate and up `[intermediate, hidden]`, down `[hidden, intermediate]`, and their biases."""

    gate: MxTensor
    up: MxTensor
    down: MxTensor
    biases: tuple[F32, F32, F32] | None = None


def add_mlps(
    x: MxTensor,
    calls: Sequence[tuple[Mlp, F32 | None]],
    *,
    gate: str,
    activations: MxFormat,
    rule: str,
) -> F32:
    """Return the sum of the results of MLPs, each times its weight, in their order, `[1, hidden]`.

    Parameters
    ----------
    x:
        A token `[1, hidden]`.
    calls:
        MLPs and what each counts; None for 1.
    gate:
        A name of `GATES`.
    activations, rule:
        Format and scale rule in which h is quantised.
    """
    total: F32 | None = None
    for mlp, weight in calls:
        parts = [matmul(x, mlp.gate), matmul(x, mlp.up)]
        if mlp.biases is not None:
            parts = [fp32.add(part, bias) for part, bias in zip(parts, mlp.biases, strict=False)]
        y = matmul(quantise(GATES[gate](*parts), activations, rule), mlp.down)
        if mlp.biases is not None:
            y = fp32.add(y, mlp.biases[2])
        if weight is not None:
            y = fp32.multiply(y, weight)
        total = y if total is None else fp32.add(y, total)
    assert total is not None
    return total
