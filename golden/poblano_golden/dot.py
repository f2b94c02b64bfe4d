"""The dot product of two MX blocks: exact, both scales included, then rounded once to binary32.

How it is exact in float64. In units of the two formats' least significant bits every product is
an integer and so is every partial sum, whatever the order. Where the 32 largest products sum to
at most 2**53, float64 therefore holds each step exactly. E5M2 with E5M2 or E4M3 exceeds that:
the wider operand is split into two halves that do not, and the two exact sums are added with
rounding to odd, which leaves the later rounding to binary32 as if it had seen every bit (53 bits
are more than 24 + 2; S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums:
proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008). The scales are powers
of two within 2**+-254, far inside the range of float64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from poblano_golden import fp32
from poblano_golden.arrays import F32, F64, U8
from poblano_golden.elements import decode
from poblano_golden.formats import BLOCK_SIZE, MxFormat
from poblano_golden.scales import scale_values

__all__ = ["Contraction", "block_dot", "block_sum"]

Contraction = Callable[[F64, F64], F64]
"""Sums products of elements over one block; any order of the additions will do."""

_SPLIT_BITS = 16


def block_dot(
    a_codes: U8, b_codes: U8, a_scale: U8, b_scale: U8, fa: MxFormat, fb: MxFormat
) -> F32:
    """Return the dot products of pairs of blocks.

    Parameters
    ----------
    a_codes, b_codes:
        Element codes `[..., 32]`; the leading shapes broadcast.
    a_scale, b_scale:
        Scale bytes `[...]`.
    fa, fb:
        The two formats, in any combination.

    Returns
    -------
    float32 `[...]`: the exact value rounded once to nearest even, subnormals kept, overflow to
    infinity. An exact zero is +0; a non-zero value that rounds to zero keeps its sign. A NaN
    element, a NaN scale, an infinity times zero or two infinities that cancel give 0x7FC00000.

    Raises
    ------
    ValueError
        If an array is not uint8, a code has too many bits or a block is not 32 long.
    """
    for name, codes in (("a_codes", a_codes), ("b_codes", b_codes)):
        if codes.shape[-1:] != (BLOCK_SIZE,):
            raise ValueError(f"{name} must have {BLOCK_SIZE} codes in its last axis: {codes.shape}")

    def pairwise(a: F64, b: F64) -> F64:
        return np.einsum("...k,...k->...", a, b)

    total = block_sum(decode(a_codes, fa), decode(b_codes, fb), fa, fb, pairwise, pairwise)
    return fp32.from_float64(total * (scale_values(a_scale) * scale_values(b_scale)))


def block_sum(
    a: F32, b: F32, fa: MxFormat, fb: MxFormat, finite: Contraction, ieee: Contraction
) -> F64:
    """Return the sums of products of elements, before the scales and before rounding.

    Parameters
    ----------
    a, b:
        Decoded elements, at most 32 along the contracted axis.
    fa, fb:
        Their formats.
    finite:
        Contracts finite elements: any correct float64 routine, a BLAS for instance.
    ieee:
        Contracts elements with NaNs and infinities among them: each product and sum must be the
        IEEE 754 one. It decides only which results are NaN or infinite.

    Returns
    -------
    float64: the exact sum, or the exact sum rounded to odd where that takes more than 53 bits.
    An exact zero is +0.
    """
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if not (np.isfinite(wide_a).all() and np.isfinite(wide_b).all()):
        clean_a = np.where(np.isfinite(wide_a), wide_a, 0.0)
        clean_b = np.where(np.isfinite(wide_b), wide_b, 0.0)
        with np.errstate(invalid="ignore"):
            special = ieee(wide_a, wide_b)
        return np.where(
            np.isfinite(special), _finite_sum(clean_a, clean_b, fa, fb, finite), special
        )
    return _finite_sum(wide_a, wide_b, fa, fb, finite)


def _finite_sum(a: F64, b: F64, fa: MxFormat, fb: MxFormat, finite: Contraction) -> F64:
    if BLOCK_SIZE * fa.largest_integer * fb.largest_integer <= 1 << 53:
        return finite(a, b) + 0.0  # -0 + 0 is +0
    if fa.largest_integer >= fb.largest_integer:
        high, low = _split(a, fa)
        return _add_to_odd(finite(high, b), finite(low, b))
    high, low = _split(b, fb)
    return _add_to_odd(finite(a, high), finite(a, low))


def _split(x: F64, fmt: MxFormat) -> tuple[F64, F64]:
    """Return two parts of `x`: a multiple of 2**16 least significant bits, and the rest."""
    unit = 2.0 ** (fmt.lsb_exponent + _SPLIT_BITS)
    high = np.trunc(x / unit) * unit
    return high, x - high


def _add_to_odd(a: F64, b: F64) -> F64:
    """Return a + b rounded to odd: exact, or of the two neighbours the one with an odd last bit."""
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)  # exactly what the addition lost (Knuth)
    even = np.asarray(total).view(np.int64) & 1 == 0
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where((error != 0) & even, np.nextafter(total, toward), total + 0.0)
