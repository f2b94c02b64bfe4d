"""Bench of a queue: order, waits, signals, the commands on their way, and its two faults."""

from __future__ import annotations

import os
from collections import deque
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly

from poblano.commands import MATMUL
from poblano.control.command_queue import IN_FLIGHT
from poblano.faults import Fault
from poblano_verif.dut import Dut

CYCLES = int(os.environ.get("POBLANO_CYCLES", "5000"))
SEMAPHORES = 8


def _word(random: Random, **fields: int) -> int:
    values = {
        item.name: random.getrandbits(item.width)
        for item in MATMUL.fields
        if not item.name.startswith(("wait", "signal"))
    }
    waits = random.sample(range(SEMAPHORES), 2)
    values |= {"wait_a": waits[0], "wait_b": waits[1]}
    for name in ("wait_a", "wait_b", "signal_a", "signal_b"):
        values[f"{name}_count"] = random.choice((0, 1, 1023))
        values.setdefault(name, random.randrange(SEMAPHORES))
    return int.from_bytes(MATMUL.encode({**values, **fields}), "little")


def _request(word: int, kind: str) -> dict[str, int]:
    values = MATMUL.decode(word.to_bytes(64, "little"))
    return {
        f"{half}{part}": values[f"{kind}_{half}{part}"] for half in "ab" for part in ("", "_count")
    }


async def _begin(dut: Any) -> Dut:
    block = Dut(dut)
    block.rest()
    block.clock.start()
    await block.clock.reset()
    return block


def _fault(block: Dut) -> tuple[int, int]:
    bits = block.ports["fault"].bits
    return bits & 15, bits >> 4 & 0xFF


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(slow_engine=[False, True])
async def words_are_issued_in_order(dut: Any, slow_engine: bool) -> None:
    """Random words, grants, engine and enable: what is issued when, and what is signalled."""
    block = await _begin(dut)
    random = Random(cocotb.RANDOM_SEED)
    queued: deque[int] = deque()
    on_way: deque[int] = deque()
    issued = completed = most = 0
    offered: int | None = None
    for _ in range(CYCLES):
        if offered is None and random.random() < 0.5:
            offered = _word(random)
        done = bool(on_way) and random.random() < (0.02 if slow_engine else 0.4)
        enable, ready, granted = (random.random() < p for p in (0.95, 0.8, 0.7))
        block.ports["words__valid"].drive(int(offered is not None))
        block.ports["words__payload"].drive(offered or 0)
        for name, value in (
            ("enable", enable),
            ("command__ready", ready),
            ("granted", granted),
            ("done", done),
        ):
            block.ports[name].drive(int(value))
        await ReadOnly()
        ports = block.ports
        assert (ports["issued"].bits, ports["completed"].bits) == (issued, completed)
        assert ports["busy"].bits == bool(on_way)
        assert _fault(block) == (Fault.NONE, 0)
        if ports["empty"].bits:
            assert not queued
            assert not on_way
        asks = ports["wait_valid"].bits
        issues = ports["issues"].bits
        assert issues == (ports["command__valid"].bits & int(ready))
        assert not (asks and (not enable or len(on_way) == IN_FLIGHT)), "asked in vain"
        assert issues == (asks and granted), "issue means that what was asked for is granted"
        assert ports["signal_valid"].bits == done
        if done:
            signal = ports["signal"].value
            expected = _request(on_way.popleft(), "signal")
            assert signal == expected, f"signalled {signal}, expected {expected}"
        if asks:
            wait, expected = ports["wait"].value, _request(queued[0], "wait")
            assert wait == expected, f"waits for {wait}, expected {expected}"
        if issues:
            word = queued.popleft()
            assert ports["command__payload"].bits == word, "words must be issued in order"
            on_way.append(word)
        most = max(most, len(on_way))
        if offered is not None and ports["words__ready"].bits:
            queued.append(offered)
            offered = None
        issued, completed = issued + issues, completed + done
        await block.clock.edge()
    assert completed > CYCLES // 100
    assert most == IN_FLIGHT or not slow_engine


async def _one(block: Dut, word: int) -> None:
    block.ports["words__payload"].drive(word)
    block.ports["words__valid"].drive(1)
    await block.clock.edge()
    block.ports["words__valid"].drive(0)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def wrong_semaphores(dut: Any) -> None:
    """A semaphore that does not exist, or one waited for twice: a fault, and nothing is issued."""
    random = Random(cocotb.RANDOM_SEED)
    cases = [
        ({name: index, f"{name}_count": 1}, index)
        for name in ("wait_a", "wait_b", "signal_a", "signal_b")
        for index in (SEMAPHORES, 63)
    ]
    cases.append(({"wait_a": 3, "wait_a_count": 1, "wait_b": 3, "wait_b_count": 1}, 3))
    block = await _begin(dut)
    for fields, semaphore in cases:
        await block.clock.reset()
        block.ports["enable"].drive(1)
        block.ports["command__ready"].drive(1)
        block.ports["granted"].drive(1)
        await _one(block, _word(random, **fields))
        for _ in range(6):
            await ReadOnly()
            assert not block.ports["command__valid"].bits
            await block.clock.edge()
        await ReadOnly()
        assert _fault(block) == (Fault.SEMAPHORE, semaphore), f"{fields}: {_fault(block)}"
        await block.clock.edge()
    # where nothing is waited for or signalled the index does not matter
    await block.clock.reset()
    fields = {f"{n}_count": 0 for n in ("wait_a", "wait_b", "signal_a", "signal_b")}
    await _one(block, _word(random, wait_a=63, signal_b=63, wait_b=63, **fields))
    for _ in range(6):
        await block.clock.edge()
    await ReadOnly()
    assert (_fault(block)[0], block.ports["issued"].bits) == (Fault.NONE, 1)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(patience=[0, 1, 50])
async def waits_that_never_end(dut: Any, patience: int) -> None:
    """The watchdog names the semaphore after its patience, and never if that is 0."""
    block = await _begin(dut)
    random = Random(cocotb.RANDOM_SEED)
    block.ports["enable"].drive(1)
    block.ports["command__ready"].drive(1)
    block.ports["patience"].drive(patience)
    block.ports["missing"].drive(5)
    await _one(block, _word(random))
    cycles = 0
    while not block.ports["wait_valid"].bits:
        await block.clock.edge()
        await ReadOnly()
    while _fault(block)[0] == Fault.NONE and cycles < 200:
        await block.clock.edge()
        await ReadOnly()
        cycles += 1
    expected = (Fault.WAIT, 5) if patience else (Fault.NONE, 0)
    assert _fault(block) == expected
    assert not patience or patience <= cycles <= patience + 2, f"after {cycles} cycles"
    await block.clock.edge()
    block.ports["granted"].drive(1)
    await block.clock.edge()
    await block.clock.edge()
    await ReadOnly()
    assert block.ports["issued"].bits == (not patience), "a stopped queue issues nothing"
