"""Hardware from structures: gates of lanes, compressor trees, prefix adders."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import *

from poblano.arith.structure import CompressorTree, Lane, PrefixGraph, gate_function

__all__ = ["compressed", "lane_planes", "prefix_sum"]


def lane_planes(
    m: Module, lane: Lane, a: Sequence[Value], b: Sequence[Value], name: str
) -> list[Value]:
    """Return the lane's outputs as words of all lanes.

    Parameters
    ----------
    lane:
        The gates; every one is laid for all lanes at once.
    a, b:
        The operands' four code bits, lowest first, each a word of a bit for each lane.
    """
    words: list[Value] = [*a, *b]
    for number, (kind, inputs) in enumerate(lane.gates):
        word = Signal(len(a[0]), name=f"{name}_{number}")
        m.d.comb += word.eq(gate_function(kind, [words[i] for i in inputs]))
        words.append(word)
    return [words[i] for i in lane.outputs]


def compressed(
    m: Module, tree: CompressorTree, columns: Sequence[Value], name: str
) -> tuple[Value, Value]:
    """Return two words whose sum is that of all bits, modulo 2**len(columns).

    Parameters
    ----------
    tree:
        The adders.
    columns:
        A word of bits for each column, as high as the tree says.
    """
    bits: dict[int, Value] = dict(enumerate(bit for column in columns for bit in column))
    number = len(bits)
    for index, (column, inputs) in enumerate(tree.adders):
        x = [bits[i] for i in inputs]
        total, carry = Signal(name=f"{name}_sum_{index}"), Signal(name=f"{name}_carry_{index}")
        if len(x) == 3:
            half = Signal(name=f"{name}_half_{index}")
            m.d.comb += [
                half.eq(x[0] ^ x[1]),
                total.eq(half ^ x[2]),
                carry.eq((x[0] | x[1]) & (x[2] | ~half)),
            ]
        else:
            m.d.comb += [total.eq(x[0] ^ x[1]), carry.eq(x[0] & x[1])]
        bits[number] = total
        if column + 1 < len(columns):
            bits[number + 1] = carry
        number += 2
    nothing = C(0, 1)
    padded = [[*(bits[i] for i in left), nothing, nothing] for left in tree.left()]
    return Cat(column[0] for column in padded), Cat(column[1] for column in padded)


def prefix_sum(m: Module, graph: PrefixGraph, a: Value, b: Value, name: str) -> Signal:
    """Return a + b, modulo 2**graph.width, with carries gathered as the graph says."""
    width = graph.width
    generate: dict[tuple[int, int], Value] = {}
    propagate: dict[tuple[int, int], Value] = {}
    half = Signal(width, name=f"{name}_half")
    m.d.comb += half.eq(a ^ b)
    for column in range(width):
        generate[column, column] = a[column] & b[column]
        propagate[column, column] = a[column] | b[column]
    for high, middle, low in graph.nodes:
        g, p = (Signal(name=f"{name}_{kind}_{high}_{low}") for kind in ("carry", "all"))
        upper, lower = (high, middle), (middle - 1, low)
        m.d.comb += [
            g.eq(generate[upper] | (propagate[upper] & generate[lower])),
            p.eq(propagate[upper] & propagate[lower]),
        ]
        generate[high, low], propagate[high, low] = g, p
    carries = [C(0, 1), *(generate[column, 0] for column in range(width - 1))]
    total = Signal(width, name=name)
    m.d.comb += total.eq(half ^ Cat(carries))
    return total
