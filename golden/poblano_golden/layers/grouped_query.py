"""The attention of GPT-OSS and Llama with its projections: grouped queries, window and sinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from poblano_golden.arrays import F64, I64
from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.linear import linear
from poblano_golden.layers.rope import Rope

__all__ = ["GroupedQueryAttention", "Projection"]


class Projection(NamedTuple):
    """A linear map."""

    weight: F64
    """float64 `[outputs, inputs]`."""
    bias: F64 | None = None
    """float64 `[outputs]`, or none."""


@dataclass(frozen=True, eq=False)
class GroupedQueryAttention:
    """Causal attention in which heads share keys and values.

    Parameters
    ----------
    q, k, v:
        Projections from hidden to heads x dim and, of k and v, to kv_heads x dim; dim is that of
        `rope`.
    o:
        Projection from heads x dim to hidden.
    rope:
        Turns all dim elements of q and k.
    sinks:
        float64 `[heads]`, or none: see `attention.attention`.
    window:
        Keys that a query sees, itself among them, or none for all before it.

    Raises
    ------
    ValueError
        If q, k or v has not a whole number of heads.
    """

    q: Projection
    k: Projection
    v: Projection
    o: Projection
    rope: Rope
    sinks: F64 | None = None
    window: int | None = None

    def __post_init__(self) -> None:
        for name in "qkv":
            rows = len(getattr(self, name).weight)
            if rows % self.rope.dim:
                raise ValueError(f"{name} must have heads x {self.rope.dim} rows, not {rows}")

    def __call__(self, x: F64) -> F64:
        """Return the attention of a sequence from its beginning, float64 `[tokens, hidden]`."""
        tokens = len(x)
        positions = np.arange(tokens, dtype=np.int64)
        q, k, v = self.project(x, positions)
        mask = visible(tokens, tokens, self.window)
        heads = attention(q, k, v, self.rope.dim**-0.5, mask, self.sinks)
        return linear(heads.reshape(tokens, len(self.q.weight)), *self.o)

    def project(self, x: F64, positions: I64) -> tuple[F64, F64, F64]:
        """Return q, k and v, the first two turned: float64 `[tokens, heads or kv_heads, dim]`."""

        def heads(projection: Projection) -> F64:
            return linear(x, *projection).reshape(
                len(x), len(projection.weight) // self.rope.dim, self.rope.dim
            )

        q, k, v = heads(self.q), heads(self.k), heads(self.v)
        return self.rope.rotate(q, positions), self.rope.rotate(k, positions), v
