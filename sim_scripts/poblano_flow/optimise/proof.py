"""Proof that a structure is right: by rules, by all inputs, by SAT, and by many vectors."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano.arith.modes import LANES
from poblano.arith.structure import (
    CompressorTree,
    FourBitStructure,
    PrefixGraph,
    gate_function,
)
from poblano_golden.elements import decode
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXFP4

__all__ = ["Proof", "evaluate", "prove", "prove_adder"]

_WORD = 64
_Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Proof:
    """What was proved.

    Attributes
    ----------
    codes:
        Pairs of codes that a lane was tried with: all.
    adders, columns:
        Full and half adders whose bits were checked, and columns of the additions proved by SAT.
    vectors:
        Random vectors, extremes among them, that the whole was tried with.
    """

    codes: int
    adders: int
    columns: int
    vectors: int

    def __str__(self) -> str:
        return (
            f"lane by all {self.codes} pairs of codes, {self.adders} adders by weight and use, "
            f"additions of {self.columns} columns by SAT, whole by {self.vectors} vectors"
        )


def prove(structure: FourBitStructure, vectors: int = 1 << 20, seed: int = 1) -> Proof:
    """Prove a structure, or raise.

    Raises
    ------
    PoblanoError
        If a part is wrong; the message says which.
    """
    structure.check()
    for graph in (structure.count_prefix, structure.total_prefix):
        prove_adder(graph)
    tried = _try_vectors(structure, vectors, seed)
    adders = len(structure.negative.adders) + len(structure.total.adders)
    columns = structure.count_prefix.width + structure.total_prefix.width
    return Proof(256, adders, columns, tried)


def prove_adder(graph: PrefixGraph) -> None:
    """Prove by SAT that a prefix graph adds, for all inputs.

    Raises
    ------
    PoblanoError
        If it does not, or SAT finds no end.
    """
    from pyosys import libyosys as ys  # pyright: ignore[reportAttributeAccessIssue]

    with TemporaryDirectory(prefix="poblano-prove-") as scratch:
        source, log = Path(scratch, "adder.v"), Path(scratch, "log")
        source.write_text(_adder_verilog(graph), encoding="utf-8")
        design: Any = ys.Design()
        for command in (
            f"read_verilog {source}",
            "hierarchy -top adder",
            "proc",
            f"tee -q -o {log} sat -prove wrong 0 -timeout 120 adder",
        ):
            ys.Pass.call(
                design, f"tee -q -o {log}.x {command}" if "sat" not in command else command
            )
        said = log.read_text(encoding="utf-8")
    if "SUCCESS!" not in said:
        raise PoblanoError(f"the prefix graph of {graph.width} columns must add; SAT says it fails")


def _adder_verilog(graph: PrefixGraph) -> str:
    """Return a module whose output is 1 where the graph's sum is not the sum."""
    width = graph.width
    lines = [
        f"module adder(input [{width - 1}:0] a, input [{width - 1}:0] b, output wrong);",
        f"wire [{width - 1}:0] right = a + b;",
    ]
    for column in range(width):
        lines.append(f"wire g_{column}_{column} = a[{column}] & b[{column}];")
        lines.append(f"wire p_{column}_{column} = a[{column}] | b[{column}];")
    for high, middle, low in graph.nodes:
        upper, lower = f"{high}_{middle}", f"{middle - 1}_{low}"
        lines.append(f"wire g_{high}_{low} = g_{upper} | (p_{upper} & g_{lower});")
        lines.append(f"wire p_{high}_{low} = p_{upper} & p_{lower};")
    carries = ", ".join([f"g_{k}_0" for k in reversed(range(width - 1))] + ["1'b0"])
    lines += [
        f"wire [{width - 1}:0] found = a ^ b ^ {{{carries}}};",
        "assign wrong = found != right;",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def evaluate(structure: FourBitStructure, a: NDArray[np.uint8], b: NDArray[np.uint8]) -> Any:
    """Return what a structure makes of codes, in quarters.

    Parameters
    ----------
    a, b:
        Codes, (vectors, 32); the number of vectors is a multiple of 64.

    Returns
    -------
    int64, (vectors,).
    """
    bits: list[list[_Words]] = []
    for lane in range(LANES):
        words = [*_planes(a[:, lane]), *_planes(b[:, lane])]
        for kind, inputs in structure.lane.gates:
            words.append(gate_function(kind, [words[i] for i in inputs]))
        bits.append([words[i] for i in structure.lane.outputs])
    one = np.full(len(a) // _WORD, ~np.uint64(0))
    signs = [lane[8] for lane in bits]
    negative = _add(structure.negative, structure.count_prefix, [signs, *[[]] * 5])
    columns = [[lane[k] for lane in bits] for k in range(8)]
    columns = [[*columns[k], negative[k]] if k < 6 else columns[k] for k in range(8)]
    columns += [[~negative[k], *([one] if k == 0 else [])] for k in range(6)]
    total = _add(structure.total, structure.total_prefix, columns)
    value = np.zeros(len(a), dtype=np.int64)
    for k, word in enumerate(total):
        value += np.unpackbits(word.view(np.uint8), bitorder="little").astype(np.int64) << k
    return np.where(value >> 13 & 1, value - (1 << 14), value)


def _planes(codes: NDArray[np.uint8]) -> list[_Words]:
    return [np.packbits(codes >> k & 1, bitorder="little").view(np.uint64) for k in range(4)]


def _add(
    tree: CompressorTree, graph: PrefixGraph, columns: Sequence[Sequence[_Words]]
) -> list[_Words]:
    bits = dict(enumerate(bit for column in columns for bit in column))
    number = len(bits)
    for _, inputs in tree.adders:
        x = [bits.pop(i) for i in inputs]
        half, carry = x[0] ^ x[1], x[0] & x[1]
        bits[number] = half ^ x[2] if len(x) == 3 else half
        bits[number + 1] = carry | (half & x[2]) if len(x) == 3 else carry
        number += 2
    nothing = np.zeros_like(next(iter(bits.values())))
    rows = [[*(bits[i] for i in left), nothing, nothing][:2] for left in tree.left()]
    generate = {(k, k): x & y for k, (x, y) in enumerate(rows)}
    propagate = {(k, k): x | y for k, (x, y) in enumerate(rows)}
    for high, middle, low in graph.nodes:
        upper, lower = (high, middle), (middle - 1, low)
        generate[high, low] = generate[upper] | (propagate[upper] & generate[lower])
        propagate[high, low] = propagate[upper] & propagate[lower]
    carries = [nothing, *(generate[k, 0] for k in range(graph.width - 1))]
    return [x ^ y ^ carry for (x, y), carry in zip(rows, carries, strict=True)]


def _try_vectors(structure: FourBitStructure, vectors: int, seed: int) -> int:
    """Compare with numpy's sum; return the number of vectors."""
    numbers = np.random.default_rng(seed)
    values = (decode(np.arange(16, dtype=np.uint8), MXFP4).astype(np.float64) * 2).astype(np.int64)
    tried, part = 0, 1 << 14
    extremes = [(x, y) for x in range(16) for y in range(16)]
    random.Random(seed).shuffle(extremes)
    while tried < vectors:
        a, b = numbers.integers(0, 16, (2, part, LANES), dtype=np.uint8)
        if tried == 0:  # the same pair of codes on every lane
            for row, (x, y) in enumerate(extremes):
                a[row], b[row] = x, y
        wanted = (values[a] * values[b]).sum(axis=1)
        found = evaluate(structure, a, b)
        wrong = np.flatnonzero(wanted != found)
        if len(wrong):
            row = int(wrong[0])
            raise PoblanoError(
                f"vector {tried + row}: the sum must be {wanted[row]} quarters, not {found[row]}"
            )
        tried += part
    return tried
