"""Bench of a counter that carries between the reads of its words.

It sets the counter inside the register file, which only Icarus allows.
"""

from __future__ import annotations

from typing import Any

import cocotb

from poblano_verif.benches.host_registers import LIMIT, Bench
from poblano_verif.register_model import OKAY


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def carries(dut: Any) -> None:
    """A lower word that is read keeps its upper word, although the counter carries meanwhile."""
    bench = Bench(dut)
    await bench.start()
    low, high = (bench.map.offset(f"CYCLES_{half}") for half in ("LOW", "HIGH"))
    dut.cycles_count.value = (7 << 32) - 3
    await bench.dut.clock.edges(2)
    assert await bench.master.read(low) == (0xFFFF_FFFD, OKAY)
    dut.cycles.value = 1
    bench.model.activity = 1.0
    await bench.dut.clock.edges(20)
    bench.model.activity = 0.0
    await bench.dut.clock.edges(2)
    assert await bench.master.read(high) == (6, OKAY)
    assert (await bench.master.read(low))[0] < 30
    assert await bench.master.read(high) == (7, OKAY)
