"""Bench of the exact dot product behind its decoders: every bit of the sum, and its exponent.

The expected sum is computed with Python integers, so no width is taken for granted.
"""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import default_rng

from poblano.arith.lanes import LanePlan
from poblano_golden.formats import SCALE_BIAS
from poblano_verif.batch import apply, block_parameters, from_words, report, reset
from poblano_verif.beat_schedule import schedule
from poblano_verif.mx_operands import Operands, code_pairs, directed, expected_sums, random_operands

_CHUNK = 1024
_DEFAULT_VECTORS = 6_000


class Bench:
    """The dot product under test."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = default_rng(cocotb.RANDOM_SEED)
        parameters, self.copies = block_parameters()
        self.plan = LanePlan(tuple(parameters["formats"]))
        self.latency = parameters.get("multiply_stages", 0) + parameters.get("sum_stages", 0)
        self.exponent_width = len(dut.exponent) // self.copies
        self.share = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))

    async def check(self, name: str, operands: Operands, gaps: float = 0.0) -> None:
        """Compute the blocks and compare sum, exponent, NaN flag and when a sum is valid."""
        order = self.rng.permutation(len(operands))
        operands = operands.take(order[: max(1, int(len(operands) * self.share))])
        for start in range(0, len(operands), _CHUNK * self.copies):
            chosen = np.arange(start, min(start + _CHUNK * self.copies, len(operands)))
            await self._check(name, operands.take(chosen), gaps)

    async def _check(self, name: str, operands: Operands, gaps: float) -> None:
        plan = schedule(operands, self.plan, self.copies, self.rng, latency=self.latency, gaps=gaps)
        found = await apply(self.dut, plan.inputs, ["sum", "exponent", "nan", "sum_valid"])

        def describe(at: int) -> str:
            return operands.describe(self.plan.modes, at)

        valid = from_words(found["sum_valid"], 1, self.copies)
        expected_valid = np.zeros_like(valid)
        expected_valid[plan.last + self.latency, plan.copy] = 1
        report(f"{name}: valid", valid.ravel(), expected_valid.ravel(), str)

        sums, nan = expected_sums(operands, self.plan.modes)
        at = plan.last + self.latency, plan.copy
        report(
            f"{name}: NaN", from_words(found["nan"], 1, self.copies)[at], nan.astype(int), describe
        )
        width = self.plan.sum_width
        words = from_words_wide(found["sum"], width, self.copies)[at]
        finite = ~nan
        kept = np.flatnonzero(finite)
        wrapped = np.array([int(x) % (1 << width) for x in sums[kept]], object)
        report(f"{name}: sum", words[kept], wrapped, lambda at: describe(int(kept[at])))

        lsb = np.array([mode.lsb_exponent for mode in self.plan.modes])[operands.mode]
        exponent = operands.a_scale.astype(int) + operands.b_scale + lsb - 2 * SCALE_BIAS
        report(
            f"{name}: exponent",
            from_words(found["exponent"], self.exponent_width, self.copies)[at].astype(int),
            exponent % (1 << self.exponent_width),
            describe,
        )


def from_words_wide(words: list[int], width: int, copies: int) -> np.ndarray[Any, Any]:
    """Split integers of any width into Python integers `[len(words), copies]`."""
    mask = (1 << width) - 1
    rows = [[(word >> (width * copy)) & mask for copy in range(copies)] for word in words]
    return np.array(rows, object)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def extremes(dut: Any) -> None:
    """Largest magnitudes of both signs, cancellation, NaN in every place, short blocks."""
    bench = Bench(dut)
    await reset(dut)
    for number, mode in enumerate(bench.plan.modes):
        name = f"extremes of {mode.a.name}*{mode.b.name}"
        await bench.check(name, directed(mode, number, bench.rng), gaps=0.2)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def every_pair_of_codes(dut: Any) -> None:
    """Every pair of codes of every mode."""
    bench = Bench(dut)
    await reset(dut)
    for number, mode in enumerate(bench.plan.modes):
        name = f"code pairs of {mode.a.name}*{mode.b.name}"
        await bench.check(name, code_pairs(mode, number, bench.rng))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def random_blocks(dut: Any) -> None:
    """Random blocks of mixed modes with gaps between beats."""
    bench = Bench(dut)
    await reset(dut)
    count = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    await bench.check("random", random_operands(bench.plan.modes, count, bench.rng), gaps=0.3)
