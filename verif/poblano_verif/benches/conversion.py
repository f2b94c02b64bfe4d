"""Bench of conversions between binary32 and narrow formats, all with ports `i` and `o`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_verif.batch import reset
from poblano_verif.vectors import SPECIAL, compare, vector_count

_DEFAULT_VECTORS = 100_000

LOWER = (0x0000, 0x0001, 0x0FFF, 0x1000, 0x1001, 0x3000, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
"""Lower halves of binary32 numbers: exact, at ties and beside them, the largest."""

Model = Callable[[NDArray[Any]], NDArray[Any]]

_CONVERSIONS: dict[str, tuple[int, int, Model]] = {
    "Fp32ToFp16": (32, 16, lambda i: fp32.to_fp16_bits(i.astype(np.uint32).view(np.float32))),
    "Fp32ToInt8": (
        32,
        8,
        lambda i: fp32.to_int8(i.astype(np.uint32).view(np.float32)).view(np.uint8),
    ),
    "Bf16ToFp32": (16, 32, lambda i: fp32.from_bf16_bits(i.astype(np.uint16)).view(np.uint32)),
    "Fp16ToFp32": (16, 32, lambda i: fp32.from_fp16_bits(i.astype(np.uint16)).view(np.uint32)),
    "Int8ToFp32": (
        8,
        32,
        lambda i: fp32.from_int8(i.astype(np.uint8).view(np.int8)).view(np.uint32),
    ),
}
"""For each block the bits of its input and output, and its golden model on bits."""


def inputs(width: int) -> NDArray[Any]:
    """Return every input of a narrow format; of binary32 boundaries and random numbers."""
    if width < 32:
        return np.arange(1 << width)
    rng = default_rng(cocotb.RANDOM_SEED)
    count = vector_count(_DEFAULT_VECTORS)
    upper = rng.permutation(1 << 16)[: count // len(LOWER)]
    boundaries = ((upper[:, None] << 16) | np.array(LOWER)).reshape(-1)
    # Numbers about 1 to 256 with few bits: ties of integers.
    halves = (rng.integers(-1200, 1201, count // 4) / 4).astype(np.float32).view(np.uint32)
    return np.concatenate([SPECIAL, boundaries, halves, rng.integers(0, 1 << 32, count)])


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def conversions(dut: Any) -> None:
    """Every code, or boundaries and random numbers; POBLANO_VECTORS says how many."""
    manifest = json.loads(Path(os.environ["POBLANO_MANIFEST"]).read_text("utf-8"))
    top = next(module for module in manifest["modules"] if module["name"] == manifest["top"])
    block = top["parameters"]["block"]
    i_width, o_width, model = _CONVERSIONS[block]
    await reset(dut)

    def golden(i: NDArray[Any]) -> dict[str, tuple[NDArray[Any], int]]:
        return {"o": (model(i), o_width)}

    await compare(dut, block, {"i": (inputs(i_width), i_width)}, golden)
