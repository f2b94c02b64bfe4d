"""Products of 32 pairs of FP4 elements and their exact sum, for units with no other format."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

from poblano.arith.datapath import delayed
from poblano.arith.modes import LANES
from poblano.arith.structure import FourBitStructure
from poblano.arith.structured import compressed, lane_planes, prefix_sum

__all__ = ["four_bit_sum"]

_PRODUCT = 8
"""Bits of the largest product: 12 * 12 quarters."""
_COUNT = LANES.bit_length()


def four_bit_sum(
    m: Module, structure: FourBitStructure, a: data.View, b: data.View, stages: int
) -> Value:
    """Return the sum of 32 products, signed, in quarters.

    Everything is held by column: bit i of a word belongs to lane i, and a column is the word of
    all bits of one weight.

    Parameters
    ----------
    structure:
        The gates of a product, the adders and the last addition.
    a, b:
        The operands' sign and code planes.
    stages:
        Registers, before the last addition.
    """
    *columns, sign = lane_planes(m, structure.lane, [*a.code, a.sign], [*b.code, b.sign], "product")

    # A negative product counts as its complement, which is 255 too much. Their number n is
    # counted once: n - 256 * n = n + 256 * (not(n) + 1), modulo 256 * 2**len(n).
    words = compressed(m, structure.negative, [sign, *[C(0, 0)] * (_COUNT - 1)], "counted")
    negative = prefix_sum(m, structure.count_prefix, *words, "negative")
    columns = [Cat(columns[k], negative[k]) if k < _COUNT else columns[k] for k in range(_PRODUCT)]
    columns += [Cat(~negative[k], *([C(1, 1)] if k == 0 else [])) for k in range(_COUNT)]
    first, second = compressed(m, structure.total, columns, "added")
    first = delayed(m, first, stages, "sum_first")
    second = delayed(m, second, stages, "sum_second")
    return prefix_sum(m, structure.total_prefix, first, second, "total").as_signed()
