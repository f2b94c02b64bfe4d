"""Blocks as beats on the ports of `DecodedDotProduct` and `DecodedUnit`, copies side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from poblano.arith.lanes import LanePlan
from poblano_golden.formats import BLOCK_SIZE
from poblano_verif.batch import to_words
from poblano_verif.mx_operands import Operands

__all__ = ["Schedule", "schedule"]


@dataclass(frozen=True)
class Schedule:
    """What to drive in each cycle, and where each block's last beat is.

    Attributes
    ----------
    inputs:
        Port name to one integer a cycle, the copies' values joined.
    copy, last:
        For each block the copy that computes it and the cycle of its last beat.
    """

    inputs: dict[str, list[int]]
    copy: NDArray[Any]
    last: NDArray[Any]


def schedule(
    operands: Operands,
    plan: LanePlan,
    copies: int,
    rng: Generator,
    *,
    latency: int,
    gaps: float = 0.0,
    accumulator_latency: int | None = None,
) -> Schedule:
    """Lay blocks out on the copies in turn.

    Parameters
    ----------
    operands:
        The blocks.
    plan, copies:
        Of the device under test.
    rng:
        For gaps, and for what idle cycles carry.
    latency:
        Idle cycles at the end.
    gaps:
        Probability of an idle cycle before each beat. Idle cycles carry random values.
    accumulator_latency:
        Cycle after the last beat in which `accumulator` holds the block's; None: no such port.
    """
    beats = np.array([mode.beats for mode in plan.modes])
    n = len(operands)
    copy = np.arange(n) % copies
    last = np.zeros(n, np.int64)
    slots: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    for index in range(copies):
        mine = np.flatnonzero(copy == index)
        length = beats[operands.mode[mine]]
        block = np.repeat(mine, length)
        beat = np.arange(len(block)) - np.repeat(np.cumsum(length) - length, length)
        cycle = np.cumsum(1 + (rng.random(len(block)) < gaps)) - 1
        last[mine] = cycle[np.cumsum(length) - 1]
        slots.append((cycle, block, beat))
    cycles = int(last.max()) + 1 + latency

    shape = (cycles, copies)
    chosen = rng.integers(0, n, shape)
    beat = rng.integers(0, 4, shape)
    first, end = rng.integers(0, 2, shape), rng.integers(0, 2, shape)
    valid = np.zeros(shape, np.int64)
    for index, (cycle, block, number) in enumerate(slots):
        chosen[cycle, index], beat[cycle, index], valid[cycle, index] = block, number, 1
        first[cycle, index] = number == 0
        end[cycle, index] = number == beats[operands.mode[block]] - 1

    packed = _packed(operands, plan, rng)
    values: dict[str, tuple[NDArray[Any], int]] = {
        "mode": (operands.mode[chosen], plan.mode_width),
        "beat": (beat, 2),
        "count": (operands.count[chosen], BLOCK_SIZE.bit_length()),
        "first": (first, 1),
        "last": (end, 1),
        "valid": (valid, 1),
    }
    for side in "ab":
        values[f"{side}_scale"] = (getattr(operands, f"{side}_scale")[chosen].astype(np.int64), 8)
        values[f"{side}_codes"] = (packed[side][chosen], plan.code_bits)
    if accumulator_latency is not None:
        accumulator = rng.integers(0, 1 << 32, shape)
        accumulator[last + accumulator_latency, copy] = operands.accumulator
        values["accumulator"] = (accumulator, 32)
    inputs = {name: to_words(array, width) for name, (array, width) in values.items()}
    return Schedule(inputs, copy, last)


def _packed(operands: Operands, plan: LanePlan, rng: Generator) -> dict[str, NDArray[np.uint8]]:
    """Return the codes as they lie in memory; bytes that a format does not use are random."""
    n = len(operands)
    packed = {
        side: rng.integers(0, 256, (n, plan.code_bits // 8)).astype(np.uint8) for side in "ab"
    }
    for number, mode in enumerate(plan.modes):
        at = np.flatnonzero(operands.mode == number)
        for side, fmt in (("a", mode.a), ("b", mode.b)):
            codes: NDArray[np.uint8] = getattr(operands, f"{side}_codes")[at]
            if fmt.storage_bits == 4:
                stored = codes[:, 0::2] | (codes[:, 1::2] << 4)
            else:  # what stands above a six-bit code is ignored
                mask = (1 << fmt.element_bits) - 1
                stored = codes | (packed[side][at, :BLOCK_SIZE] & (0xFF - mask))
            packed[side][at, : fmt.block_bytes] = stored
    return packed
