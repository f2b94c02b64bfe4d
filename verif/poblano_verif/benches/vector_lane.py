"""Bench of a vector lane: every choice of every stage, extremes and random elements, pauses."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import cocotb
import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from poblano.config import VectorPipelineConfiguration
from poblano.vector.job import CHOICES, CONSTANTS, NUMBER_ORDER
from poblano.vector.latency import NUMBER_LATENCY, parts_latency, result_latency, s1_latency
from poblano_golden import elementary, fp32
from poblano_golden.vector import NUMBERS, Chain, chained, from_bytes
from poblano_verif.batch import apply, reset
from poblano_verif.dut import Dut
from poblano_verif.vectors import SPECIAL, special_pairs

SHARE = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
_TO_PARTS = ("power_fraction", "power_exponent", "power_zero", "power_spoilt")


@dataclass(frozen=True)
class Elements:
    """What goes into the lane, one entry a tick: raw elements, and all else in binary32."""

    raw: dict[str, NDArray[np.uint32]]
    numbers: dict[str, NDArray[np.float32]]
    valid: NDArray[np.bool_]
    present: NDArray[np.bool_]


def numbers_of(bits: NDArray[Any]) -> NDArray[np.float32]:
    """Return binary32 numbers, NaN canonical."""
    return fp32.canonical(bits.astype(np.uint32).view(np.float32))


def some_bits(rng: Generator, n: int) -> NDArray[np.uint32]:
    """Return bits of binary32 numbers: any, moderate ones, and special ones."""
    bits = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    exponent = rng.integers(127 - 20, 127 + 14, n, dtype=np.uint32)
    moderate = (bits & 0x807FFFFF) | exponent << 23
    special = rng.choice(SPECIAL, n).astype(np.uint32)
    kind = rng.random(n)
    return np.where(kind < 0.6, moderate, np.where(kind < 0.85, special, bits)).astype(np.uint32)


def some_elements(rng: Generator, formats: dict[str, str], n: int, *, pairs: bool) -> Elements:
    """Return elements of all streams; with `pairs` a and b begin with all special pairs."""
    raw = {side: some_bits(rng, n) for side in "abc"}
    if pairs:
        a, b = special_pairs()
        count = min(n, len(a))
        chosen = rng.permutation(len(a))[:count]
        raw["a"][:count], raw["b"][:count] = a[chosen], b[chosen]
    numbers: dict[str, NDArray[np.float32]] = {}
    for side, name in formats.items():
        number = NUMBERS[name]
        data = raw[side].view(np.uint8).reshape(n, 4)[:, : number.size]
        numbers[side] = from_bytes(data, number).reshape(n)
    for name in ("p", "q", "neighbour"):
        numbers[name] = numbers_of(some_bits(rng, n))
    return Elements(raw, numbers, rng.random(n) < 0.9, rng.random(n) < 0.9)


def golden(chain: Chain, given: Elements) -> NDArray[np.uint32]:
    """Return the bits of s2."""
    have = given.numbers
    a = np.where(given.valid, have["a"], fp32.canonical(np.asarray(chain.fill)))
    a = np.where(given.present, a, np.float32(0))
    pair = np.stack([a, have["neighbour"]], axis=1)
    sides = (np.repeat(have[name][:, None], 2, axis=1) for name in "bc")
    rows = (have[name][:, None] for name in "pq")
    return chained(chain, pair, np.ones(pair.shape, bool), *sides, *rows)[:, 0].view(np.uint32)


def parts(chain: Chain, given: Elements) -> dict[str, NDArray[np.int64]]:
    """Return what the lane must say of 2**s1."""
    bare = replace(
        chain, function="pass", left2="f", factor2="one", operation2="pass", reduction="none"
    )
    s1 = golden(bare, given).view(np.float32)
    significand, exponent = elementary.power_parts(s1)
    return {
        "power_fraction": significand & ((1 << 27) - 1),
        "power_exponent": exponent & 0xFFFF,
        "power_zero": np.isneginf(s1).astype(np.int64),
        "power_spoilt": (np.isnan(s1) | np.isposinf(s1)).astype(np.int64),
    }


class LaneBench:
    """A lane under test."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.dut = Dut(handle)
        top = self.dut.manifest["modules"][-1]
        self.pipeline = VectorPipelineConfiguration.model_validate(top["parameters"]["pipeline"])
        self.rng = default_rng(cocotb.RANDOM_SEED)

    async def check(
        self, chain: Chain, n: int, *, formats: dict[str, str], pause: float = 0.0
    ) -> None:
        """Send elements through a chain and compare s2, and the parts of 2**s1."""
        given = some_elements(self.rng, formats, n, pairs=formats["a"] == formats["b"] == "fp32")
        ticks = n + result_latency(self.pipeline)
        fields = {f"{side}_format": NUMBER_ORDER.index(formats[side]) for side in "abc"}
        fields |= {name: CHOICES[name].index(getattr(chain, name)) for name in CHOICES}
        fields |= {
            name: int(fp32.canonical(np.asarray(getattr(chain, name))).view(np.uint32))
            for name in CONSTANTS
        }
        word = self.dut.ports["chain"].layout.pack(fields)
        late = elementary.reciprocal(given.numbers["q"])
        starts = {
            **{side: (given.raw[side], 0) for side in "abc"},
            "valid": (given.valid, 0),
            "present": (given.present, 0),
            **{
                name: (given.numbers[name].view(np.uint32), NUMBER_LATENCY)
                for name in ("p", "q", "neighbour")
            },
            "late_factor": (late.view(np.uint32), s1_latency(self.pipeline)),
        }
        moves = self.rng.random(4 * ticks + 8) >= pause
        moves = moves[: int(np.flatnonzero(np.cumsum(moves) == ticks)[0]) + 1]
        tick = np.cumsum(moves) - moves  # the tick that each cycle shows
        inputs: dict[str, list[int]] = {
            "enable": moves.astype(int).tolist(),
            "chain": [word] * len(moves),
        }
        for name, (values, start) in starts.items():
            row = self.rng.integers(0, 2 if values.dtype == bool else 1 << 32, ticks)
            row[start : start + n] = values
            inputs[name] = row[tick].tolist()
        found = await apply(self.handle, inputs, ["result", *_TO_PARTS])
        at = np.flatnonzero(moves)
        self._compare(
            chain,
            formats,
            given,
            "result",
            found,
            at,
            result_latency(self.pipeline),
            golden(chain, given).astype(np.int64),
        )
        if chain.function not in ("exp", "sigmoid", "reciprocal", "reciprocal_sqrt"):
            for name, values in parts(chain, given).items():
                clear = ~parts(chain, given)["power_spoilt"].astype(bool)
                if name == "power_spoilt":
                    clear[:] = True
                start = parts_latency(self.pipeline)
                self._compare(chain, formats, given, name, found, at, start, values, clear)

    def _compare(
        self,
        chain: Chain,
        formats: dict[str, str],
        given: Elements,
        name: str,
        found: dict[str, list[int]],
        at: NDArray[np.int64],
        start: int,
        wanted: NDArray[np.int64],
        meant: NDArray[np.bool_] | None = None,
    ) -> None:
        got = np.array(found[name])[at[start : start + len(wanted)]]
        wrong = np.flatnonzero((got != wanted) & (True if meant is None else meant))
        if len(wrong):
            i = int(wrong[0])
            sides = {side: hex(int(bits[i])) for side, bits in given.raw.items()}
            others = {key: f"{x[i]:.9g}" for key, x in given.numbers.items()}
            raise AssertionError(
                f"{chain}, {formats}: {len(wrong)} of {len(wanted)} of {name} wrong, first is "
                f"{i}: {sides} {others} valid {given.valid[i]} present {given.present[i]}: "
                f"expected {int(wanted[i]):#x}, got {int(got[i]):#x}"
            )


