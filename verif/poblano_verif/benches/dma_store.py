"""Bench of the half of the DMA engine that writes HBM."""

from __future__ import annotations

from typing import Any

import cocotb

from poblano.faults import Fault
from poblano_verif.axi_memory import Behaviour
from poblano_verif.dma_bench import DmaBench
from poblano_verif.dma_faults import *  # noqa: F403 (tests of both halves)
from poblano_verif.dma_faults import works_again
from poblano_verif.dma_moves import *  # noqa: F403
from poblano_verif.dma_moves import LIMIT, count


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def errors_of_the_memory(dut: Any) -> None:
    """SLVERR and DECERR for any burst: no more are issued, those on their way are completed."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    cases = [{(number, 0): response} for number in (0, 1, 2, 6) for response in (2, 3)]
    cases += [{(1, 0): 3, (2, 0): 2}]
    length, stride = 100, 2500
    for errors in bench.random.sample(cases, count(len(cases))):
        await bench.reset(behaviour=Behaviour(latency=20, responses={(0, 0): 1} | errors))
        words = [
            bench.encode("store.rows", hbm=at, l1=at, length=length, rows=4, hbm_row_stride=stride)
            for at in (8, 160)
        ]
        places = [at + row * stride for at in (8, 160) for row in range(4)]
        bench.l1[:] = bench.random_bytes(len(bench.l1))
        before = bench.hbm.data.copy()
        wholly = bench.after(words)
        bench.commands.send(*words)
        await bench.finish()
        (number, _), response = min(errors.items())
        bursts = bench.rules.bursts
        address = bursts[number].address
        command = int(address not in places[:4])
        bench.expect_fault(Fault.RESPONSE, address=address, response=response, number=command)
        for burst in bursts:
            place = max(place for place in places if place <= burst.address)
            end = min(
                place + length,
                burst.address // bench.width * bench.width + burst.beats * bench.width,
            )
            before[burst.address : end] = wholly[burst.address : end]
        bench.compare(before, f"errors {errors}")
        bench.rules.finish()
        assert len(bursts) <= number + 1 + bench.slice.hbm.outstanding
        assert bench.commands.issued[1].done < 0, "a move after an error is not done"
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def lines_are_read_anew(dut: Any) -> None:
    """A command sees what L1 holds when it runs, not what the one before has read."""
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    word = bench.encode("store.rows", hbm=0, l1=bench.line + 4, length=20)
    for _ in range(3):
        await bench.check([word])
        bench.l1[:] = bench.random_bytes(len(bench.l1))
