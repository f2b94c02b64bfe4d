"""Functions as tables of quadratics in fixed point, which the hardware evaluates too.

The range of an argument is cut into equal intervals. In each the function is the parabola through
its values at the two ends and in the middle, so neighbours meet. Tables are made with integers
alone, from exact integer roots and quotients: no machine can get others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

import numpy as np

from poblano_golden.arrays import I64

__all__ = ["EXP2", "FRACTION_BITS", "RECIPROCAL", "RECIPROCAL_SQRT", "TablePolynomial"]

FRACTION_BITS = 27
"""Bits below the point of every table and result."""

_EXACT_BITS = 80
"""Bits below the point of the values that tables are rounded from."""


@dataclass(frozen=True)
class TablePolynomial:
    """A function of [0, 1) with values in [1, 2], piecewise quadratic.

    The leading bits of the argument choose an interval; `t`, the others, is the place in it.
    With s = 1, or s = -1 if the function falls, and the coefficients of the interval,

        slope = c1 + s * floor(c2 * floor(t * 2**square_bits) / 2**square_bits)
        result = floor(c0 + s * slope * t)

    all in units of 2**-27, and nothing else is rounded. At t = 0 the result is c0, the function
    rounded to nearest.

    Parameters
    ----------
    name:
        The function's name.
    index_bits, place_bits:
        Bits of the argument that choose the interval, and bits below them.
    falls:
        Whether the function falls.
    exact:
        Takes k and n; returns floor(f(k / 2**n) * 2**80).
    square_bits:
        Bits of `t` that meet the quadratic coefficient.
    """

    name: str
    index_bits: int
    place_bits: int
    falls: bool
    exact: Callable[[int, int], int]
    square_bits: int = 13

    @cached_property
    def coefficients(self) -> tuple[tuple[int, int, int], ...]:
        """Magnitudes of c0, c1 and c2 for every interval."""
        bits, dropped = self.index_bits + 1, _EXACT_BITS - FRACTION_BITS
        values = [self.exact(k, bits) for k in range((1 << bits) + 1)]
        half = 1 << (dropped - 1)
        rows: list[tuple[int, int, int]] = []
        for start, middle, end in zip(values[:-1:2], values[1::2], values[2::2], strict=True):
            square = (2 * (start - 2 * middle + end) + half) >> dropped
            c0, c1 = (start + half) >> dropped, (end + half) >> dropped
            rows.append((c0, abs(c1 - c0 - square), square))
        return tuple(rows)

    @property
    def widths(self) -> tuple[int, int, int]:
        """Bits of the largest c0, c1 and c2."""
        c0, c1, c2 = (max(column).bit_length() for column in zip(*self.coefficients, strict=True))
        return c0, c1, c2

    @cached_property
    def _columns(self) -> tuple[I64, I64, I64]:
        c0, c1, c2 = np.array(self.coefficients, np.int64).T
        return c0, c1, c2

    def __call__(self, argument: I64) -> I64:
        """Return the function of `argument` / 2**(index_bits + place_bits), times 2**27."""
        c0, c1, c2 = (column[argument >> self.place_bits] for column in self._columns)
        place = argument & ((1 << self.place_bits) - 1)
        square = (c2 * (place >> (self.place_bits - self.square_bits))) >> self.square_bits
        if self.falls:
            return ((c0 << self.place_bits) - (c1 - square) * place) >> self.place_bits
        return ((c0 << self.place_bits) + (c1 + square) * place) >> self.place_bits


def _exp2(k: int, n: int) -> int:
    """2**(k / 2**n): n square roots, each rounded down, are the whole root rounded down."""
    root = 1 << (k + (_EXACT_BITS << n))
    for _ in range(n):
        root = isqrt(root)
    return root


def _reciprocal(k: int, n: int) -> int:
    """2 / (1 + k / 2**n)."""
    return (2 << (_EXACT_BITS + n)) // ((1 << n) + k)


def _reciprocal_sqrt(k: int, n: int) -> int:
    """2 / sqrt(m); m runs through [1, 2) in the lower half of the range, [2, 4) in the upper."""
    half = 1 << (n - 1)
    m = half + k if k < half else 2 * k  # in units of 1 / half
    return isqrt((half << (2 * _EXACT_BITS + 2)) // m)


EXP2 = TablePolynomial("exp2", 7, 20, False, _exp2)
"""2**x."""

RECIPROCAL = TablePolynomial("reciprocal", 8, 19, True, _reciprocal)
"""2 / (1 + x)."""

RECIPROCAL_SQRT = TablePolynomial("reciprocal_sqrt", 8, 19, True, _reciprocal_sqrt)
"""2 / sqrt(m): the argument's leading bit is 0 for m = 1 + f and 1 for m = 2 + 2f, f the rest."""
