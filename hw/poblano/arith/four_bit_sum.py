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

    A code `h l m` is the significand (h | l, m) shifted left by 0 (h = 0), 1 (10) or 2 (11).
    The significands' product is shifted by the sum of both shifts.
    """

    def plane(value: Value, name: str) -> Signal:
        signal = Signal(LANES, name=name)
        m.d.comb += signal.eq(value)
        return signal

    def shifted(bits: list[Value], far: list[Value], choose: Value, name: str) -> list[Value]:
        """Choose, lane by lane, `far` instead of `bits`; places that either lacks are 0."""
        chosen: list[Value] = []
        for k in range(max(len(bits), len(far))):
            near = bits[k] & ~choose if k < len(bits) else C(0, LANES)
            chosen.append(plane(near | (far[k] & choose), f"{name}_{k}"))
        return chosen

    nothing = C(0, LANES)
    one_a, one_b = plane(a[1] | a[2], "one_a"), plane(b[1] | b[2], "one_b")
    ones, fractions = plane(one_a & one_b, "ones"), plane(a[0] & b[0], "fractions")
    product = [
        fractions,
        plane((a[0] & one_b) ^ (one_a & b[0]), "product_1"),
        plane(ones & ~fractions, "product_2"),
        plane(ones & fractions, "product_3"),
    ]
    by_one = plane(a[2] & ~a[1], "a_by_1"), plane(b[2] & ~b[1], "b_by_1")
    by_two = plane(a[2] & a[1], "a_by_2"), plane(b[2] & b[1], "b_by_2")
    carry = plane(by_one[0] & by_one[1], "both_by_1")
    one = plane(by_one[0] ^ by_one[1], "shift_by_1")
    two = plane(by_two[0] ^ by_two[1] ^ carry, "shift_by_2")
    four = plane(by_two[0] & by_two[1], "shift_by_4")
    once = shifted(product, [nothing, *product], one, "after_1")
    twice = shifted(once, [nothing, nothing, *once], two, "after_2")
    return shifted(twice, [nothing] * 4 + product, four, "magnitude")
