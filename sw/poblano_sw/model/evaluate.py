"""How good a precision policy is: the model with its matrix products quantised, and perplexity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poblano_golden.blocks import MxTensor, dequantise, quantise
from poblano_golden.errors import PoblanoError
from poblano_sw.model.llama import Floats, LlamaModel, Multiply
from poblano_sw.model.policy import Policy

__all__ = ["perplexity", "quantised_products"]


def quantised_products(model: LlamaModel, policy: Policy) -> Multiply:
    """Return the matrix products of `model` with both operands quantised by `policy`.

    Products and sums are in float32, which is close to the engine's exact blocks and fast enough
    for whole texts; weights are quantised once.
    """
    weights: dict[tuple[int, str], Floats] = {}

    def rounded(t: MxTensor) -> Floats:
        return dequantise(t).astype(np.float32)

    def multiply(layer: int, name: str, x: Floats) -> Floats:
        p = policy.precision(f"blk.{layer}.{name}")
        key = (layer, name)
        if key not in weights:
            weights[key] = rounded(quantise(model.weight(layer, name), p.weight, p.scale_rule))
        return rounded(quantise(x, p.activation, p.scale_rule)) @ weights[key].T

    return multiply


def perplexity(
    model: LlamaModel, tokens: Sequence[int], window: int, multiply: Multiply | None = None
) -> float:
    """Return exp of the mean negative log-likelihood of a text, in nats a token.

    Parameters
    ----------
    model, tokens:
        The model and the text.
    window:
        The text is cut into windows of this many tokens. Each is read without what came before,
        and all its tokens but the first are predicted.
    multiply:
        What stands in for the model's own products, such as `quantised_products`.

    Raises
    ------
    PoblanoError
        Fewer tokens than two, or a window shorter than two.
    """
    if len(tokens) < 2 or window < 2:
        raise PoblanoError(
            f"perplexity needs 2 tokens and a window of 2, not {len(tokens)} and {window}"
        )
    losses: list[np.ndarray] = []
    for start in range(0, len(tokens) - 1, window):
        piece = np.asarray(tokens[start : start + window])
        logits = model.logits(piece.tolist(), multiply=multiply)[:-1].astype(np.float64)
        logits -= logits.max(axis=-1, keepdims=True)
        found = np.take_along_axis(logits, piece[1:, None], axis=-1)[:, 0]
        losses.append(np.log(np.exp(logits).sum(axis=-1)) - found)
    return float(np.exp(np.concatenate(losses).mean()))
