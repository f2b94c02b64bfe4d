"""Bench of the binary32 adder: against the numpy sum, boundaries of every kind, then random."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_golden.arrays import U32
from poblano_verif.batch import apply, block_parameters, from_words, report, reset, to_words

_FRACTIONS = (0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFD, 0x7FFFFE, 0x7FFFFF)
_CHUNK = 4096
_DEFAULT_VECTORS = 60_000


def fp32_bits(sign: Any, exponent: Any, fraction: Any) -> NDArray[Any]:
    """Return binary32 bits of fields, which broadcast."""
    return (np.asarray(sign) << 31) | (np.asarray(exponent) << 23) | np.asarray(fraction)


def every_difference(rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return every difference of exponents, with all signs and boundary fractions of both."""
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    grid = np.array(list(product((0, 1), (0, 1), _FRACTIONS, _FRACTIONS)))
    for difference in range(-255, 256):
        low, high = max(0, difference), min(255, 255 + difference)
        exponents = {low, min(low + 1, high), high, int(rng.integers(low, high + 1))}
        for exponent in exponents:
            a = fp32_bits(grid[:, 0], exponent, grid[:, 2])
            b = fp32_bits(grid[:, 1], exponent - difference, grid[:, 3])
            parts.append((a, b))
    return np.concatenate([a for a, _ in parts]), np.concatenate([b for _, b in parts])


def special_pairs() -> tuple[NDArray[Any], NDArray[Any]]:
    """Return all pairs of zeros, least and largest numbers, infinities and NaN, of both signs."""
    magnitudes = (0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001)
    numbers = [sign | x for sign in (0, 1 << 31) for x in (*magnitudes, 0x7FC00000, 0x7FFFFFFF)]
    pairs = np.array(list(product(numbers, numbers)))
    return pairs[:, 0], pairs[:, 1]


def random_pairs(n: int, rng: Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return random pairs: any bits, near each other, subnormal, or about to overflow."""
    a, b = rng.integers(0, 1 << 32, (2, n))
    kind = rng.integers(0, 4, n)
    near = (a ^ rng.integers(0, 1 << 12, n)) + (rng.integers(-26, 27, n) << 23)
    near = (near & 0x7FFFFFFF) | (b & 0x80000000)
    b = np.where(kind == 1, near, b)
    a, b = (np.where(kind == 2, x & 0x80FFFFFF, x) for x in (a, b))
    return tuple(np.where(kind == 3, x | 0x7E000000, x) for x in (a, b))  # type: ignore[return-value]


async def check(dut: Any, name: str, a: NDArray[Any], b: NDArray[Any]) -> None:
    """Add all pairs and compare every sum."""
    parameters, copies = block_parameters()
    stages = int(parameters.get("stages", 0))
    for start in range(0, len(a), _CHUNK * copies):
        some = [x[start : start + _CHUNK * copies] for x in (a, b)]
        n = len(some[0])
        cycles = -(-n // copies) + stages
        grid = [
            np.concatenate([x, np.zeros(cycles * copies - n, np.int64)]).reshape(cycles, copies)
            for x in some
        ]
        words = {port: to_words(x, 32) for port, x in zip("ab", grid, strict=True)}
        out = (await apply(dut, words, ["result"]))["result"][stages:]
        found = from_words(out, 32, copies).reshape(-1)[:n]
        sides = [x.astype(np.uint32) for x in some]
        golden: U32 = fp32.add(*(x.view(np.float32) for x in sides)).view(np.uint32)

        def describe(at: int, sides: list[NDArray[Any]] = sides) -> str:
            x, y = (side[at] for side in sides)
            return f"{x:#010x} + {y:#010x} ({x.view(np.float32)} + {y.view(np.float32)})"

        report(name, found.astype(np.uint32), golden, describe)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def boundaries(dut: Any) -> None:
    """Every difference of exponents with boundary fractions and all signs."""
    await reset(dut)
    rng = default_rng(cocotb.RANDOM_SEED)
    a, b = every_difference(rng)
    share = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
    keep = rng.permutation(len(a))[: int(len(a) * share)]
    await check(dut, "boundaries", a[keep], b[keep])
    await check(dut, "special", *special_pairs())


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def random_sums(dut: Any) -> None:
    """Random pairs; POBLANO_VECTORS says how many."""
    await reset(dut)
    count = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    await check(dut, "random", *random_pairs(count, default_rng(cocotb.RANDOM_SEED)))
