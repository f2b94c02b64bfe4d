"""Bench of the slice as a host sees it: L1, memories, programs of moves, and faults."""

from __future__ import annotations

import itertools
from typing import Any

import cocotb

from poblano.commands import WORD_BYTES
from poblano.faults import Fault
from poblano.host.registers import queue_names
from poblano_sw.program import Program
from poblano_verif.slice_bench import LIMIT, Bench, after, handed_over, random_moves
from poblano_verif.slice_faults import *  # noqa: F403 (tests of the same block)
from poblano_verif.slice_kernels import *  # noqa: F403
from poblano_verif.slice_products import *  # noqa: F403
from poblano_verif.slice_traffic import *  # noqa: F403
from poblano_verif.system_driver import Run

RINGS = 0
"""L1 address of the rings; what is moved lies behind them."""

DECERR = 3


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
            memories[port] = after(memories[port], moves)
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
    program = Program({"load_0": [first, first, bad, good]}, RINGS)
    program.check(driver.configuration)
    fault = await bench.run_to_fault(program)
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
