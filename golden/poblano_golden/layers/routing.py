"""Which experts a token goes to, and with what weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from poblano_golden.arrays import F64, I64
from poblano_golden.layers.activations import sigmoid
from poblano_golden.layers.selection import top_k
from poblano_golden.layers.shapes import require_shape
from poblano_golden.layers.softmax import softmax

__all__ = ["Routing", "sigmoid_in_groups", "softmax_of_chosen"]


class Routing(NamedTuple):
    """The k experts of every token, the one that was chosen first in front."""

    experts: I64
    """int64 `[tokens, k]`, all of a token's different."""
    weights: F64
    """float64 `[tokens, k]`."""


def softmax_of_chosen(logits: F64, k: int) -> Routing:
    """Route as GPT-OSS: the k largest logits, weighted by the softmax of these k alone.

    Of equal logits the expert with the lowest index comes first; a NaN comes before all and makes
    its token's weights NaN. If all k are -infinity, the weights are zeros.

    Parameters
    ----------
    logits:
        float64 `[tokens, experts]`, the router's bias included.
    k:
        Experts a token.

    Raises
    ------
    ValueError
        If `logits` has another type or shape, or `k` is not 1 to the number of experts.
    """
    require_shape("logits", logits, "tokens", "experts")
    _require_k(k, logits.shape[1])
    experts = top_k(logits, k)
    return Routing(experts, softmax(np.take_along_axis(logits, experts, axis=1)))


def sigmoid_in_groups(
    logits: F64, bias: F64, k: int, groups: int, kept_groups: int, scale: float
) -> Routing:
    """Route as DeepSeek and Kimi: sigmoid scores, of which a bias decides the selection only.

    1. Scores are sigmoid(logits); biased scores are scores + bias.
    2. Experts form `groups` of neighbours. A group counts as much as its two best biased scores
       together; the best `kept_groups` are kept. No expert of another can be chosen, whatever the
       signs of the biased scores.
    3. The k best biased scores of the kept groups are chosen.
    4. Their weights are their scores without the bias, over the sum of these, times `scale`. If
       that sum is 0, the weights are zeros.

    Of equals the lowest index comes first, of groups and of experts; a NaN comes before all.

    Parameters
    ----------
    logits:
        float64 `[tokens, experts]`.
    bias:
        float64 `[experts]`.
    k:
        Experts a token.
    groups, kept_groups:
        Both 1 if there are no groups.
    scale:
        Of the normalised weights.

    Raises
    ------
    ValueError
        If a type or a shape is wrong, the experts do not fall into `groups` equal groups of at
        least 2, `kept_groups` is not 1 to `groups`, or `k` not 1 to the experts of the kept groups.
    """
    require_shape("logits", logits, "tokens", "experts")
    tokens, num_experts = logits.shape
    require_shape("bias", bias, num_experts)
    if groups < 1 or num_experts % groups or num_experts // groups < 2:
        raise ValueError(f"{num_experts} experts do not make {groups} equal groups of at least 2")
    if kept_groups not in range(1, groups + 1):
        raise ValueError(f"kept_groups must be 1 to {groups}, the groups, not {kept_groups}")
    size = num_experts // groups
    _require_k(k, kept_groups * size)
    scores = sigmoid(logits)
    biased = scores + bias
    grouped = biased.reshape(tokens, groups, size)
    best_two = np.take_along_axis(grouped, top_k(grouped, 2), axis=2).sum(axis=2)
    kept = np.sort(top_k(best_two, kept_groups), axis=1)
    candidates = (kept[:, :, None] * size + np.arange(size)).reshape(tokens, kept_groups * size)
    places = top_k(np.take_along_axis(biased, candidates, axis=1), k)
    experts = np.take_along_axis(candidates, places, axis=1)
    weights = np.take_along_axis(scores, experts, axis=1)
    total = weights.sum(axis=1, keepdims=True)
    return Routing(experts, weights / np.where(total == 0, 1.0, total) * scale)


def _require_k(k: int, largest: int) -> None:
    if k not in range(1, largest + 1):
        raise ValueError(f"k must be 1 to {largest}, the experts to choose from, not {k}")