def chain_of(rng: Generator, choices: Mapping[str, str]) -> Chain:
    """Return a chain with these choices and random constants."""
    fields: dict[str, Any] = dict(choices)
    fields |= zip(CONSTANTS, numbers_of(some_bits(rng, len(CONSTANTS))), strict=True)
    return Chain(**fields)


def some_chain(rng: Generator) -> Chain:
    """Return a random chain."""
    chosen = {name: str(rng.choice(list(names))) for name, names in CHOICES.items()}
    return chain_of(rng, chosen)


def some_formats(rng: Generator) -> dict[str, str]:
    """Return formats of the streams, fp32 more often than not."""
    return {
        side: "fp32" if rng.random() < 0.6 else str(rng.choice(list(NUMBER_ORDER)))
        for side in "abc"
    }


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def every_choice(dut: Any) -> None:
    """Each choice of each stage while the others pass, on extremes."""
    await reset(dut)
    bench = LaneBench(dut)
    wide = dict.fromkeys("abc", "fp32")
    n = max(30, int(1700 * SHARE))
    for name, names in CHOICES.items():
        for choice in names:
            others = {"operation1": "add"} if name == "operand1" else {}
            others |= {"operation2": "subtract"} if name == "operand2" else {}
            chain = chain_of(bench.rng, others | {name: choice})
            await bench.check(chain, n if name.startswith("op") else n // 4, formats=wide)
    for first, second in itertools.product(NUMBER_ORDER, repeat=2):
        formats = {"a": first, "b": second, "c": first}
        chain = Chain(factor1="b", operation1="add", operand1="c")
        await bench.check(chain, max(30, int(400 * SHARE)), formats=formats)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def random_chains(dut: Any) -> None:
    """Random chains and elements, with and without pauses."""
    await reset(dut)
    bench = LaneBench(dut)
    for number in range(max(6, int(160 * SHARE))):
        chain, formats = some_chain(bench.rng), some_formats(bench.rng)
        await bench.check(chain, 120, formats=formats, pause=0.3 * (number % 2))
