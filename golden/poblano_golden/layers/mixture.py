"""Mixtures of experts: every token goes through its experts, and their results are combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from poblano_golden.arrays import F64, require_dtype
from poblano_golden.layers.linear import linear
from poblano_golden.layers.routing import Routing, sigmoid_in_groups, softmax_of_chosen
from poblano_golden.layers.shapes import require_shape

__all__ = ["GroupRouter", "Mixture", "SoftmaxRouter", "combine"]

Expert = Callable[[F64], F64]


def combine(x: F64, routing: Routing, experts: Sequence[Expert]) -> F64:
    """Return the sum of the experts' results, each times its weight, in order of the expert.

    An expert sees only the tokens that go to it.

    Parameters
    ----------
    x:
        float64 `[tokens, hidden]`.
    routing:
        The tokens' experts and weights.
    experts:
        All experts, each from float64 `[tokens, hidden]` to the same.

    Raises
    ------
    ValueError
        If a type or a shape is wrong, or the routing names an expert that there is not.
    """
    require_shape("x", x, "tokens", "hidden")
    require_shape("weights", routing.weights, len(x), "k")
    require_dtype("experts", routing.experts, np.int64)
    if routing.experts.shape != routing.weights.shape:
        wanted, found = list(routing.weights.shape), list(routing.experts.shape)
        raise ValueError(f"experts must be {wanted}, not {found}")
    if not np.isin(routing.experts, np.arange(len(experts))).all():
        unknown = np.setdiff1d(routing.experts, np.arange(len(experts)))[0]
        raise ValueError(f"experts must be 0 to {len(experts) - 1}, not {unknown}")
    total = np.zeros_like(x)
    for number, expert in enumerate(experts):
        tokens, places = np.nonzero(routing.experts == number)
        if tokens.size:
            total[tokens] += routing.weights[tokens, places, None] * expert(x[tokens])
    return total


@dataclass(frozen=True, eq=False)
class SoftmaxRouter:
    """The router of GPT-OSS: a linear map, then `routing.softmax_of_chosen`.

    Parameters
    ----------
    weight:
        float64 `[experts, hidden]`.
    bias:
        float64 `[experts]`, part of the logits.
    k:
        Experts a token.
    """

    weight: F64
    bias: F64
    k: int

    def __call__(self, x: F64) -> Routing:
        """Return the routing of `x`, float64 `[tokens, hidden]`."""
        return softmax_of_chosen(linear(x, self.weight, self.bias), self.k)


@dataclass(frozen=True, eq=False)
class GroupRouter:
    """The router of DeepSeek and Kimi: a linear map, then `routing.sigmoid_in_groups`.

    Parameters
    ----------
    weight:
        float64 `[experts, hidden]`.
    bias:
        float64 `[experts]`, for the selection only.
    k, groups, kept_groups, scale:
        As in `routing.sigmoid_in_groups`.
    """

    weight: F64
    bias: F64
    k: int
    groups: int
    kept_groups: int
    scale: float

    def __call__(self, x: F64) -> Routing:
        """Return the routing of `x`, float64 `[tokens, hidden]`."""
        logits = linear(x, self.weight)
        return sigmoid_in_groups(
            logits, self.bias, self.k, self.groups, self.kept_groups, self.scale
        )


@dataclass(frozen=True, eq=False)
class Mixture:
    """A router, its experts, and perhaps a shared expert that every token goes through.

    Parameters
    ----------
    router:
        From float64 `[tokens, hidden]` to a routing.
    experts:
        All experts, for `combine`.
    shared:
        Its result is added with weight 1; none in GPT-OSS.
    """

    router: Callable[[F64], Routing]
    experts: Sequence[Expert]
    shared: Expert | None = None

    def __call__(self, x: F64) -> F64:
        """Return the mixture of `x`, float64 `[tokens, hidden]`, in the same shape."""
        routed = combine(x, self.router(x), self.experts)
        return routed if self.shared is None else routed + self.shared(x)
