"""Tests of the whole slice with kernels of all engines; its bench imports them."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from poblano_sw.kernel import Builder
from poblano_sw.simulator import Memories, simulate
from poblano_verif.kernel_workload import in_order, random_kernel
from poblano_verif.slice_bench import LIMIT, Bench, count

__all__ = ["random_kernels"]


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def random_kernels(dut: Any) -> None:
    """L1 and HBM hold afterwards what the kernel says in order, and what the simulator says."""
    bench = Bench(dut)
    memories = await bench.start()
    driver, configuration = bench.driver, bench.driver.configuration
    for _ in range(count(12)):
        builder = Builder(configuration, driver.memory_bytes)
        random_kernel(bench.random, builder, bench.random.randint(5, 30))
        program = builder.program()
        end = builder.l1_peak
        l1 = bench.random.randbytes(end)
        await driver.window.write(0, l1)
        before = np.frombuffer(l1, np.uint8)
        wanted = in_order(builder, before, memories[0])
        simulated = Memories(configuration.slice, len(memories[0]))
        simulated.l1[:end] = before
        simulated.hbm[0][:] = memories[0]
        simulate(configuration, program, simulated)
        await driver.run(program, 200_000)
        memories[0] = wanted.hbm[0]
        await bench.compare(memories)
        found = np.frombuffer(await driver.window.read(0, end), np.uint8)
        for name, other in (("the kernel's order", wanted.l1), ("the simulator", simulated.l1)):
            wrong = np.flatnonzero(found != other[:end])
            assert not len(wrong), f"{len(wrong)} bytes differ from {name}, from {wrong[0]:#x}"
        assert np.array_equal(simulated.hbm[0], wanted.hbm[0])
