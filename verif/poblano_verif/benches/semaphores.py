"""Bench of the semaphores: random waits and signals of all queues against a model."""

from __future__ import annotations

import os
from random import Random
from typing import Any, cast

import cocotb
from cocotb.triggers import ReadOnly

from poblano_verif.dut import Dut

CYCLES = int(os.environ.get("POBLANO_CYCLES", "5000"))
MOST = 65_535

Request = dict[str, int]


def _request(random: Random, semaphores: int, most: int) -> Request:
    a, b = random.sample(range(semaphores), 2)
    counts = [random.choice((0, 1, most, random.randint(0, most))) for _ in range(2)]
    return {"a": a, "a_count": counts[0], "b": b, "b_count": counts[1]}


def _halves(request: Request) -> list[tuple[int, int]]:
    return [(request["a"], request["a_count"]), (request["b"], request["b_count"])]


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(most=[3, 1023])
async def waits_and_signals(dut: Any, most: int) -> None:
    """One grant a cycle, to the first queue that can have it; every signal of a cycle is added."""
    block = Dut(dut)
    random = Random(cocotb.RANDOM_SEED)
    parameters = block.manifest["modules"][-1]["parameters"]
    count, queues = int(parameters["count"]), int(parameters["queues"])
    values = [0] * count
    waits: list[Request | None] = [None] * queues
    granted_to = [0] * queues
    signalling = 0.4 if most < 9 else 0.9
    overflows = 0
    block.rest()
    block.clock.start()
    await block.clock.reset()
    for _ in range(CYCLES):
        signals: list[Request | None] = []
        for queue in range(queues):
            if waits[queue] is None and random.random() < 0.6:
                waits[queue] = _request(random, count, most)
            wait = waits[queue]
            block.ports[f"wait_valid_{queue}"].drive(int(wait is not None))
            block.ports[f"wait_{queue}"].drive(cast("Any", wait or _request(random, count, most)))
            signal = _request(random, count, most) if random.random() < signalling else None
            signals.append(signal)
            block.ports[f"signal_valid_{queue}"].drive(int(signal is not None))
            block.ports[f"signal_{queue}"].drive(
                cast("Any", signal or _request(random, count, most))
            )
        host = (random.getrandbits(count) & random.getrandbits(count)) if most < 9 else 0
        added = random.randint(0, most)
        block.ports["host_valid"].drive(host)
        block.ports["host_add"].drive(added)
        await ReadOnly()

        found = [block.ports["values"].bits >> 16 * i & MOST for i in range(count)]
        assert found == values, f"semaphores are {found}, expected {values}"
        after = list(values)
        free = True
        for queue, wait in enumerate(waits):
            if wait is None:
                continue
            nothing = not any(amount for _, amount in _halves(wait))
            lacking = [s for s, amount in _halves(wait) if values[s] < amount]
            expected = nothing or (free and not lacking)
            granted = block.ports[f"granted_{queue}"].bits
            assert granted == expected, f"queue {queue}: granted {granted} for {wait} of {values}"
            if lacking:
                missing = block.ports[f"missing_{queue}"].bits
                assert missing == lacking[0], f"queue {queue} misses {missing}, not {lacking}"
            if expected:
                free = free and nothing
                for semaphore, amount in _halves(wait):
                    after[semaphore] -= amount
                waits[queue] = None
                granted_to[queue] += 1
        for signal in signals:
            for semaphore, amount in _halves(signal) if signal else ():
                after[semaphore] += amount
        for semaphore in range(count):
            after[semaphore] += added * (host >> semaphore & 1)
        over = [s for s in range(count) if after[s] > MOST]
        assert block.ports["overflow"].bits == bool(over)
        if over:
            assert block.ports["overflowing"].bits == over[0]
            overflows += 1
        values = [min(value, MOST) for value in after]
        await block.clock.edge()
    assert all(granted_to), f"grants went to {granted_to}"
    assert most < 9 or overflows, "a run of large signals must overflow"
