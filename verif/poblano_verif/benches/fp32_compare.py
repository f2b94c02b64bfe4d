"""Bench of the comparison of binary32 numbers: special pairs, then random ones."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_verif.batch import reset
from poblano_verif.vectors import compare, special_pairs, vector_count

_DEFAULT_VECTORS = 120_000


def random_pairs(n: int, rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return random pairs: any, equal but for one bit, or equal."""
    a, b = rng.integers(0, 1 << 32, (2, n))
    kind = rng.integers(0, 3, n)
    b = np.where(kind == 1, a ^ (1 << rng.integers(0, 32, n)), b)
    return a, np.where(kind == 2, a, b)


def golden(a: NDArray[Any], b: NDArray[Any]) -> dict[str, tuple[NDArray[Any], int]]:
    """Return every output."""
    x, y = (side.astype(np.uint32).view(np.float32) for side in (a, b))
    return {
        "less": (fp32.less(x, y), 1),
        "equal": (fp32.equal(x, y), 1),
        "unordered": (np.isnan(x) | np.isnan(y), 1),
        "maximum": (fp32.maximum(x, y).view(np.uint32), 32),
        "minimum": (fp32.minimum(x, y).view(np.uint32), 32),
    }


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def comparisons(dut: Any) -> None:
    """All pairs of special numbers, then random ones; POBLANO_VECTORS says how many."""
    await reset(dut)
    pairs = random_pairs(vector_count(_DEFAULT_VECTORS), default_rng(cocotb.RANDOM_SEED))
    for name, (a, b) in {"special": special_pairs(), "random": pairs}.items():
        await compare(dut, name, {"a": (a, 32), "b": (b, 32)}, golden)
