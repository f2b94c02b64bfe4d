"""Small changes of a structure that leave what it computes as it is."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from poblano.arith.structure import (
    GATES,
    LANE_INPUTS,
    CompressorTree,
    FourBitStructure,
    Lane,
    PrefixGraph,
    gate_function,
)

__all__ = ["changed", "changed_graph", "changed_lane", "changed_tree"]

_EVERY = (1 << (1 << LANE_INPUTS)) - 1
_INPUTS = [sum(1 << p for p in range(1 << LANE_INPUTS) if p >> k & 1) for k in range(LANE_INPUTS)]


def changed(structure: FourBitStructure, random: Random) -> FourBitStructure:
    """Return the structure with a few changes of one part."""
    part = random.choice(("lane", "lane", "total", "total", "total", "negative", "prefix"))
    if part == "lane":
        return replace(structure, lane=changed_lane(structure.lane, random))
    if part == "prefix":
        return replace(structure, total_prefix=changed_graph(structure.total_prefix, random))
    tree: CompressorTree = getattr(structure, part)
    for _ in range(random.choice((1, 2, 5, 20))):
        tree = changed_tree(tree, random)
    return replace(structure, **{part: tree})


def changed_tree(tree: CompressorTree, random: Random) -> CompressorTree:
    """Exchange two bits of a column between adders, or inside one; the same tree if it cannot.

    Adders stay in an order in which each bit is there before it is used.
    """
    adders = [(column, list(bits)) for column, bits in tree.adders]
    first = random.randrange(len(adders))
    column = adders[first][0]
    others = [k for k, (at, _) in enumerate(adders) if at == column]
    second = random.choice(others)
    i, j = random.randrange(len(adders[first][1])), random.randrange(len(adders[second][1]))
    x, y = adders[first][1][i], adders[second][1][j]
    inputs = sum(tree.heights)
    if x >= inputs + 2 * second or y >= inputs + 2 * first:
        return tree
    adders[first][1][i], adders[second][1][j] = y, x
    return CompressorTree(tree.heights, tuple((at, tuple(bits)) for at, bits in adders))


def changed_graph(graph: PrefixGraph, random: Random) -> PrefixGraph:
    """Divide one span of the graph elsewhere; what that needs is added, what nothing needs goes."""
    middles = {(high, low): middle for high, middle, low in graph.nodes}
    wide = [span for span in middles if span[0] - span[1] > 1]
    if not wide:
        return graph
    high, low = random.choice(wide)
    middles[high, low] = random.randint(low + 1, high)
    nodes: dict[tuple[int, int], int] = {}

    def need(high: int, low: int) -> None:
        if high == low or (high, low) in nodes:
            return
        middle = middles.get((high, low)) or random.randint(low + 1, high)
        need(high, middle)
        need(middle - 1, low)
        nodes[high, low] = middle

    for column in range(graph.width - 1):
        need(column, 0)
    return PrefixGraph(graph.width, tuple((h, m, low) for (h, low), m in nodes.items()))


def changed_lane(lane: Lane, random: Random, tries: int = 4000) -> Lane:
    """Replace gates and inputs at random as long as every output stays the same function.

    The area of the gates may not grow by more than one gate. The same lane if no try succeeds.
    """
    gates = [(kind, list(inputs)) for kind, inputs in lane.gates]
    outputs = list(lane.outputs)
    words = _words(gates)
    wanted = [words[i] for i in outputs]
    accepted, allowed = 0, _cost(gates, outputs) + 1
    for _ in range(tries):
        number = random.randrange(len(gates))
        old = (gates[number][0], list(gates[number][1]))
        kind, inputs = old[0], list(old[1])
        below = LANE_INPUTS + number
        if random.random() < 0.4:
            kind = random.choice(list(GATES))
            size = sum(GATES[kind])
            inputs = (inputs + [random.randrange(below) for _ in range(size)])[:size]
        inputs[random.randrange(len(inputs))] = random.randrange(below)
        gates[number] = (kind, inputs)
        now = _words(gates)
        if [now[i] for i in outputs] == wanted and _cost(gates, outputs) <= allowed:
            accepted += 1
            if accepted == 3:
                break
        else:
            gates[number] = old
    return _without_unused(gates, outputs)


def _words(gates: list[tuple[str, list[int]]]) -> list[int]:
    words = list(_INPUTS)
    for kind, inputs in gates:
        words.append(gate_function(kind, [words[i] for i in inputs]) & _EVERY)
    return words


def _used(gates: list[tuple[str, list[int]]], outputs: list[int]) -> set[int]:
    used = set(outputs)
    for number in reversed(range(len(gates))):
        if LANE_INPUTS + number in used:
            used |= set(gates[number][1])
    return used


def _cost(gates: list[tuple[str, list[int]]], outputs: list[int]) -> float:
    """Return a first idea of the area: inputs of gates that are used; an exclusive-or has four."""
    used = _used(gates, outputs)
    return sum(
        4 if kind in ("xor", "xnor", "mux") else len(inputs)
        for number, (kind, inputs) in enumerate(gates)
        if LANE_INPUTS + number in used
    )


def _without_unused(gates: list[tuple[str, list[int]]], outputs: list[int]) -> Lane:
    used = _used(gates, outputs)
    names = {k: k for k in range(LANE_INPUTS)}
    kept: list[tuple[str, tuple[int, ...]]] = []
    for number, (kind, inputs) in enumerate(gates):
        if LANE_INPUTS + number in used:
            names[LANE_INPUTS + number] = LANE_INPUTS + len(kept)
            kept.append((kind, tuple(names[i] for i in inputs)))
    return Lane(tuple(kept), tuple(names[i] for i in outputs))
