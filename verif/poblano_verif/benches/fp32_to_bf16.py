"""Bench of the rounding to BF16: every upper half with every tie, against the numpy model."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from poblano_golden.arrays import U32
from poblano_golden.fp32 import to_bf16_bits
from poblano_verif.batch import apply, block_parameters, from_words, report, reset, to_words

LOWER = (0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
"""Lower halves: exact, next to it, the tie and its neighbours, the largest."""

_CHUNK = 4096
_DEFAULT_VECTORS = 100_000


async def check(dut: Any, name: str, bits: NDArray[Any]) -> None:
    """Round every number and compare."""
    await reset(dut)
    _, copies = block_parameters()
    for start in range(0, len(bits), _CHUNK * copies):
        some: U32 = bits[start : start + _CHUNK * copies].astype(np.uint32)
        cycles = -(-len(some) // copies)
        grid = np.zeros(cycles * copies, np.int64)
        grid[: len(some)] = some
        words = {"i": to_words(grid.reshape(cycles, copies), 32)}
        out = (await apply(dut, words, ["o"]))["o"]
        found = from_words(out, 16, copies).reshape(-1)[: len(some)]

        def describe(at: int, some: U32 = some) -> str:
            return f"{some[at]:#010x} ({some[at].view(np.float32)})"

        report(name, found.astype(np.uint16), to_bf16_bits(some.view(np.float32)), describe)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def every_upper_half(dut: Any) -> None:
    """All 65,536 upper halves with each of `LOWER`."""
    upper, lower = np.arange(1 << 16)[:, None] << 16, np.array(LOWER)
    bits = (upper | lower).reshape(-1)
    keep = int(len(bits) * float(os.environ.get("POBLANO_BENCH_SHARE", "1")))
    await check(dut, "every upper half", default_rng(cocotb.RANDOM_SEED).permutation(bits)[:keep])


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def random_numbers(dut: Any) -> None:
    """Random bits; POBLANO_VECTORS says how many."""
    count = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    rng = default_rng(cocotb.RANDOM_SEED)
    await check(dut, "random", rng.integers(0, 1 << 32, count))
