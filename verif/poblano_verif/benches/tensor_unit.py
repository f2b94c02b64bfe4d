"""Bench of a tensor unit behind its decoders: codes and an accumulator in, binary32 out.

Every mode's extremes, every pair of codes, all pairs of scales, then random blocks of mixed modes
with gaps between beats. Each result must stand at `result` in the cycle that
`poblano.arith.latency` says, and is compared bit for bit with the numpy model.
"""

from __future__ import annotations

import os
from typing import Any

import cocotb
import numpy as np
from numpy.random import default_rng

from poblano.arith.lanes import LanePlan
from poblano.arith.latency import accumulator_latency, unit_latency
from poblano.config import PipelineConfiguration
from poblano_verif.batch import apply, block_parameters, from_words, report, reset
from poblano_verif.beat_schedule import schedule
from poblano_verif.mx_operands import (
    Operands,
    code_pairs,
    directed,
    random_operands,
    scale_pairs,
    single_pairs,
)

_CHUNK = 1024
"""Blocks of one copy between two comparisons."""
_DEFAULT_VECTORS = 12_000
_STAGES = ("multiply", "sum", "round", "add")


class Bench:
    """The unit under test."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = default_rng(cocotb.RANDOM_SEED)
        parameters, self.copies = block_parameters()
        self.plan = LanePlan(tuple(parameters["formats"]))
        self.pipeline = PipelineConfiguration(
            **{name: parameters[f"{name}_stages"] for name in _STAGES}
        )

    def some(self, operands: Operands, variable: str = "POBLANO_BENCH_SHARE") -> Operands:
        """Return the share of the blocks that this run checks, in random order."""
        share = float(os.environ.get(variable, "1"))
        order = self.rng.permutation(len(operands))
        return operands.take(order[: max(1, int(len(operands) * share))])

    async def check(self, name: str, operands: Operands, gaps: float = 0.0) -> None:
        """Compute all blocks and compare every result."""
        for start in range(0, len(operands), _CHUNK * self.copies):
            some = operands.take(np.arange(start, min(start + _CHUNK * self.copies, len(operands))))
            plan = schedule(
                some,
                self.plan,
                self.copies,
                self.rng,
                latency=unit_latency(self.pipeline),
                gaps=gaps,
                accumulator_latency=accumulator_latency(self.pipeline),
            )
            out = (await apply(self.dut, plan.inputs, ["result"]))["result"]
            results = from_words(out, 32, self.copies)
            found = results[plan.last + unit_latency(self.pipeline), plan.copy]

            def describe(at: int, some: Operands = some) -> str:
                return some.describe(self.plan.modes, at)

            report(name, found.astype(np.uint32), some.results(self.plan.modes), describe)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def extremes(dut: Any) -> None:
    """Largest magnitudes, cancellation, ties, subnormals, overflow, NaN, short blocks."""
    bench = Bench(dut)
    await reset(dut)
    for number, mode in enumerate(bench.plan.modes):
        name = f"extremes of {mode.a.name}*{mode.b.name}"
        operands = bench.some(directed(mode, number, bench.rng), "POBLANO_EXTREMES_SHARE")
        await bench.check(name, operands, gaps=0.1)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def every_pair_of_codes(dut: Any) -> None:
    """Every pair of codes of every mode; with POBLANO_SINGLE also each alone in its block."""
    bench = Bench(dut)
    await reset(dut)
    for number, mode in enumerate(bench.plan.modes):
        name = f"code pairs of {mode.a.name}*{mode.b.name}"
        await bench.check(name, bench.some(code_pairs(mode, number, bench.rng)))
        if mode.beats == 1 or "POBLANO_SINGLE" in os.environ:
            await bench.check(name, bench.some(single_pairs(mode, number, bench.rng)))


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def every_pair_of_scales(dut: Any) -> None:
    """All 65,536 pairs of scales, in the mode with the widest range."""
    bench = Bench(dut)
    await reset(dut)
    number, mode = max(enumerate(bench.plan.modes), key=lambda each: -each[1].lsb_exponent)
    await bench.check("scale pairs", bench.some(scale_pairs(mode, number, bench.rng)))


@cocotb.test(timeout_time=10_000_000_000, timeout_unit="step")
async def random_blocks(dut: Any) -> None:
    """Random blocks of mixed modes with gaps; POBLANO_VECTORS says how many."""
    bench = Bench(dut)
    await reset(dut)
    left = int(os.environ.get("POBLANO_VECTORS", _DEFAULT_VECTORS))
    while left > 0:
        count = min(left, _CHUNK * bench.copies)
        left -= count
        operands = random_operands(bench.plan.modes, count, bench.rng)
        await bench.check("random", operands, gaps=float(bench.rng.choice([0.0, 0.2])))
