"""Bench of the rounding to binary32: every exponent, ties and their neighbours, then random."""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano_golden import fp32
from poblano_verif.batch import apply, block_parameters, from_words, report, reset, to_words

_CHUNK = 4096
_DEFAULT_VECTORS = 60_000
_NAN, _INFINITY, _SIGN = 0x7FC00000, 0x7F800000, 0x80000000


def boundary_values(width: int) -> NDArray[np.int64]:
    """Return values about each power of two: itself, ties of its last place, and neighbours."""
    found = {0, -1 << (width - 1)}
    for bit in range(width - 1):
        top = 1 << bit
        for place in range(max(0, bit - 25), bit + 1):
            for low in (0, (1 << place) - 1, 1 << place, (1 << place) + 1, 3 << place):
                found |= {top + low, top - low, 2 * top - 1 - low}
    inside = [x for x in found if abs(x) < 1 << (width - 1)]
    return np.array(sorted({*inside, *(-x for x in inside), -1 << (width - 1)}))


def random_values(width: int, n: int, rng: Generator) -> NDArray[np.int64]:
    """Return random values of every length, a part of them with long runs of equal bits."""
    length = rng.integers(0, width, n)
    value = rng.integers(0, 1 << 62, n) >> (62 - length)
    run = rng.integers(0, width, n)
    filled = np.where(rng.random(n) < 0.5, value | ((1 << run) - 1), value & -(1 << run))
    value = np.where(rng.random(n) < 0.5, filled & ((1 << (width - 1)) - 1), value)
    return np.where(rng.random(n) < 0.5, -value, value)


def expected(
    value: NDArray[Any], exponent: NDArray[Any], nan: Any, infinity: Any, sign: Any
) -> NDArray[np.uint32]:
    """Return the binary32 bits of value * 2**exponent, or of what the flags ask for."""
    exact = np.ldexp(value.astype(np.float64), exponent)
    bits = fp32.from_float64(exact).view(np.uint32)
    bits = np.where(infinity == 1, np.where(sign == 1, _INFINITY | _SIGN, _INFINITY), bits)
    return np.where(nan == 1, _NAN, bits).astype(np.uint32)


async def check(dut: Any, name: str, value: NDArray[Any], exponent: NDArray[Any]) -> None:
    """Round all numbers, with a flag here and there, and compare every result."""
    own, copies = block_parameters()
    stages, infinities = int(own.get("stages", 0)), bool(own.get("infinities", False))
    rng = default_rng(cocotb.RANDOM_SEED)
    widths = {"value": int(own["width"]), "nan": 1, "exponent": len(dut.exponent) // copies}
    n = len(value)
    vectors = {"value": value, "exponent": exponent, "nan": (rng.random(n) < 0.01).astype(int)}
    flags = {"infinity": np.zeros(n, int), "infinity_sign": np.zeros(n, int)}
    if infinities:
        flags = {
            "infinity": (rng.random(n) < 0.1).astype(int),
            "infinity_sign": rng.integers(0, 2, n),
        }
        vectors |= flags
        widths |= dict.fromkeys(flags, 1)
    golden = expected(value, exponent, vectors["nan"], flags["infinity"], flags["infinity_sign"])
    for start in range(0, n, _CHUNK * copies):
        some = slice(start, start + _CHUNK * copies)
        size = len(value[some])
        cycles = -(-size // copies) + stages
        words: dict[str, list[int]] = {}
        for port, numbers in vectors.items():
            padded = np.zeros(cycles * copies, np.int64)
            padded[:size] = numbers[some]
            words[port] = to_words(padded.reshape(cycles, copies), widths[port])
        out = (await apply(dut, words, ["result"]))["result"][stages:]
        found = from_words(out, 32, copies).reshape(-1)[:size].astype(np.uint32)

        def describe(at: int, start: int = start) -> str:
            return " ".join(f"{port}={numbers[start + at]}" for port, numbers in vectors.items())

        report(name, found, golden[some], describe)


def exponents() -> range:
    """Return the exponents that the block under test takes."""
    text: str = block_parameters()[0]["exponents"]  # range(start, stop)
    start, stop = (int(part) for part in text.removeprefix("range(").removesuffix(")").split(","))
    return range(start, stop)


def width() -> int:
    """Return the bits of the block's value."""
    return int(block_parameters()[0]["width"])


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def boundaries(dut: Any) -> None:
    """Values about every power of two, with exponents that bring them to every edge."""
    await reset(dut)
    rng = default_rng(cocotb.RANDOM_SEED)
    values = boundary_values(width())
    share = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
    legal = exponents()
    length = np.array([int(abs(x)).bit_length() for x in values])
    parts: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for target in (*range(-152, -122), -1, 0, *range(124, 131)):  # exponent of the leading bit
        keep = rng.random(len(values)) < share / 8
        parts.append((values[keep], target - length[keep] + 1))
    value, exponent = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    exponent = np.clip(exponent, legal.start, legal.stop - 1)
    await check(dut, "boundaries", value, exponent)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def random_numbers(dut: Any) -> None:
    """Random values with every exponent; POBLANO_VECTORS says how many."""
    await reset(dut)
    count = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    rng = default_rng(cocotb.RANDOM_SEED)
    legal = exponents()
    exponent = rng.integers(legal.start, legal.stop, count)
    await check(dut, "random", random_values(width(), count, rng), exponent)
