"""The linear map of a checkpoint's weights."""

from __future__ import annotations

from poblano_golden.arrays import F64
from poblano_golden.layers.shapes import require_shape

__all__ = ["linear"]


def linear(x: F64, weight: F64, bias: F64 | None = None) -> F64:
    """Return x times weight transposed, plus bias.

    Parameters
    ----------
    x:
        float64 `[tokens, inputs]`.
    weight:
        float64 `[outputs, inputs]`: the reduction axis is the last, as in checkpoints.
    bias:
        float64 `[outputs]`, or none.

    Returns
    -------
    float64 `[tokens, outputs]`.

    Raises
    ------
    ValueError
        If a type or a shape is wrong.
    """
    require_shape("weight", weight, "outputs", "inputs")
    outputs, inputs = weight.shape
    require_shape("x", x, "tokens", inputs)
    if bias is None:
        return x @ weight.T
    require_shape("bias", bias, outputs)
    return x @ weight.T + bias
