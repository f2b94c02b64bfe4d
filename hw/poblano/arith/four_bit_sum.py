"""Products of 32 pairs of FP4 elements and their exact sum, for units with no other format."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

from poblano.arith.columns import add_columns, reduce_columns
from poblano.arith.datapath import delayed
from poblano.arith.modes import LANES

__all__ = ["four_bit_sum"]

_PRODUCT = 8
"""Bits of the largest product: 12 * 12 quarters."""
_COUNT = LANES.bit_length()


def four_bit_sum(m: Module, a: data.View, b: data.View, stages: int) -> Value:
    """Return the sum of 32 products, signed, in quarters.

    Everything is held by column: bit i of a word belongs to lane i, and a column is the word of
    all bits of one weight.

    Parameters
    ----------
    a, b:
        The operands' sign and code planes.
    stages:
        Registers, before the last addition.
    """
    sign = Signal(LANES)
    m.d.comb += sign.eq(a.sign ^ b.sign)
    columns: list[Value] = []
    for k, bits in enumerate(_products(m, list(a.code), list(b.code))):
        column = Signal(LANES, name=f"column_{k}")
        m.d.comb += column.eq(bits ^ sign)
        columns.append(column)

    # A negative product counts as its complement, which is 255 too much. Their number n is
    # counted once: n - 256 * n = n + 256 * (not(n) + 1), modulo 256 * 2**len(n).
    negative = add_columns(m, [sign], _COUNT, "negative")
    columns = [Cat(columns[k], negative[k]) if k < _COUNT else columns[k] for k in range(_PRODUCT)]
    columns += [Cat(~negative[k], *([C(1, 1)] if k == 0 else [])) for k in range(_COUNT)]
    first, second = reduce_columns(m, columns, "sum")
    first = delayed(m, first, stages, "sum_first")
    second = delayed(m, second, stages, "sum_second")
    total = Signal(signed(_PRODUCT + _COUNT))
    m.d.comb += total.eq(first + second)
    return total


def _products(m: Module, a: list[Value], b: list[Value]) -> list[Value]:
    """Return the eight bit planes of the products' magnitudes, in quarters.

    A code `h l m` is the significand (h | l, m) shifted left by 0 (h = 0), 1 (10) or 2 (11):
    two-bit significands are multiplied, and the product takes one of five shifts.
    """

    def plane(value: Value, name: str) -> Signal:
        signal = Signal(LANES, name=name)
        m.d.comb += signal.eq(value)
        return signal

    one_a, one_b = plane(a[1] | a[2], "one_a"), plane(b[1] | b[2], "one_b")
    ones, fractions = plane(one_a & one_b, "ones"), plane(a[0] & b[0], "fractions")
    product = [
        fractions,
        plane((a[0] & one_b) ^ (one_a & b[0]), "product_1"),
        plane(ones & ~fractions, "product_2"),
        plane(ones & fractions, "product_3"),
    ]
    by_a = [~a[2], plane(a[2] & ~a[1], "by_a_1"), plane(a[2] & a[1], "by_a_2")]
    by_b = [~b[2], plane(b[2] & ~b[1], "by_b_1"), plane(b[2] & b[1], "by_b_2")]
    shift = []
    for total in range(5):
        terms = [by_a[i] & by_b[total - i] for i in range(3) if 0 <= total - i < 3]
        shift.append(plane(_any(terms), f"shift_{total}"))
    return [
        _any([product[i] & shift[k - i] for i in range(4) if 0 <= k - i < 5])
        for k in range(_PRODUCT)
    ]


def _any(terms: list[Value]) -> Value:
    value = terms[0]
    for term in terms[1:]:
        value = value | term
    return value
