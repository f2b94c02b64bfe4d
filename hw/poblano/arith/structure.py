"""Arithmetic written down adder by adder, in files that a search made; imports no Amaranth.

`constraints/structures/NAME.json` holds one: the gates of a lane's product, the adders that
compress the bits of all lanes, and the prefix graph of the last addition. `poblano optimise` makes
such files; `FourBitStructure.check` proves what does not depend on wiring in hardware: the lane by
all its inputs, the compressors and the prefix graph by their rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from poblano.resources import constraints
from poblano_golden.errors import PoblanoError

__all__ = [
    "GATES",
    "CompressorTree",
    "FourBitStructure",
    "Lane",
    "PrefixGraph",
    "from_json",
    "gate_function",
    "load_structure",
    "read_structure",
    "to_json",
]

GATES: dict[str, tuple[int, ...]] = {
    "inv": (1,),
    "and": (2,), "or": (2,), "and3": (3,), "or3": (3,),
    "nand2": (2,), "nand3": (3,), "nand4": (4,),
    "nor2": (2,), "nor3": (3,), "nor4": (4,),
    "xor": (1, 1), "xnor": (1, 1), "mux": (1, 1, 1),
    "aoi21": (1, 2), "aoi22": (2, 2), "aoi211": (1, 1, 2), "aoi221": (1, 2, 2),
    "aoi222": (2, 2, 2),
    "oai21": (1, 2), "oai22": (2, 2), "oai211": (1, 1, 2), "oai221": (1, 2, 2),
    "oai222": (2, 2, 2),
}  # fmt: skip
"""Kinds of gate, and their inputs by group: `aoi21` is the inverse of a | b & c, `oai21` that of
a & (b | c). `mux` is its second input if its third is 1, else its first."""

LANE_INPUTS = 8
LANE_OUTPUTS = 9
_MAGNITUDES = (0, 1, 2, 3, 4, 6, 8, 12)
"""What a code without its sign stands for, in halves."""


@dataclass(frozen=True)
class Lane:
    """The gates of one product of two E2M1 codes.

    Bits are numbered: 0 to 3 are the code of side a, lowest first, 4 to 7 that of side b, and
    from 8 on every gate's output in the order of `gates`.

    Attributes
    ----------
    gates:
        Kind and inputs of each gate.
    outputs:
        Eight bits of the product's magnitude in quarters, lowest first, each exclusive-or the
        sign, and the sign.
    """

    gates: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[int, ...]

    def check(self) -> None:
        """Raise unless the gates give the product of every pair of codes.

        Raises
        ------
        PoblanoError
            If a gate is unknown or reads a bit that is not there yet, or a product is wrong.
        """
        for number, (kind, inputs) in enumerate(self.gates):
            if kind not in GATES or len(inputs) != sum(GATES[kind]):
                raise PoblanoError(
                    f"gate {number} must be a known kind with all its inputs, not {kind} {inputs}"
                )
            _check_earlier(f"gate {number}", inputs, LANE_INPUTS + number)
        if len(self.outputs) != LANE_OUTPUTS:
            raise PoblanoError(f"a lane must have {LANE_OUTPUTS} outputs, not {len(self.outputs)}")
        _check_earlier("outputs", self.outputs, LANE_INPUTS + len(self.gates))
        patterns = 1 << LANE_INPUTS
        every = (1 << patterns) - 1
        words = [sum(1 << p for p in range(patterns) if p >> k & 1) for k in range(LANE_INPUTS)]
        for kind, inputs in self.gates:
            words.append(gate_function(kind, [words[i] for i in inputs]) & every)
        found = [words[i] for i in self.outputs]
        for pattern in range(patterns):
            a, b = pattern & 15, pattern >> 4
            sign = a >> 3 ^ b >> 3
            magnitude = _MAGNITUDES[a & 7] * _MAGNITUDES[b & 7]
            wanted = (magnitude ^ (255 * sign)) | sign << 8
            got = sum((word >> pattern & 1) << k for k, word in enumerate(found))
            if got != wanted:
                raise PoblanoError(
                    f"a lane must give {wanted:#05x} for codes {a:x} and {b:x}, not {got:#05x}"
                )


@dataclass(frozen=True)
class CompressorTree:
    """Full and half adders that leave at most two bits in every column.

    Bits are numbered: those that come in, column by column, then the sum and the carry of each
    adder in turn. A carry out of the last column counts for nothing.

    Attributes
    ----------
    heights:
        Bits that come in, for every column; column k weighs 2**k.
    adders:
        Column of each adder, and its two or three bits. The last of three arrives latest.
    """

    heights: tuple[int, ...]
    adders: tuple[tuple[int, tuple[int, ...]], ...]

    def left(self) -> tuple[tuple[int, ...], ...]:
        """Return the bits that are left in each column, and check the tree.

        Every adder takes bits of its own column alone, each bit goes to one adder or is left, so
        that the weighted sum of what is left is that of what came in.

        Raises
        ------
        PoblanoError
            If a bit is used twice, before it is there or in another column, an adder has not
            two or three bits, or more than two bits are left in a column.
        """
        free: dict[int, int] = {}
        for column, height in enumerate(self.heights):
            free |= dict.fromkeys(range(len(free), len(free) + height), column)
        number = len(free)
        for index, (column, bits) in enumerate(self.adders):
            if len(bits) not in (2, 3) or column not in range(len(self.heights)):
                raise PoblanoError(
                    f"adder {index} must have 2 or 3 bits of a column, not {len(bits)} of {column}"
                )
            for bit in bits:
                if free.get(bit) != column:
                    raise PoblanoError(
                        f"adder {index} must take bits of column {column} that no other took, "
                        f"not {bit}"
                    )
                del free[bit]
            free[number] = column
            if column + 1 < len(self.heights):
                free[number + 1] = column + 1
            number += 2
        columns = tuple(
            tuple(bit for bit, at in free.items() if at == column)
            for column in range(len(self.heights))
        )
        for column, bits in enumerate(columns):
            if len(bits) > 2:
                raise PoblanoError(f"column {column} must be left with 2 bits, not {len(bits)}")
        return columns


@dataclass(frozen=True)
class PrefixGraph:
    """How the carries of an addition are gathered from generate and propagate.

    Attributes
    ----------
    width:
        Bits of the sum.
    nodes:
        (high, middle, low): what columns high to low generate and propagate together, from high
        to middle and middle - 1 to low. A later node uses earlier ones, and single columns.
    """

    width: int
    nodes: tuple[tuple[int, int, int], ...]

    def check(self) -> None:
        """Raise unless every carry into a column is there.

        Raises
        ------
        PoblanoError
            If a node joins what is not there, or a carry is missing.
        """
        known = {(column, column) for column in range(self.width)}
        for high, middle, low in self.nodes:
            if not {(high, middle), (middle - 1, low)} <= known or (high, low) in known:
                raise PoblanoError(
                    f"prefix node {high}:{low} must be new and join two earlier ones at {middle}"
                )
            known.add((high, low))
        for column in range(self.width - 1):
            if (column, 0) not in known:
                raise PoblanoError(f"the prefix graph must give the carry of column {column}")


@dataclass(frozen=True)
class FourBitStructure:
    """The exact sum of 32 products of E2M1 codes.

    Attributes
    ----------
    lane:
        A product.
    negative:
        Counts the negative products: 32 bits in column 0.
    total:
        Adds the lanes' bits, the count and the count's complement (see
        `poblano.arith.four_bit_sum`), in that order within a column.
    count_prefix, total_prefix:
        The additions of what the two trees leave.
    """

    lane: Lane
    negative: CompressorTree
    total: CompressorTree
    count_prefix: PrefixGraph
    total_prefix: PrefixGraph

    def check(self) -> None:
        """Raise unless the structure is right.

        Raises
        ------
        PoblanoError
            If a part breaks its rules, or the parts do not fit.
        """
        self.lane.check()
        for name, tree, heights, prefix in (
            ("negative", self.negative, NEGATIVE_HEIGHTS, self.count_prefix),
            ("total", self.total, TOTAL_HEIGHTS, self.total_prefix),
        ):
            if tree.heights != heights:
                raise PoblanoError(f"{name}: the heights must be {heights}, not {tree.heights}")
            if prefix.width != len(heights):
                raise PoblanoError(
                    f"{name}: the prefix graph must have {len(heights)} columns, not {prefix.width}"
                )
            tree.left()
            prefix.check()


NEGATIVE_HEIGHTS = (32, 0, 0, 0, 0, 0)
"""Bits a column that count the negative products."""
TOTAL_HEIGHTS = (33, 33, 33, 33, 33, 33, 32, 32, 2, 1, 1, 1, 1, 1)
"""Bits a column that the sum of the products adds."""


def gate_function(kind: str, x: Sequence[Any]) -> Any:
    """Return what a gate makes of its inputs: integers, arrays or Amaranth values, bit by bit."""
    if kind == "inv":
        return ~x[0]
    if kind in ("xor", "xnor"):
        return x[0] ^ x[1] if kind == "xor" else ~(x[0] ^ x[1])
    if kind == "mux":
        return (x[2] & x[1]) | (~x[2] & x[0])
    groups: list[Any] = []
    position = 0
    ands = kind.startswith(("and", "nand", "aoi"))
    for size in GATES[kind]:
        group = x[position]
        for other in x[position + 1 : position + size]:
            group = group & other if ands else group | other
        groups.append(group)
        position += size
    result = groups[0]
    for group in groups[1:]:
        result = result | group if ands else result & group
    return result if kind.startswith(("and", "or")) else ~result


def _check_earlier(name: str, bits: Iterable[int], number: int) -> None:
    for bit in bits:
        if bit not in range(number):
            raise PoblanoError(f"{name} must read bits below {number}, not {bit}")


def read_structure(path: Path) -> FourBitStructure:
    """Read and check a structure.

    Raises
    ------
    PoblanoError
        If the file cannot be read, or its structure is wrong.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        structure = from_json(found["structure"])
        structure.check()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PoblanoError(f"{path}: must be a structure; got {error}") from None
    except PoblanoError as error:
        raise PoblanoError(f"{path}: {error}") from None
    return structure


