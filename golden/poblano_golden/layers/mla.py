"""Multi-head latent attention of DeepSeek and Kimi: the naive and the absorbed form.

A token leaves behind a latent c, from which every head's key and value follow, and one key part
with positions that all heads share: kv_rank + rope numbers, whatever the number of heads.
The naive form makes keys and values of all heads from c. The absorbed form carries the map of the
keys over to the queries and that of the values behind the attention; the heads then share c.

Source: DeepSeek-AI, DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language
Model, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F64, I64
from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.linear import linear
from poblano_golden.layers.norm import rms_norm
from poblano_golden.layers.rope import Rope
from poblano_golden.layers.shapes import require_shape

__all__ = ["Latents", "Mla", "MlaQueries", "attend_absorbed", "attend_naive"]


class MlaQueries(NamedTuple):
    """The two parts of the queries."""

    nope: F64
    """float64 `[queries, heads, nope]`, without positions."""
    rope: F64
    """float64 `[queries, heads, rope]`, turned."""


class Latents(NamedTuple):
    """What a KV cache holds."""

    c: F64
    """float64 `[keys, kv_rank]`, normalised."""
    rope: F64
    """float64 `[keys, rope]`, turned."""


@dataclass(frozen=True, eq=False)
class Mla:
    """Multi-head latent attention with its projections.

    Parameters
    ----------
    q_a, q_norm, q_b:
        float64 `[q_rank, hidden]`, `[q_rank]`, `[heads (nope + rope), q_rank]`.
    kv_a, kv_norm:
        float64 `[kv_rank + rope, hidden]`, `[kv_rank]`.
    kv_b:
        float64 `[heads (nope + v), kv_rank]`: of each head the key's rows, then the value's.
    o:
        float64 `[hidden, heads v]`.
    heads:
        Number of heads.
    rope:
        Turns the second part of queries and keys.
    softmax_factor:
        What the softmax scale, (nope + rope)^-0.5, is multiplied by: `yarn.Yarn.softmax_factor`.
    epsilon:
        Of the two norms; 1e-6 also where the layer's own norms have another.

    Raises
    ------
    ValueError
        If a type or a shape is wrong.
    """

    q_a: F64
    q_norm: F64
    q_b: F64
    kv_a: F64
    kv_norm: F64
    kv_b: F64
    o: F64
    heads: int
    rope: Rope
    softmax_factor: float = 1.0
    epsilon: float = 1e-6

    def __post_init__(self) -> None:
        require_shape("q_a", self.q_a, "q_rank", "hidden")
        q_rank, hidden = self.q_a.shape
        require_shape("kv_norm", self.kv_norm, "kv_rank")
        require_shape("q_norm", self.q_norm, q_rank)
        require_shape("kv_a", self.kv_a, self.kv_norm.size + self.rope.dim, hidden)
        require_shape("o", self.o, hidden, "heads x v")
        if self.heads < 1 or self.o.shape[1] % self.heads:
            raise ValueError(f"heads must divide heads x v, {self.o.shape[1]}, not {self.heads}")
        require_shape("q_b", self.q_b, "heads x (nope + rope)", q_rank)
        nope = len(self.q_b) // self.heads - self.rope.dim
        if nope < 1 or len(self.q_b) % self.heads:
            raise ValueError(f"q_b must have heads x (nope + rope) rows, not {len(self.q_b)}")
        require_shape("kv_b", self.kv_b, self.heads * (nope + self.v_dim), self.kv_norm.size)

    @property
    def nope_dim(self) -> int:
        """Elements of a query or a key without positions."""
        return len(self.q_b) // self.heads - self.rope.dim

    @property
    def v_dim(self) -> int:
        """Elements of a value."""
        return self.o.shape[1] // self.heads

    @property
    def scale(self) -> float:
        """The scale of the logits."""
        return (self.nope_dim + self.rope.dim) ** -0.5 * self.softmax_factor

    @property
    def key_map(self) -> F64:
        """From latents to keys without positions: float64 `[heads, nope, kv_rank]`."""
        return self._kv_maps()[:, : self.nope_dim]

    @property
    def value_map(self) -> F64:
        """From latents to values: float64 `[heads, v, kv_rank]`."""
        return self._kv_maps()[:, self.nope_dim :]

    def queries(self, x: F64, positions: I64) -> MlaQueries:
        """Return the queries of `x`, float64 `[queries, hidden]`."""
        latent = rms_norm(linear(x, self.q_a), self.q_norm, self.epsilon)
        q = linear(latent, self.q_b).reshape(len(x), self.heads, self.nope_dim + self.rope.dim)
        nope, rope = np.split(q, [self.nope_dim], axis=2)
        return MlaQueries(nope, self.rope.rotate(rope, positions))

    def latents(self, x: F64, positions: I64) -> Latents:
        """Return what `x`, float64 `[keys, hidden]`, adds to the KV cache."""
        c, rope = np.split(linear(x, self.kv_a), [self.kv_norm.size], axis=1)
        turned = self.rope.rotate(rope[:, None], positions)[:, 0]
        return Latents(rms_norm(c, self.kv_norm, self.epsilon), turned)

    def __call__(self, x: F64, attend: Attend | None = None) -> F64:
        """Return the attention of a sequence from its beginning.

        Parameters
        ----------
        x:
            float64 `[tokens, hidden]`.
        attend:
            `attend_naive`, which is the default, or `attend_absorbed`.

        Returns
        -------
        float64 `[tokens, hidden]`.
        """
        tokens = len(x)
        positions = np.arange(tokens, dtype=np.int64)
        q, cache = self.queries(x, positions), self.latents(x, positions)
        heads = (attend or attend_naive)(self, q, cache, visible(tokens, tokens))
        return linear(heads.reshape(tokens, self.o.shape[1]), self.o)

    def _kv_maps(self) -> F64:
        return self.kv_b.reshape(self.heads, self.nope_dim + self.v_dim, -1)


Attend = Callable[[Mla, MlaQueries, Latents, NDArray[np.bool_]], F64]
"""Either of the two forms."""


def attend_naive(mla: Mla, q: MlaQueries, cache: Latents, mask: NDArray[np.bool_]) -> F64:
    """Return every head's attention with keys and values of its own.

    Parameters
    ----------
    mla:
        Maps and scale.
    q:
        The queries.
    cache:
        The latents of all keys.
    mask:
        bool `[queries, keys]`: see `attention.visible`.

    Returns
    -------
    float64 `[queries, heads, v]`.
    """
    keys = np.einsum("kc,hnc->khn", cache.c, mla.key_map)
    values = np.einsum("kc,hvc->khv", cache.c, mla.value_map)
    shared = np.broadcast_to(cache.rope[:, None], (*keys.shape[:2], mla.rope.dim))
    return attention(
        np.concatenate(q, axis=2),
        np.concatenate((keys, shared), axis=2),
        values,
        mla.scale,
        mask,
    )


def attend_absorbed(mla: Mla, q: MlaQueries, cache: Latents, mask: NDArray[np.bool_]) -> F64:
    """Return the same as `attend_naive`, computed on the latents: all heads share one KV head."""
    nope = np.einsum("qhn,hnc->qhc", q.nope, mla.key_map)
    latent = attention(
        np.concatenate((nope, q.rope), axis=2),
        np.concatenate(cache, axis=1)[:, None],
        cache.c[:, None],
        mla.scale,
        mask,
    )
    return np.einsum("qhc,hvc->qhv", latent, mla.value_map)
