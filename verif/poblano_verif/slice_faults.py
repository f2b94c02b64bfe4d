"""Tests of what goes wrong in a slice; its bench imports them."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.utils import get_sim_time

from poblano.commands import WORD_BYTES
from poblano.faults import Fault
from poblano.host.registers import queue_names
from poblano_verif.slice_bench import LIMIT, Bench, count, with_fields
from poblano_verif.slice_fault import SliceFault, read_fault
from poblano_verif.slice_troubles import NEVER, PATIENCE, troubles
from poblano_verif.slice_work import Work

__all__ = [
    "overflow_by_host_and_command",
    "ring_outside",
    "wait_without_end",
    "words_that_stop_a_queue",
]


async def check_registers(bench: Bench, wanted: SliceFault) -> None:
    """The fault registers hold a fault; the interrupt was raised for it and can be cleared."""
    names = queue_names(bench.driver.configuration)
    assert await read_fault(bench.driver.registers, names, {}) == wanted
    assert (await bench.driver.registers.read_fields("STATUS"))["fault"] == 1
    status = await bench.driver.registers.read_fields("INTERRUPT_STATUS")
    assert status["fault"] == 0, "the interrupt was cleared"


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def words_that_stop_a_queue(dut: Any) -> None:
    """A bad word between good ones stops its queue alone; after a reset all of them run."""
    bench = Bench(dut)
    await bench.driver.start()
    work = Work(bench)
    cases = [item for queue, word in work.words.items() for item in troubles(bench, queue, word)]
    for trouble in bench.random.sample(cases, count(len(cases))):
        await bench.driver.reset()
        await work.prepare()
        await bench.write("WATCHDOG", PATIENCE)
        queues = {queue: [word] * 3 for queue, word in work.words.items()}
        queues[trouble.queue][1] = trouble.word
        fault = await bench.run_to_fault(work.program(queues))
        where = trouble.queue, 1
        what = trouble.kind, trouble.index, trouble.address, trouble.response
        assert (fault.queue, fault.command) == where, f"{trouble}: {fault}"
        found = fault.kind, fault.index, fault.address, fault.response
        assert found == what, f"{trouble}: {fault}"
        for queue in work.words.keys() - {trouble.queue}:
            await bench.wait_for(f"QUEUE_{queue.upper()}_COMPLETED", 3)
        await bench.driver.dut.clock.edges(200)
        assert await bench.read(f"QUEUE_{trouble.queue.upper()}_COMPLETED") <= 1
        await work.check(trouble.queue)
        await check_registers(bench, SliceFault(trouble.kind, *where, *what[1:]))
        await bench.driver.reset()
        assert await bench.read("FAULT") == 0
        await work.prepare()
        await bench.driver.run(work.program(), 50_000)
        await work.check()


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def wait_without_end(dut: Any) -> None:
    """A wait ends with the signal if that comes in time, and is a fault after WATCHDOG cycles."""
    bench = Bench(dut)
    await bench.driver.start()
    work = Work(bench)
    registers, clock = bench.driver.registers, bench.driver.dut.clock
    for queue, word in work.words.items():
        waits = {"wait_a": 2, "wait_a_count": 1, "wait_b": NEVER, "wait_b_count": 3}
        queues = {queue: [word, with_fields(word, **waits)]}

        async def rescue(cycles: int) -> None:
            await clock.edges(cycles)
            await registers.write(f"SEMAPHORE_{NEVER}", 1)

        for patience, late in ((0, 5000), (3000, 2000)):
            await work.prepare()
            await bench.write("WATCHDOG", patience)
            await bench.write("SEMAPHORE_2", 1)
            await bench.write(f"SEMAPHORE_{NEVER}", 2)
            task = cocotb.start_soon(rescue(late))
            run = await bench.driver.run(work.program(queues), 50_000, check=False)
            await task
            assert run.spans[queue][1][0] - run.spans[queue][0][0] > late - 1000
            await work.check(*(work.words.keys() - {queue}))
        await bench.write("WATCHDOG", PATIENCE)
        await bench.write("SEMAPHORE_2", 1)
        await bench.write(f"SEMAPHORE_{NEVER}", 2)
        bench.driver.events.take()
        fault = await bench.run_to_fault(work.program(queues))
        (issued, *_) = bench.driver.events.take()
        assert get_sim_time("step") // clock.period - issued.cycle > PATIENCE
        assert fault == SliceFault(Fault.WAIT, queue, 1, NEVER, 0, 0)
        text = f"queue {queue}, command 1: fault WAIT, waited too long for semaphore {NEVER}"
        assert str(fault) == text
        values = [await bench.read(f"SEMAPHORE_{index}") for index in (2, NEVER)]
        assert values == [1, 2], "nothing is taken until all is there"
        await bench.driver.reset()


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def overflow_by_host_and_command(dut: Any) -> None:
    """A semaphore that grows past its bits is a fault of no queue, or rather of no engine."""
    bench = Bench(dut)
    await bench.driver.start()
    clock, work = bench.driver.dut.clock, Work(bench)
    for index, by_host in ((0, True), (bench.slice.host.semaphores - 1, False)):
        await bench.driver.reset()
        await work.prepare()
        await bench.write(f"SEMAPHORE_{index}", 0xFFFE)
        await bench.write(f"SEMAPHORE_{index}", 1)
        assert await bench.read("FAULT") == 0
        queues = {queue: [word] * 2 for queue, word in work.words.items()}
        if by_host:
            await bench.write(f"SEMAPHORE_{index}", 5)
            await clock.edges(10)
            assert bench.driver.dut.ports["irq"].bits
            await bench.write("INTERRUPT_STATUS", 1)
            await bench.driver.run(work.program(queues), 50_000)
        else:
            signals = {"signal_b": index, "signal_b_count": 1}
            queues["load_0"][0] = with_fields(work.words["load_0"], **signals)
            await bench.run_to_fault(work.program(queues))
            for queue in queues:
                await bench.wait_for(f"QUEUE_{queue.upper()}_COMPLETED", 2)
        await work.check()
        await check_registers(bench, SliceFault(Fault.SEMAPHORE, "", 0, index, 0, 0))
        assert (await bench.driver.registers.read_fields("FAULT"))["queue"] == 255
        assert await bench.read(f"SEMAPHORE_{index}") == 0xFFFF
        await bench.driver.reset()
        assert await bench.read(f"SEMAPHORE_{index}") == 0
        await bench.driver.run(work.program(queues), 50_000, check=False)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def ring_outside(dut: Any) -> None:
    """The first word outside L1 stops its queue; the one before it, L1's last, is fetched."""
    bench = Bench(dut)
    await bench.driver.start()
    work = Work(bench)
    size = bench.slice.l1.size
    for queue, word in work.words.items():
        await bench.driver.reset()
        await work.prepare()
        name = f"QUEUE_{queue.upper()}"
        await bench.driver.window.write(size - WORD_BYTES, word)
        await bench.write(f"{name}_BASE", size - WORD_BYTES)
        await bench.write(f"{name}_SIZE_LOG2", 1)
        await bench.write(f"{name}_TAIL", 2)
        await bench.wait_for(f"{name}_COMPLETED", 1)
        status = await bench.driver.registers.read_fields("INTERRUPT_STATUS")
        assert status["fault"] == 1
        assert bench.driver.dut.ports["irq"].bits
        await bench.write("INTERRUPT_STATUS", 3)
        wanted = SliceFault(Fault.ADDRESS, queue, 1, 0, size, 0)
        await check_registers(bench, wanted)
        others = {other: [word] for other, word in work.words.items() if other != queue}
        await bench.driver.run(work.program(others, end=size - WORD_BYTES), 50_000)
        await work.check()
        assert await bench.read(f"{name}_FETCHED") == 1
        await check_registers(bench, wanted)
        await bench.driver.reset()
        await work.prepare()
        await bench.driver.run(work.program(), 50_000)
        await work.check()
