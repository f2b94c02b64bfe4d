"""How much attention loses when its operands are quantised to MX formats.

The arithmetic between the operands is float64, so what is left is the loss of the formats: a bound
of what any kernel with these operands can reach.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F64, require_dtype
from poblano_golden.blocks import dequantise, quantise
from poblano_golden.formats import MxFormat
from poblano_golden.layers.attention import attention

__all__ = ["AttentionFormats", "fake_quantise", "quantised_attention", "relative_rms"]


@dataclass(frozen=True)
class AttentionFormats:
    """The formats of attention's operands, and how their scales are chosen.

    Parameters
    ----------
    q, k:
        Of queries and keys, in blocks along the head dimension.
    v:
        Of values, in blocks along the keys, from key 0; the last may be short.
    weights:
        Of e^(logit - largest of the keys) before the division by their sum, in blocks along the
        keys; none keeps them exact. The sum is of the weights as they were.
    rule:
        The scale rule of all.
    """

    q: MxFormat
    k: MxFormat
    v: MxFormat
    weights: MxFormat | None
    rule: str


def fake_quantise(x: F64, fmt: MxFormat, rule: str) -> F64:
    """Return what is left of `x` in an MX format, its blocks along the last axis.

    Parameters
    ----------
    x:
        float64 `[..., n]`, rounded to float32 first; see `blocks.quantise`.
    fmt, rule:
        The format and its scale rule.

    Raises
    ------
    ValueError
        If `x` is not float64 or not finite, or the rule is unknown.
    """
    require_dtype("x", x, np.float64)
    if not np.isfinite(x).all():
        raise ValueError(
            "what is quantised must be finite: NaN and infinity have no error to state"
        )
    if x.size == 0:
        return x
    rows = x.reshape(-1, x.shape[-1]).astype(np.float32)
    return dequantise(quantise(rows, fmt, rule)).reshape(x.shape)


def quantised_attention(
    q: F64,
    k: F64,
    v: F64,
    scale: float,
    mask: NDArray[np.bool_],
    formats: AttentionFormats,
    sinks: F64 | None = None,
) -> F64:
    """Return `attention.attention` of quantised operands; arguments and result are the same.

    Every query sees the values as they are quantised with all keys there, those that follow it
    in its last block too.
    """
    q = fake_quantise(q, formats.q, formats.rule)
    k = fake_quantise(k, formats.k, formats.rule)
    v = np.moveaxis(fake_quantise(np.moveaxis(v, 0, -1), formats.v, formats.rule), -1, 0)
    keys, kv_heads, _ = k.shape
    if formats.weights is None or keys == 0:
        return attention(q, k, v, scale, mask, sinks)
    places = np.broadcast_to(np.eye(keys)[:, None], (keys, kv_heads, keys))
    weights = attention(q, k, places, scale, mask, sinks)
    largest = weights.max(axis=2, keepdims=True, initial=0)
    unit = np.where(largest == 0, 1.0, largest)
    powers = fake_quantise(weights / unit, formats.weights, formats.rule)
    values = np.repeat(v, q.shape[1] // kv_heads, axis=1)
    return np.einsum("qhk,khd->qhd", powers, values) * unit


def relative_rms(found: F64, expected: F64) -> float:
    """Return the root mean square of the difference over that of what is expected.

    Raises
    ------
    ValueError
        If nothing is expected, or zeros alone.
    """
    if not np.any(expected):
        raise ValueError("relative_rms needs an expected value that is not 0")
    return float(np.sqrt(np.mean(np.square(found - expected)) / np.mean(np.square(expected))))
