"""YaRN: how the frequencies of a rotary embedding are lowered for longer contexts.

Source: Peng and others, YaRN: Efficient Context Window Extension of Large Language Models, 2023.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from poblano_golden.arrays import F64
from poblano_golden.layers.rope import frequencies

__all__ = ["Yarn"]

_SINGULAR_WIDTH = 0.001
"""How wide a ramp is whose two ends coincide."""


@dataclass(frozen=True)
class Yarn:
    """Parameters of YaRN, named as in the models' configurations.

    Parameters
    ----------
    base:
        Of the frequencies, theta.
    original:
        Positions that the model was first trained for.
    factor:
        How many times that many there are to be, at least 1.
    beta_fast, beta_slow:
        Turns within `original` positions: pairs that make at least `beta_fast` keep their
        frequency, pairs that make at most `beta_slow` have it divided by `factor`.
    truncate:
        Whether the ramp between these is widened to whole pairs: false in GPT-OSS, true in
        DeepSeek and Kimi.
    mscale, mscale_all_dim:
        Of DeepSeek and Kimi; 0 where the configuration has none.

    Raises
    ------
    ValueError
        If `base` is not above 1, `original` or `factor` below 1, or a beta not above 0.
    """

    base: float
    original: int
    factor: float
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float = 0.0
    mscale_all_dim: float = 0.0

    def __post_init__(self) -> None:
        if not self.base > 1:
            raise ValueError(f"base must be above 1, not {self.base:g}")
        if self.original < 1:
            raise ValueError(f"original must be at least 1, not {self.original}")
        if not self.factor >= 1:
            raise ValueError(f"factor must be at least 1, not {self.factor:g}")
        for name in ("beta_fast", "beta_slow"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name):g}")

    def ramp(self, dim: int) -> tuple[float, float]:
        """Return the pair where interpolation begins and the pair where it is complete.

        Pair i makes original base^(-2 i / dim) / (2 pi) turns; this is solved for i, not rounded
        unless `truncate` says so, and both are kept within 0 and dim - 1.
        """

        def pair(turns: float) -> float:
            wavelength = self.original / (turns * 2 * math.pi)
            return dim * math.log(wavelength) / (2 * math.log(self.base))

        low, high = pair(self.beta_fast), pair(self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        return min(max(low, 0.0), dim - 1.0), min(max(high, 0.0), dim - 1.0)

    def frequencies(self, dim: int) -> F64:
        """Return the frequencies for `rope.Rope`: float64 `[dim / 2]`, radians a position."""
        low, high = self.ramp(dim)
        width = high - low or _SINGULAR_WIDTH
        plain = frequencies(dim, self.base)
        share = np.clip((np.arange(dim // 2) - low) / width, 0, 1)
        return plain / self.factor * share + plain * (1 - share)

    @property
    def rope_factor(self) -> float:
        """The factor of sine and cosine.

        0.1 ln(factor) + 1; with both mscales set, the quotient of theirs, 1 where they are equal.
        """
        if self.mscale and self.mscale_all_dim:
            return self._mscale(self.mscale) / self._mscale(self.mscale_all_dim)
        return self._mscale(1.0)

    @property
    def softmax_factor(self) -> float:
        """What MLA multiplies its softmax scale by: (0.1 mscale_all_dim ln(factor) + 1)^2."""
        return self._mscale(self.mscale_all_dim) ** 2

    def _mscale(self, weight: float) -> float:
        return 0.1 * weight * math.log(self.factor) + 1
