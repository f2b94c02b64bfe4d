"""Small parts that several datapaths share."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import *

__all__ = ["carry_save", "checked_stages", "delayed", "full_adder", "normalise", "shift_right"]


def checked_stages(name: str, stages: int, most: int) -> int:
    """Return a number of pipeline registers.

    Raises
    ------
    ValueError
        If it is not 0 to `most`.
    """
    if stages not in range(most + 1):
        raise ValueError(f"{name} must be 0 to {most}, not {stages}")
    return stages


def delayed(m: Module, value: Value, cycles: int, name: str) -> Value:
    """Return `value` after `cycles` registers, which have no reset; `value` itself for 0."""
    for cycle in range(cycles):
        register = Signal.like(value, name=f"{name}_{cycle + 1}", reset_less=True)
        m.d.sync += register.eq(value)
        value = register
    return value


def normalise(
    m: Module, value: Value, limit: Value, fill: Value, name: str
) -> tuple[Signal, Signal]:
    """Shift `value` left until its top bit is 1, but by `limit` at most.

    Each stage shifts by a power of two, the largest first; together they shift by the binary
    digits of min(leading zeros, limit). Zero is shifted by the largest count that the limit and
    the stages allow.

    Parameters
    ----------
    value:
        What to shift.
    limit:
        Unsigned largest shift.
    fill:
        The bit that enters from the right.

    Returns
    -------
    The shifted value, and the shift.
    """
    width = len(value)
    stages = (width - 1).bit_length()
    moves = [Signal(name=f"{name}_moves_{k}") for k in range(stages)]
    unlimited = limit[stages:].any() if len(limit) > stages else C(0, 1)
    for k in reversed(range(stages)):
        step = min(1 << k, width)
        empty, allowed = Signal(name=f"{name}_empty_{k}"), Signal(name=f"{name}_allowed_{k}")
        bound = limit[k] if k < len(limit) else C(0, 1)
        shifted = Signal(width, name=f"{name}_{k}")
        m.d.comb += [
            empty.eq(~value[width - step :].any()),
            allowed.eq(unlimited | bound),
            moves[k].eq(empty & allowed),
            shifted.eq(Mux(moves[k], Cat(fill.replicate(step), value)[:width], value)),
        ]
        unlimited = unlimited | (bound & ~empty)
        value = shifted
    count = Signal(stages, name=f"{name}_count")
    m.d.comb += count.eq(Cat(moves))
    return value, count  # type: ignore[return-value]


def shift_right(m: Module, value: Value, distance: Value, name: str) -> tuple[Value, Value]:
    """Shift `value` right by any unsigned distance.

    Returns
    -------
    The shifted value, and whether a 1 fell off.
    """
    width = len(value)
    stages = min(width.bit_length(), len(distance))
    far = distance[stages:].any() if len(distance) > stages else C(0, 1)
    lost: Value = C(0, 1)
    for k in range(stages):
        step = min(1 << k, width)
        moves, fell = Signal(name=f"{name}_moves_{k}"), Signal(name=f"{name}_lost_{k}")
        shifted = Signal(width, name=f"{name}_{k}")
        m.d.comb += [
            moves.eq(distance[k] | far),
            shifted.eq(Mux(moves, value >> step, value)),
            fell.eq(lost | (moves & value[:step].any())),
        ]
        value, lost = shifted, fell
    return value, lost


def full_adder(m: Module, a: Value, b: Value, c: Value, name: str) -> tuple[Signal, Signal]:
    """Add three words bit by bit: `len(sum)` full adders side by side.

    Returns
    -------
    The sums, as wide as the widest word, and the carries, which weigh twice as much and reach
    no further than the second widest word.
    """
    a, b, c = sorted((a, b, c), key=len)
    total, carry = Signal(len(c), name=f"{name}_sum"), Signal(len(b), name=f"{name}_carry")
    half = Signal(len(b), name=f"{name}_half")
    m.d.comb += [
        half.eq(a ^ b),
        total.eq(half ^ c),
        carry.eq((a | b) & (c | ~half)),
    ]
    return total, carry


def carry_save(m: Module, terms: Sequence[Value], name: str) -> tuple[Value, Value]:
    """Return two words with the sum of unsigned terms, modulo 2 to the widest term's width.

    A Wallace tree of full adders, each level on words of like width. Single bits take the places
    that carries leave free at the low end.
    """
    width = max(len(term) for term in terms)
    words = [term for term in terms if len(term) > 1]
    bits = [term for term in terms if len(term) == 1]
    while len(bits) > len(words) - 2:  # as many adders as words but two
        words.append(bits.pop())
    level = 0
    while len(words) > 2:
        words.sort(key=len)
        level += 1
        after: list[Value] = []
        while len(words) > 2:
            three, words = words[:3], words[3:]
            total, carry = full_adder(m, *three, f"{name}_{level}_{len(words)}")
            after += [total, Cat(bits.pop() if bits else C(0, 1), carry)[:width]]
        words += after
    return words[0], words[1]
