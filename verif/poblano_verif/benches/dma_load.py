"""Bench of the half of the DMA engine that reads HBM."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from poblano.faults import Fault
from poblano_verif.axi_memory import Behaviour
from poblano_verif.dma_bench import DmaBench
from poblano_verif.dma_faults import *  # noqa: F403 (tests of both halves)
from poblano_verif.dma_faults import works_again
from poblano_verif.dma_moves import *  # noqa: F403
from poblano_verif.dma_moves import LIMIT, count

HBM, L1 = 5, 75
"""Where a row of several bursts lies."""


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def errors_of_the_memory(dut: Any) -> None:
    """SLVERR and DECERR on first, middle and last beats: those are not written, all others are."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    window = min(4096, 256 * bench.width)
    beats = window // bench.width
    length = 3 * window - HBM
    first = beats - HBM // bench.width
    cases = [
        {(number, beat): response}
        for number, beat in ((0, 0), (0, 7), (0, first - 1), (1, 0), (1, 3), (2, 1), (2, beats - 1))
        for response in (2, 3)
    ]
    cases += [{(0, beat): 2 + beat % 2 for beat in range(first)}, {(1, 1): 3, (1, 2): 2}]
    for errors in bench.random.sample(cases, count(len(cases))):
        await bench.reset(behaviour=Behaviour(latency=20, responses={**errors, (0, 5): 1} | errors))
        words = [
            bench.encode("load.rows", hbm=HBM + far, l1=L1 + far, length=length)
            for far in (0, 4 * window)
        ]
        bench.l1[:] = bench.random_bytes(len(bench.l1))
        before, after = bench.l1.copy(), bench.after(words)
        bench.commands.send(*words)
        await bench.finish()
        (number, _), response = min(errors.items())
        address = bench.rules.bursts[number].address
        bench.expect_fault(Fault.RESPONSE, address=address, response=response)
        bench.compare(np.where(_written(bench, length, errors), after, before), f"errors {errors}")
        assert len(bench.rules.bursts) <= number + 1 + bench.slice.hbm.outstanding
        assert all(issued.done < 0 for issued in bench.commands.issued), (
            "a move with an error is not done"
        )
    await works_again(bench)


def _written(bench: DmaBench, length: int, errors: dict[tuple[int, int], int]) -> Any:
    """Return which bytes of L1 belong to beats that came without an error."""
    written = np.zeros(len(bench.l1), bool)
    between = 4 * min(4096, 256 * bench.width)
    for number, burst in enumerate(bench.rules.bursts):
        start = burst.address // bench.width * bench.width
        row = HBM + burst.address // between * between
        for beat in range(burst.beats):
            low = max(start + beat * bench.width, row)
            high = min(start + (beat + 1) * bench.width, row + length)
            written[L1 + low - HBM : L1 + high - HBM] = (number, beat) not in errors
    return written


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def whole_lines(dut: Any) -> None:
    """A long row takes one access to L1 for every line that it touches."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    for l1 in (0, 1, bench.line - 1):
        before = bench.scratchpad.writes
        await bench.check([bench.encode("load.rows", hbm=3, l1=l1, length=4000)])
        lines = (l1 + 3999) // bench.line + 1
        assert bench.scratchpad.writes - before == lines, (
            f"{bench.scratchpad.writes - before} writes of {lines} lines"
        )
