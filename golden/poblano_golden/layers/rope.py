"""Rotary position embedding: pairs of elements turn by an angle that grows with the position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poblano_golden.arrays import F64, I64, require_dtype
from poblano_golden.layers.shapes import require_shape

__all__ = ["Rope", "frequencies"]


def frequencies(dim: int, base: float) -> F64:
    """Return the angles by which pairs turn from one position to the next: base^(-2 i / dim).

    Returns
    -------
    float64 `[dim / 2]`, radians.

    Raises
    ------
    ValueError
        If `dim` is not even and at least 2, or `base` not above 1.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim must be even and at least 2, not {dim}")
    if not base > 1:
        raise ValueError(f"base must be above 1, not {base:g}")
    return np.power(float(base), -np.arange(0, dim, 2) / dim)


@dataclass(frozen=True, eq=False)
class Rope:
    """A rotary position embedding.

    Parameters
    ----------
    frequencies:
        float64 `[dim / 2]`, radians a position; see `frequencies` and `yarn.Yarn`.
    interleaved:
        Which elements are pair i: 2 i and 2 i + 1 (DeepSeek, Kimi), or else i and i + dim / 2
        (GPT-OSS, Llama).
    factor:
        What sine and cosine are multiplied by.

    Raises
    ------
    ValueError
        If the frequencies are not float64 `[dim / 2]`.
    """

    frequencies: F64
    interleaved: bool
    factor: float = 1.0

    def __post_init__(self) -> None:
        require_shape("frequencies", self.frequencies, "pairs")

    @property
    def dim(self) -> int:
        """Elements that are turned."""
        return 2 * self.frequencies.size

    def rotate(self, x: F64, positions: I64) -> F64:
        """Return `x` turned; every result takes the place of its element.

        Parameters
        ----------
        x:
            float64 `[tokens, heads, dim]`.
        positions:
            int64 `[tokens]`, the tokens' places in the sequence.

        Raises
        ------
        ValueError
            If a type or a shape is wrong.
        """
        require_shape("x", x, "tokens", "heads", self.dim)
        require_dtype("positions", positions, np.int64)
        if positions.shape != x.shape[:1]:
            raise ValueError(f"positions must be [{x.shape[0]}], not {list(positions.shape)}")
        angles = np.multiply.outer(positions, self.frequencies)[:, None, :]
        cos, sin = np.cos(angles) * self.factor, np.sin(angles) * self.factor
        half = self.frequencies.size
        if self.interleaved:
            first, second = slice(0, None, 2), slice(1, None, 2)
        else:
            first, second = slice(0, half), slice(half, None)
        turned = np.empty_like(x)
        turned[..., first] = x[..., first] * cos - x[..., second] * sin
        turned[..., second] = x[..., second] * cos + x[..., first] * sin
        return turned
