"""Bench of the elementary functions: special values, table boundaries, then random arguments."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano_golden import elementary
from poblano_verif.batch import block_parameters, reset
from poblano_verif.vectors import SPECIAL, compare, vector_count

_DEFAULT_VECTORS = 120_000
_SIGNS = np.array([0, 1 << 31])


def boundaries(rng: Generator) -> NDArray[Any]:
    """Return arguments at and beside the ends of the tables' intervals, and of the ranges.

    Under every exponent from 2**-30 to 2**9, both parities of it, and among subnormals of every
    length; exponentials also near whole and half powers as far as they reach, both ways.
    """
    grid = (np.arange(0, 1 << 23, 1 << 15)[:, None] + np.arange(-1, 2)).reshape(-1) % (1 << 23)
    exponents = np.concatenate([np.arange(127 - 30, 127 + 10), [1, 2, 252, 253, 254]])
    normal = (exponents[:, None] << 23) | rng.permuted(np.tile(grid, (len(exponents), 1)), axis=1)
    subnormal = ((1 << np.arange(23))[:, None] + rng.integers(-2, 3, (23, 50))).clip(0).reshape(-1)
    halves = np.arange(0, 310) / 2
    powers = np.concatenate([halves, halves / np.log2(np.e)]).astype(np.float32).view(np.uint32)
    near = powers.astype(np.int64)[:, None] + np.arange(-2, 3)
    parts = (normal.reshape(-1), subnormal, near.clip(0).reshape(-1))
    return (np.concatenate(parts)[:, None] | _SIGNS).reshape(-1)


def random_arguments(n: int, rng: Generator) -> NDArray[Any]:
    """Return random bits, most of them with exponents at which exponentials change."""
    bits = rng.integers(0, 1 << 32, n)
    exponent = rng.integers(127 - 28, 127 + 9, n)
    return np.where(rng.random(n) < 0.7, (bits & 0x807FFFFF) | (exponent << 23), bits)


async def check(dut: Any, name: str, x: NDArray[Any], rng: Generator) -> None:
    """Compare every function of the arguments, or with several functions one at random of each."""
    parameters, _ = block_parameters()
    functions = parameters["functions"]

    def golden(x: NDArray[Any], function: NDArray[Any]) -> dict[str, tuple[NDArray[Any], int]]:
        arguments = x.astype(np.uint32).view(np.float32)
        results = [getattr(elementary, name)(arguments).view(np.uint32) for name in functions]
        return {"result": (np.choose(function, results), 32)}

    latency = int(parameters.get("stages", 0))
    if len(functions) == 1:
        zero = np.zeros(len(x), np.int64)
        await compare(dut, name, {"x": (x, 32)}, lambda x: golden(x, zero[: len(x)]), latency)
        return
    width = (len(functions) - 1).bit_length()
    order = rng.permutation(len(functions))
    for shift in range(len(functions)) if name != "random" else (0,):
        function = order[(np.arange(len(x)) + shift) % len(functions)]
        inputs = {"x": (x, 32), "function": (function, width)}
        await compare(dut, name, inputs, golden, latency)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def values(dut: Any) -> None:
    """Special values and boundaries, then random arguments; POBLANO_VECTORS says how many."""
    await reset(dut)
    rng = default_rng(cocotb.RANDOM_SEED)
    await check(dut, "special", SPECIAL, rng)
    share = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
    some = rng.permutation(boundaries(rng))
    await check(dut, "boundaries", some[: int(len(some) * share)], rng)
    await check(dut, "random", random_arguments(vector_count(_DEFAULT_VECTORS), rng), rng)
