"""Scaled dot-product attention of grouped query heads, and which keys a query sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F64, require_dtype
from poblano_golden.layers.shapes import require_shape
from poblano_golden.layers.softmax import softmax

__all__ = ["attention", "visible"]


def visible(queries: int, keys: int, window: int | None = None) -> NDArray[np.bool_]:
    """Return which keys a query sees, causally: bool `[queries, keys]`.

    The queries are the last of the tokens whose keys there are: query i stands at position
    keys - queries + i. It sees itself and what stands before it; with a window, only the last
    `window` of these, itself among them.

    Raises
    ------
    ValueError
        If there are more queries than keys, or the window is below 1.
    """
    if not 0 <= queries <= keys:
        raise ValueError(f"queries must be 0 to {keys}, the keys, not {queries}")
    if window is not None and window < 1:
        raise ValueError(f"window must be at least 1, not {window}")
    positions = np.arange(keys)
    age = positions[keys - queries :, None] - positions
    return (age >= 0) & (age < (keys if window is None else window))


def attention(
    q: F64,
    k: F64,
    v: F64,
    scale: float,
    mask: NDArray[np.bool_],
    sinks: F64 | None = None,
) -> F64:
    """Return, for every query and head, the mean of the values weighted by softmax(scale q . k).

    A query that sees no key gives zeros, with sinks too. What a query does not see cannot reach
    it, be it NaN or infinite.

    Parameters
    ----------
    q:
        float64 `[queries, heads, dim]`.
    k:
        float64 `[keys, kv_heads, dim]`; query head h reads KV head h // (heads / kv_heads).
    v:
        float64 `[keys, kv_heads, v_dim]`.
    scale:
        Of the dot products.
    mask:
        bool `[queries, keys]`, true where a query sees a key: see `visible`.
    sinks:
        float64 `[heads]`: a logit a head that joins the softmax, unscaled, and has no value.

    Returns
    -------
    float64 `[queries, heads, v_dim]`.

    Raises
    ------
    ValueError
        If a type or a shape is wrong, or `heads` not a multiple of `kv_heads`.
    """
    require_shape("q", q, "queries", "heads", "dim")
    queries, heads, dim = q.shape
    require_shape("k", k, "keys", "kv_heads", dim)
    keys, kv_heads, _ = k.shape
    require_shape("v", v, keys, kv_heads, "v_dim")
    require_dtype("mask", mask, np.bool_)
    if mask.shape != (queries, keys):
        raise ValueError(f"mask must be [{queries}, {keys}], not {list(mask.shape)}")
    if heads % kv_heads:
        raise ValueError(f"heads must be a multiple of kv_heads: {heads} and {kv_heads}")
    if sinks is not None:
        require_shape("sinks", sinks, heads)
    group = heads // kv_heads
    q = q.reshape(queries, kv_heads, group, dim)
    sink = None if sinks is None else sinks.reshape(kv_heads, group)
    out = np.empty((queries, kv_heads, group, v.shape[-1]))
    for row, seen in enumerate(mask):
        logits = np.einsum("hgd,khd->hgk", q[row], k[seen]) * scale
        out[row] = np.einsum("hgk,khd->hgd", softmax(logits, sink), v[seen])
    return out.reshape(queries, heads, v.shape[-1])
