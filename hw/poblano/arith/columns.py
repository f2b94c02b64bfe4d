"""Addition of many bits held by column: a word for each weight, of any number of bits."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import *

from poblano.arith.datapath import full_adder

__all__ = ["add_columns", "reduce_columns"]


def reduce_columns(m: Module, columns: Sequence[Value], name: str) -> tuple[Value, Value]:
    """Return two words whose sum is that of all bits, modulo 2**len(columns).

    L. Dadda's scheme: every level brings the highest column down to the next of 2, 3, 4, 6, 9,
    13, 19, 28, ... bits with as few adders as that takes (Alta Frequenza 34, 1965). The adders of
    one column and level are bitwise operations on words.
    """
    heights = [2]
    while heights[-1] < max(len(column) for column in columns):
        heights.append(heights[-1] * 3 // 2)
    for height in reversed(heights[:-1]):
        columns = _level(m, columns, height, f"{name}_{height}")
    nothing = C(0, 2)
    padded = [Cat(column, nothing) for column in columns]
    return Cat(column[0] for column in padded), Cat(column[1] for column in padded)


def _level(m: Module, columns: Sequence[Value], height: int, name: str) -> list[Value]:
    reduced: list[Value] = []
    carries: list[Value] = []
    for weight, column in enumerate(columns):
        value = Cat(column, *carries)
        excess = max(0, len(value) - height)
        full, half = divmod(excess, 2)
        bits: list[Value] = []
        carries = []
        if full:
            words = [value[k * full : (k + 1) * full] for k in range(3)]
            total, carry = full_adder(m, words[0], words[1], words[2], f"{name}_{weight}")
            bits.append(total)
            carries.append(carry)
        if half:
            x, y = value[3 * full], value[3 * full + 1]
            bits.append(x ^ y)
            carries.append(x & y)
        rest = value[3 * full + 2 * half :]
        kept = Signal(len(rest) + full + half, name=f"{name}_{weight}")
        m.d.comb += kept.eq(Cat(rest, *bits))
        reduced.append(kept)
    return reduced


def add_columns(m: Module, columns: Sequence[Value], width: int, name: str) -> Signal:
    """Return the sum of all bits, modulo 2**width."""
    columns = [*columns, *[C(0, 0)] * (width - len(columns))]
    first, second = reduce_columns(m, columns, name)
    total = Signal(width, name=name)
    m.d.comb += total.eq(first + second)
    return total
