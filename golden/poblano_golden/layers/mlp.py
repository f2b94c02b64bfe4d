"""Gated MLPs: a whole dense one, or one expert."""

from __future__ import annotations

from dataclasses import dataclass

from poblano_golden.arrays import F64
from poblano_golden.layers.activations import clamped_swiglu, silu
from poblano_golden.layers.linear import linear
from poblano_golden.layers.shapes import require_shape

__all__ = ["ClampedMlp", "GatedMlp"]


@dataclass(frozen=True, eq=False)
class GatedMlp:
    """down(silu(gate x) * up x): DeepSeek, Kimi and Llama.

    Parameters
    ----------
    gate, up:
        float64 `[intermediate, hidden]`.
    down:
        float64 `[hidden, intermediate]`.

    Raises
    ------
    ValueError
        If a type or a shape is wrong.
    """

    gate: F64
    up: F64
    down: F64

    def __post_init__(self) -> None:
        require_shape("gate", self.gate, "intermediate", "hidden")
        require_shape("up", self.up, *self.gate.shape)
        require_shape("down", self.down, *self.gate.shape[::-1])

    def __call__(self, x: F64) -> F64:
        """Return the MLP of `x`, float64 `[tokens, hidden]`, in the same shape."""
        return linear(silu(linear(x, self.gate)) * linear(x, self.up), self.down)


@dataclass(frozen=True, eq=False)
class ClampedMlp:
    """down(clamped_swiglu(gate_up x)) with biases: an expert of GPT-OSS.

    Parameters
    ----------
    gate_up:
        float64 `[2 intermediate, hidden]`, gates in the even rows, ups in the odd ones.
    gate_up_bias:
        float64 `[2 intermediate]`.
    down:
        float64 `[hidden, intermediate]`.
    down_bias:
        float64 `[hidden]`.
    alpha, limit:
        Of `activations.clamped_swiglu`.

    Raises
    ------
    ValueError
        If a type or a shape is wrong.
    """

    gate_up: F64
    gate_up_bias: F64
    down: F64
    down_bias: F64
    alpha: float = 1.702
    limit: float = 7.0

    def __post_init__(self) -> None:
        require_shape("down", self.down, "hidden", "intermediate")
        hidden, intermediate = self.down.shape
        require_shape("gate_up", self.gate_up, 2 * intermediate, hidden)
        require_shape("gate_up_bias", self.gate_up_bias, 2 * intermediate)
        require_shape("down_bias", self.down_bias, hidden)

    def __call__(self, x: F64) -> F64:
        """Return the expert's result for `x`, float64 `[tokens, hidden]`, in the same shape."""
        gate_up = linear(x, self.gate_up, self.gate_up_bias)
        return linear(clamped_swiglu(gate_up, self.alpha, self.limit), self.down, self.down_bias)