@cache
def load_structure(name: str) -> FourBitStructure:
    """Return a structure of `constraints/structures`, checked."""
    return read_structure(constraints() / "structures" / f"{name}.json")


def from_json(found: dict[str, Any]) -> FourBitStructure:
    """Return what `to_json` wrote."""

    def tree(part: dict[str, Any]) -> CompressorTree:
        adders = ((int(column), tuple(map(int, bits))) for column, *bits in part["adders"])
        return CompressorTree(tuple(map(int, part["heights"])), tuple(adders))

    def prefix(part: dict[str, Any]) -> PrefixGraph:
        nodes = ((int(high), int(middle), int(low)) for high, middle, low in part["nodes"])
        return PrefixGraph(int(part["width"]), tuple(nodes))

    lane = found["lane"]
    gates = ((str(kind), tuple(map(int, inputs))) for kind, *inputs in lane["gates"])
    return FourBitStructure(
        Lane(tuple(gates), tuple(map(int, lane["outputs"]))),
        tree(found["negative"]),
        tree(found["total"]),
        prefix(found["count_prefix"]),
        prefix(found["total_prefix"]),
    )


def to_json(structure: FourBitStructure) -> dict[str, Any]:
    """Return the structure as what JSON can hold."""

    def tree(part: CompressorTree) -> dict[str, Any]:
        return {
            "heights": list(part.heights),
            "adders": [[column, *bits] for column, bits in part.adders],
        }

    def prefix(part: PrefixGraph) -> dict[str, Any]:
        return {"width": part.width, "nodes": [list(node) for node in part.nodes]}

    return {
        "lane": {
            "gates": [[kind, *inputs] for kind, inputs in structure.lane.gates],
            "outputs": list(structure.lane.outputs),
        },
        "negative": tree(structure.negative),
        "total": tree(structure.total),
        "count_prefix": prefix(structure.count_prefix),
        "total_prefix": prefix(structure.total_prefix),
    }
