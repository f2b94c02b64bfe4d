"""Vectors through copies of a block with a fixed latency, compared with a golden model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano_verif.batch import apply, block_parameters, from_words, report, to_words

__all__ = ["SPECIAL", "compare", "special_pairs", "vector_count"]

_CHUNK = 4096

_MAGNITUDES = (
    *(0, 1, 2, 0x3FFFFF, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x3F7FFFFF, 0x3F800000),
    *(0x3F800001, 0x4B800000, 0x7E800000, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001),
    *(0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF),
)

SPECIAL = np.array([sign | x for sign in (0, 1 << 31) for x in _MAGNITUDES])
"""Bits of zeros, ends of the subnormal and the normal range, infinities and NaN, of both signs."""


def special_pairs() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all pairs of `SPECIAL`."""
    pairs = np.array(list(product(SPECIAL, SPECIAL)))
    return pairs[:, 0], pairs[:, 1]


def vector_count(usual: int) -> int:
    """Return how many random vectors are wanted: POBLANO_VECTORS, or the usual number."""
    return int(os.environ.get("POBLANO_VECTORS", usual))


async def compare(
    dut: Any,
    name: str,
    inputs: Mapping[str, tuple[NDArray[Any], int]],
    golden: Callable[..., Mapping[str, tuple[NDArray[Any], int]]],
    latency: int = 0,
) -> None:
    """Apply vectors and compare every output.

    Parameters
    ----------
    inputs:
        For each input port the numbers, and the bits of one.
    golden:
        Takes those numbers by the ports' names; returns for each output port to compare the
        numbers, unsigned, and the bits of one.
    latency:
        Cycles from inputs to outputs.
    """
    _, copies = block_parameters()
    count = len(next(iter(inputs.values()))[0])
    for start in range(0, count, _CHUNK * copies):
        some = {port: x[start : start + _CHUNK * copies] for port, (x, _) in inputs.items()}
        expected = golden(**some)
        n = len(next(iter(some.values())))
        cycles = -(-n // copies) + latency
        words: dict[str, list[int]] = {}
        for port, values in some.items():
            grid = np.zeros(cycles * copies, np.int64)
            grid[:n] = values
            words[port] = to_words(grid.reshape(cycles, copies), inputs[port][1])
        out = await apply(dut, words, list(expected))

        def describe(at: int, some: Mapping[str, NDArray[Any]] = some) -> str:
            return ", ".join(f"{port} {int(values[at]):#x}" for port, values in some.items())

        for port, (values, width) in expected.items():
            found = from_words(out[port][latency:], width, copies).reshape(-1)[:n]
            report(f"{name}, {port}", found, values.astype(np.uint64), describe)
