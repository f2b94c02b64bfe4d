"""Measures a network on the RTL; the results go to the file that POBLANO_NOC_FILE names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
import numpy as np

from poblano_verif.noc_driver import Account, NocDriver, Packets


def _asked(name: str) -> float:
    return float(os.environ[f"POBLANO_NOC_{name}"])


def _report(**values: float) -> None:
    Path(os.environ["POBLANO_NOC_FILE"]).write_text(json.dumps(values), "utf-8")


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def full_load(dut: Any) -> None:
    """Every node always has a packet; count what comes out, and whether all of it comes.

    POBLANO_NOC_FLITS is the length of a packet, PAUSE the probability that a sink does not accept,
    WARM_UP the cycles before the count, CYCLES those of the count, PACKETS how many to send at
    least (what is sent later is not in the count).
    """
    driver = NocDriver(dut)
    await driver.reset()
    random = np.random.default_rng(cocotb.RANDOM_SEED)
    nodes, flits = driver.num_nodes, int(_asked("FLITS"))
    packets, account = Packets(driver, random, (flits, flits)), Account(driver)
    warm_up, cycles, pause = int(_asked("WARM_UP")), int(_asked("CYCLES")), _asked("PAUSE")
    least, counted, quiet = int(_asked("PACKETS")), 0, 0
    while quiet < 1000:
        number = driver.cycle_number
        if number >= warm_up + cycles and packets.packets >= least:
            packets.load = 0.0
        offered, _, _, bits = packets.offer()
        ready = random.random(nodes) >= pause
        seen = await driver.cycle(offered, bits, ready)
        packets.accept(seen.accepted)
        taken = seen.valid & ready
        account.receive(taken, seen.flits)
        counted += int(taken.sum()) if warm_up <= number < warm_up + cycles else 0
        quiet = 0 if seen.accepted.any() or taken.any() else quiet + 1
    _report(
        accepted=counted / (cycles * nodes),
        packets=packets.packets,
        lost=int(np.abs(packets.sent - account.received).sum()),
        cycles=driver.cycle_number,
    )


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def hop(dut: Any) -> None:
    """One flit from node 0 to each node of its row: the cycles that one more hop takes."""
    driver = NocDriver(dut)
    await driver.reset()
    nodes = driver.num_nodes
    everyone, nothing = np.ones(nodes, np.bool_), np.zeros(nodes, np.int64)
    latencies: list[int] = []
    for destination in range(driver.network.width):
        begin = driver.cycle_number
        bits = driver.flits(np.full(nodes, destination), nothing, everyone)
        seen = await driver.cycle(np.arange(nodes) == 0, bits, everyone)
        assert seen.accepted[0]
        while not seen.valid.any():
            seen = await driver.cycle(~everyone, bits, everyone)
        latencies.append(driver.cycle_number - 1 - begin)
    steps = np.diff(latencies)
    assert (steps == steps[0]).all(), f"every hop must take as long; got {latencies}"
    _report(hop=int(steps[0]))
