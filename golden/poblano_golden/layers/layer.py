"""A whole decoder layer, and what follows the last: norm, logits and the token that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poblano_golden.arrays import F64, I64
from poblano_golden.layers.linear import linear
from poblano_golden.layers.norm import rms_norm
from poblano_golden.layers.selection import argmax

__all__ = ["Head", "Layer"]


@dataclass(frozen=True, eq=False)
class Layer:
    """h = x + attention(norm(x)); h + mlp(norm(h)).

    Parameters
    ----------
    attention_norm, mlp_norm:
        float64 `[hidden]`, the weights of the two norms.
    attention:
        A `grouped_query.GroupedQueryAttention` or a `mla.Mla`.
    mlp:
        A `mlp.GatedMlp` or a `mixture.Mixture`.
    epsilon:
        Of both norms.
    """

    attention_norm: F64
    attention: Callable[[F64], F64]
    mlp_norm: F64
    mlp: Callable[[F64], F64]
    epsilon: float

    def __call__(self, x: F64) -> F64:
        """Return the layer of a sequence from its beginning, float64 `[tokens, hidden]`."""
        h = x + self.attention(rms_norm(x, self.attention_norm, self.epsilon))
        return h + self.mlp(rms_norm(h, self.mlp_norm, self.epsilon))


@dataclass(frozen=True, eq=False)
class Head:
    """The last norm and the map to the vocabulary.

    Parameters
    ----------
    norm:
        float64 `[hidden]`.
    weight:
        float64 `[vocabulary, hidden]`.
    epsilon:
        Of the norm.
    """

    norm: F64
    weight: F64
    epsilon: float

    def logits(self, x: F64) -> F64:
        """Return the logits of `x`, float64 `[tokens, hidden]`: float64 `[tokens, vocabulary]`."""
        return linear(rms_norm(x, self.norm, self.epsilon), self.weight)

    def token(self, x: F64) -> I64:
        """Return the token with the largest logit, the lowest of equals: int64 `[tokens]`."""
        return argmax(self.logits(x))
