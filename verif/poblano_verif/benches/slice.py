"""Bench of the slice as a host sees it: L1, memories, programs of moves, and faults."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import cocotb
import numpy as np

from poblano.commands import WORD_BYTES
from poblano.faults import Fault
from poblano.host.registers import queue_names
from poblano_sw.assembler import encode
from poblano_sw.program import Program
from poblano_verif.slice_fault import SliceFaultError
from poblano_verif.system_driver import Run, SystemDriver

LIMIT = 400_000_000
"""Simulation steps that a test may take."""

RINGS = 0
"""L1 address of the rings; what is moved lies behind them."""

DECERR = 3


class Bench:
    """A slice, its memories, and random data."""

    def __init__(self, handle: Any) -> None:
        self.driver = SystemDriver(handle)
        self.random = Random(cocotb.RANDOM_SEED)
        self.slice = self.driver.configuration.slice
        self.ports = range(self.slice.hbm.ports)

    async def start(self) -> list[np.ndarray]:
        """Reset and fill the memories with random bytes; return them."""
        await self.driver.start()
        memories = []
        for port in self.ports:
            data = np.frombuffer(self.random.randbytes(self.driver.memory_bytes), np.uint8).copy()
            await self.driver.load_hbm(port, 0, data)
            memories.append(data)
        return memories

    def word(self, mnemonic: str, **values: int) -> bytes:
        """Return the word of a legal command."""
        return encode(self.slice, mnemonic, **values)

    async def compare(self, memories: list[np.ndarray]) -> None:
        """Compare all of every memory."""
        for port, wanted in enumerate(memories):
            found = await self.driver.dump_hbm(port, 0, len(wanted))
            wrong = np.flatnonzero(found != wanted)
            assert not len(wrong), f"port {port}: {len(wrong)} bytes are wrong from {wrong[0]:#x}"


def handed_over(
    bench: Bench, moves: list[tuple[int, int, int, int]], port: int
) -> dict[str, list[bytes]]:
    """Return queues that copy (source, target, length, L1 address) one after the other.

    Semaphore 2 * port says that L1 holds a run, the one after it that the run was stored.
    """
    full, free = 2 * port, 2 * port + 1
    loads, stores = [], []
    for number, (source, target, length, l1) in enumerate(moves):
        waits = {"wait_a": free, "wait_a_count": int(number > 0)}
        loads.append(
            bench.word(
                "load.rows",
                hbm=source,
                l1=l1,
                length=length,
                signal_a=full,
                signal_a_count=1,
                **waits,
            )
        )
        signals = {"signal_a": free, "signal_a_count": int(number < len(moves) - 1)}
        stores.append(
            bench.word(
                "store.rows",
                hbm=target,
                l1=l1,
                length=length,
                wait_a=full,
                wait_a_count=1,
                **signals,
            )
        )
    return {f"load_{port}": loads, f"store_{port}": stores}


def random_moves(bench: Bench, count: int, first: int) -> list[tuple[int, int, int, int]]:
    """Return moves whose L1 addresses are at least `first`."""
    half = bench.driver.memory_bytes // 2
    moves = []
    for _ in range(count):
        length = bench.random.choice((1, 64, bench.random.randrange(1, 1500)))
        source, target = (bench.random.randrange(half - length) + part for part in (0, half))
        moves.append((source, target, length, bench.random.randrange(first, first + 4000)))
    return moves


def check_order(run: Run, program: Program, ports: range) -> None:
    """Loads and stores of a port alternate, and every command is there once."""
    assert {queue: len(spans) for queue, spans in run.spans.items()} == {
        queue: len(words) for queue, words in program.queues.items()
    }
    for port in ports:
        loads, stores = run.spans[f"load_{port}"], run.spans[f"store_{port}"]
        steps = [span for pair in zip(loads, stores, strict=True) for span in pair]
        for (_, done), (issued, _) in itertools.pairwise(steps):
            assert issued > done, (port, steps)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def host_access(dut: Any) -> None:
    """Registers say what was built; runs of any start and length go into L1 and come back."""
    bench = Bench(dut)
    await bench.driver.start()
    assert await bench.driver.registers.read("HBM_PORTS") == bench.slice.hbm.ports
    queues = await bench.driver.registers.read("QUEUES")
    assert queues == len(queue_names(bench.driver.configuration))
    image = bytearray(bench.random.randbytes(bench.slice.l1.size))
    await bench.driver.window.write(0, bytes(image))
    for length in (1, 3, 200, 4097, 5000):
        address = bench.random.randrange(len(image) - length)
        data = bench.random.randbytes(length)
        await bench.driver.window.write(address, data)
        image[address : address + length] = data
        found = await bench.driver.window.read(address - 1 if address else 0, length)
        assert found == image[max(0, address - 1) :][:length]
    assert await bench.driver.window.read(0, len(image)) == image


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def copies(dut: Any) -> None:
    """Every port copies runs of any alignment through L1, queues longer than their rings."""
    bench = Bench(dut)
    memories = await bench.start()
    driver = bench.driver
    for count, words in ((1, 1), (1, 16), (9, 4), (21, 1), (40, 8)):
        queues: dict[str, list[bytes]] = {}
        first = RINGS + 2 * len(bench.ports) * words * WORD_BYTES
        for port in bench.ports:
            start = first + 6000 * port
            moves = random_moves(bench, count, start)
            queues |= handed_over(bench, moves, port)
            for source, target, length, _ in moves:
                memories[port][target : target + length] = memories[port][source : source + length]
        program = Program(queues, RINGS, words)
        run = await driver.run(program, 1_000_000)
        check_order(run, program, bench.ports)
        await bench.compare(memories)
        for port in bench.ports:
            assert driver.beats()[port] == (
                await driver.registers.read(f"HBM_{port}_READ_BEATS"),
                await driver.registers.read(f"HBM_{port}_WRITE_BEATS"),
            )
        assert all(read > 0 and write > 0 for read, write in run.beats)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def a_fault(dut: Any) -> None:
    """An access past the memory stops the program with the command's number; reset helps.

    The bad command waits until those before it are complete: the fault is the oldest command's.
    """
    bench = Bench(dut)
    memories = await bench.start()
    driver = bench.driver
    good = bench.word("load.rows", hbm=0, l1=8192, length=100)
    signals = {"signal_a": 5, "signal_a_count": 1}
    first = bench.word("load.rows", hbm=0, l1=8192, length=100, **signals)
    waits = {"wait_a": 5, "wait_a_count": 2}
    bad = bench.word("load.rows", hbm=driver.memory_bytes + 64, l1=8192, length=64, **waits)
    await driver.run(Program({"load_0": [good] * 3}, RINGS), 10_000)
    try:
        await driver.run(Program({"load_0": [first, first, bad, good]}, RINGS), 10_000)
    except SliceFaultError as error:
        fault = error.fault
    else:
        raise AssertionError("a fault must end the run")
    assert (fault.kind, fault.queue, fault.command) == (Fault.RESPONSE, "load_0", 2), str(fault)
    assert (fault.address, fault.response) == (driver.memory_bytes + 64, DECERR)
    assert str(fault) == (
        f"queue load_0, command 2: fault RESPONSE, response 3 for address {fault.address:#x}"
    )
    await driver.reset()
    await driver.run(Program({"load_0": [good]}, RINGS), 10_000)
    assert await driver.window.read(8192, 100) == bytes(memories[0][:100])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def a_limit(dut: Any) -> None:
    """A program that takes too long is an error that tells how far it came."""
    bench = Bench(dut)
    await bench.start()
    word = bench.word("load.rows", hbm=0, l1=8192, length=64, rows=400)
    try:
        await bench.driver.run(Program({"load_0": [word] * 8}, RINGS), 1000)
    except AssertionError as error:
        text = str(error)
    else:
        raise AssertionError("the limit must end the run")
    assert text.startswith("a program must end within 1000 cycles; completed were "), text
    assert text.endswith(" of 8 of load_0"), text
