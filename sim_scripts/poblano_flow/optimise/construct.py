"""Compressor trees and prefix graphs to begin a search with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poblano.arith.structure import CompressorTree, PrefixGraph

__all__ = ["GRAPHS", "Delays", "compressor_tree", "graph_of"]


@dataclass(frozen=True)
class Delays:
    """How an adder's outputs follow its inputs, in any unit.

    Attributes
    ----------
    half:
        From an exclusive-or's inputs to its output; a full adder's sum takes two of them.
    carry:
        From the last input, or the first two's exclusive-or, to the carry.
    slack:
        How much later an adder of two carries and one sum may be than another: such an adder
        needs no inverter, as a sum can be had inverted for nothing.
    """

    half: float = 2
    carry: float = 1
    slack: float = 0
    two_rows: bool = False
    """Whether a column's last three bits go to a half adder, so that carries do not ripple
    through the tree and two words are left for a register and a fast adder."""


def compressor_tree(
    heights: Sequence[int], arrivals: dict[int, float], delays: Delays
) -> CompressorTree:
    """Return a tree that takes in each column what is there first.

    Columns are done from the lowest. Of the bits that came in (and of carries) and of sums, the
    earliest are taken; the latest of three is an adder's last input. A column is done when it
    has two bits, or one. This is the greedy scheme of V. Oklobdzija, D. Villeger and S. Liu
    (IEEE Transactions on Computers 45, 1996) with a preference for two carries beside one sum.

    Parameters
    ----------
    heights:
        Bits that come in, for every column.
    arrivals:
        When bits come in that do not at 0.
    """
    number = 0
    carries: list[list[tuple[float, int]]] = []
    for height in heights:
        carries.append([(arrivals.get(k, 0), k) for k in range(number, number + height)])
        number += height
    adders: list[tuple[int, tuple[int, ...]]] = []
    for column in range(len(heights)):
        came, sums = carries[column], list[tuple[float, int]]()
        while len(came) + len(sums) > 2:
            came.sort()
            sums.sort()
            if delays.two_rows and len(came) + len(sums) == 3:
                taken = sorted([*came, *sums])[:2]
            else:
                taken = _best(came, sums, delays)
            for bit in taken:
                (came if bit in came else sums).remove(bit)
            first = max(time for time, _ in taken[:2])
            ready = max(first + delays.half, taken[2][0]) if len(taken) == 3 else first
            adders.append((column, tuple(bit for _, bit in taken)))
            sums.append((ready + delays.half, number))
            if column + 1 < len(heights):
                carries[column + 1].append((ready + delays.carry, number + 1))
            number += 2
    return CompressorTree(tuple(heights), tuple(adders))


def _best(
    came: list[tuple[float, int]], sums: list[tuple[float, int]], delays: Delays
) -> list[tuple[float, int]]:
    """Return the three bits whose adder is ready first."""
    choices: list[tuple[float, int, list[tuple[float, int]]]] = []
    for number, (few, slack) in enumerate(((1, delays.slack), (0, 0), (2, 0), (3, 0))):
        taken = [*came[: 3 - few], *sums[:few]]
        if len(came) >= 3 - few and len(sums) >= few:
            if few != 1:
                taken.sort()
            ready = max(max(taken[0][0], taken[1][0]) + delays.half, taken[2][0])
            choices.append((ready - slack, number, taken))
    return min(choices)[2]


def serial(width: int) -> PrefixGraph:
    """Return the graph of a carry that ripples."""
    return PrefixGraph(width, tuple((k, k, 0) for k in range(1, width - 1)))


def sklansky(width: int) -> PrefixGraph:
    """Return J. Sklansky's graph: least depth, as many nodes at each level as half the width."""
    nodes: list[tuple[int, int, int]] = []
    span = 1
    while span < width - 1:
        for high in range(width - 1):
            if high & span:
                middle = high // span * span
                nodes.append((high, middle, middle - span))
        span *= 2
    return PrefixGraph(width, tuple(nodes))


def brent_kung(width: int) -> PrefixGraph:
    """Return the graph of R. Brent and H. Kung: few nodes, twice the least depth."""
    known = {(k, k) for k in range(width)}
    nodes: list[tuple[int, int, int]] = []

    def join(high: int, low: int) -> None:
        if (high, low) in known:
            return
        size = high - low + 1
        step = 1 << ((size - 1).bit_length() - 1)
        middle = low + step if size & (size - 1) == 0 else (high + 1) & high
        if middle <= low:
            middle = low + step
        join(high, middle)
        join(middle - 1, low)
        known.add((high, low))
        nodes.append((high, middle, low))

    for high in range(width - 1):
        join(high, 0)
    return PrefixGraph(width, tuple(nodes))


GRAPHS = {"serial": serial, "sklansky": sklansky, "brent_kung": brent_kung}
"""Graphs to begin with, by name."""


def graph_of(name: str, width: int) -> PrefixGraph:
    """Return a graph to begin with, checked."""
    graph = GRAPHS[name](width)
    graph.check()
    return graph
