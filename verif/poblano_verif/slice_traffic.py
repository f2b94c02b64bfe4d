"""Tests of a slice that is used, reset and watched while a program runs; its bench imports them."""

from __future__ import annotations

from typing import Any

import cocotb

from poblano_verif.slice_bench import LIMIT, Bench, after, count, handed_over, random_moves
from poblano_verif.slice_products import check, check_contract, load, product_of, program_of
from poblano_verif.slice_work import Work
from poblano_verif.system_driver import Run

__all__ = ["counters", "host_beside_a_program", "reset_in_mid_burst"]

_SHARED = 16 << 10
"""Bytes of L1 below the rings that the host uses while a product runs."""


async def conflicts(bench: Bench) -> tuple[int, int]:
    """Return how many cycles clients of L1 waited with reads and with writes."""
    return await bench.read("L1_READ_CONFLICTS"), await bench.read("L1_WRITE_CONFLICTS")


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def host_beside_a_program(dut: Any) -> None:
    """The host writes and reads L1 and registers while a product runs; neither harms the other."""
    bench = Bench(dut)
    await bench.driver.start()
    driver, random = bench.driver, bench.random
    met = (0, 0)
    rounds = 0
    while rounds < count(3) or not all(met):
        assert rounds < 20, f"clients must meet; waits for reads and writes were {met}"
        rounds += 1
        program_l1 = program_of(bench, {}).ring_base - _SHARED
        streamed = product_of(bench, l1_size=program_l1)
        await load(bench, streamed)
        await bench.write("CONTROL", 3)
        program = program_of(bench, streamed.plan.queues)
        task = cocotb.start_soon(driver.run(program, 4_000_000))
        beats, passes = 0, 0
        while not task.done():
            address = program_l1 + random.randrange(_SHARED // 2)
            data = random.randbytes(random.randint(1, _SHARED // 2))
            await driver.window.write(address, data)
            assert await driver.window.read(address, len(data)) == data
            found = await bench.read("HBM_0_READ_BEATS")
            assert found >= beats, "a counter goes on"
            beats, passes = found, passes + 1
        run = await task
        await check(bench, streamed)
        check_contract(bench, program, run)
        assert passes > 0
        reads, writes = await conflicts(bench)
        met = met[0] + reads, met[1] + writes


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reset_in_mid_burst(dut: Any) -> None:
    """A reset while bursts of loads and stores are under way; then programs run right."""
    bench = Bench(dut)
    await bench.driver.start()
    driver, random = bench.driver, bench.random
    long = {
        f"{half}_{port}": [
            bench.word(f"{half}.rows", hbm=5, l1=start, length=4000, rows=9, hbm_row_stride=4000)
        ]
        for port in bench.ports
        for half, start in (("load", 70), ("store", 20_000))
    }
    for round_ in range(count(8)):
        queues = {
            name: words for name, words in long.items() if round_ == 0 or random.random() < 0.7
        }
        task = cocotb.start_soon(driver.run(program_of(bench, queues or long), 100_000))
        while sum(map(sum, driver.beats())) == 0:
            await driver.dut.clock.edges(10)
        await driver.dut.clock.edges(random.randint(1, 300))
        assert not task.done()
        task.cancel()
        await driver.reset()
        assert driver.beats() == ((0, 0),) * len(bench.ports)
        memories = await bench.fill()
        queues = {}
        for port in bench.ports:
            moves = random_moves(bench, 4, 6000 * port)
            queues |= handed_over(bench, moves, port)
            memories[port] = after(memories[port], moves)
        program = program_of(bench, queues)
        await driver.run(program, 100_000)
        await bench.compare(memories)


def cycles_busy(spans: list[tuple[int, int]]) -> int:
    """Return the cycles in which at least one command was on its way."""
    return len({cycle for issued, done in spans for cycle in range(issued + 1, done + 1)})


async def check_counts(bench: Bench, run: Run) -> None:
    """Registers say what the log of commands and the memories say."""
    for queue, spans in run.spans.items():
        name = f"QUEUE_{queue.upper()}"
        assert await bench.read(f"{name}_ISSUED") == len(spans), queue
        assert await bench.read(f"{name}_COMPLETED") == len(spans), queue
        assert await bench.read(f"{name}_BUSY_CYCLES") == cycles_busy(spans), queue
    for port, beats in enumerate(run.beats):
        names = (f"HBM_{port}_{kind}_BEATS" for kind in ("READ", "WRITE"))
        assert tuple([await bench.read(name) for name in names]) == beats


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def counters(dut: Any) -> None:
    """Counts of cycles, beats, commands and busy cycles are exact; clients alone never wait."""
    bench = Bench(dut)
    await bench.driver.start()
    driver = bench.driver
    work = Work(bench)
    for queue, word in work.words.items():
        await work.prepare()
        await driver.reset()
        run = await driver.run(work.program({queue: [word] * 3}), 50_000)
        await check_counts(bench, run)
        if queue.startswith("load"):
            assert await conflicts(bench) == (0, 0), "only the engine and the fetch use L1"
        before = await bench.read("CYCLES"), driver.dut.clock.cycle
        await driver.dut.clock.edges(bench.random.randint(100, 999))
        passed = await bench.read("CYCLES") - before[0], driver.dut.clock.cycle - before[1]
        assert passed[0] == passed[1], passed
    await driver.reset()
    run = await driver.run(
        work.program({queue: [word] * 3 for queue, word in work.words.items()}), 50_000
    )
    await check_counts(bench, run)
    assert (await driver.registers.read_fields("STATUS")) == {"fault": 0, "busy": 0, "idle": 1}
    await bench.write("CONTROL", 3)
    assert await bench.read("CYCLES") < 20
    names = [f"QUEUE_{queue.upper()}_BUSY_CYCLES" for queue in work.words]
    for name in (*names, "HBM_0_READ_BEATS", "L1_READ_CONFLICTS", "L1_WRITE_CONFLICTS"):
        assert await bench.read(name) == 0, name
