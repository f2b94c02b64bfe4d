"""Bench of the binary32 multiplier: against the numpy product, special pairs, then random."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_verif.batch import block_parameters, reset
from poblano_verif.vectors import compare, special_pairs, vector_count

_DEFAULT_VECTORS = 120_000


def random_pairs(n: int, rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return random pairs: any; with products about 2**-126 or 2**128; with ties; subnormal."""
    a, b = rng.integers(0, 1 << 32, (2, n))
    kind = rng.integers(0, 5, n)
    exponent = (a >> 23) & 0xFF
    for which, total in ((1, 127 + rng.integers(-26, 4, n)), (2, 127 + rng.integers(253, 257, n))):
        partner = np.clip(total - exponent, 0, 254)
        b = np.where(kind == which, (b & 0x807FFFFF) | (partner << 23), b)
    # Factors of 12 and 13 bits: their products have 25, so that most are ties or exact.
    a = np.where(kind == 3, a & ~0xFFF, a)
    b = np.where(kind == 3, b & ~0x7FF, b)
    a = np.where(kind == 4, a & 0x807FFFFF, a)
    return a, b


async def check(dut: Any, name: str, a: NDArray[Any], b: NDArray[Any]) -> None:
    """Multiply all pairs and compare every product."""

    def golden(a: NDArray[Any], b: NDArray[Any]) -> dict[str, tuple[NDArray[Any], int]]:
        x, y = (side.astype(np.uint32).view(np.float32) for side in (a, b))
        return {"result": (fp32.multiply(x, y).view(np.uint32), 32)}

    stages = int(block_parameters()[0].get("stages", 0))
    await compare(dut, name, {"a": (a, 32), "b": (b, 32)}, golden, stages)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def products(dut: Any) -> None:
    """All pairs of special numbers, then random ones; POBLANO_VECTORS says how many."""
    await reset(dut)
    await check(dut, "special", *special_pairs())
    rng = default_rng(cocotb.RANDOM_SEED)
    await check(dut, "random", *random_pairs(vector_count(_DEFAULT_VECTORS), rng))
