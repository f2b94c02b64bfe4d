"""Tests of the whole slice with products streamed from HBM to HBM; its bench imports them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import cocotb

from poblano.commands import WORD_BYTES, by_opcode
from poblano.dma.timing import num_beats
from poblano.tensor.timing import Timeline
from poblano_sw.program import Program
from poblano_sw.streamed_matmul import PAGE
from poblano_verif.slice_bench import LIMIT, Bench, count, with_fields
from poblano_verif.streamed_workload import Streamed, random_streamed
from poblano_verif.system_driver import Run

__all__ = [
    "check",
    "check_contract",
    "load",
    "product_of",
    "program_of",
    "streamed_products",
    "two_products_in_one_program",
]

RING_WORDS = 16
RINGS_BYTES = 5 * RING_WORDS * WORD_BYTES
"""Bytes at the end of L1 for the rings of as many as five queues."""

NEXT = 5
"""Semaphore that says that a product is stored; those before it are a streamed product's own."""


async def load(bench: Bench, streamed: Streamed) -> None:
    """Put the operands into HBM, and other bytes to where the results go."""
    for address, image in streamed.images():
        await bench.driver.load_hbm(0, address, image)
    plan = streamed.plan
    size = plan.hbm_end - plan.hbm_d
    await bench.driver.load_hbm(0, plan.hbm_d, bench.random.randbytes(size))


async def check(bench: Bench, streamed: Streamed) -> None:
    """Compare the results in HBM with the numpy model."""
    plan = streamed.plan
    streamed.check(await bench.driver.dump_hbm(0, plan.hbm_d, plan.hbm_end - plan.hbm_d))


def program_of(bench: Bench, queues: Mapping[str, Sequence[bytes]]) -> Program:
    """Return a program with its rings at the end of L1."""
    return Program(queues, bench.slice.l1.size - RINGS_BYTES, RING_WORDS)


def product_of(
    bench: Bench, largest: int = 220, *, l1_size: int | None = None, hbm: int = 0
) -> Streamed:
    """Return a random product that fits below the rings, or a part of L1, and in HBM from `hbm`."""
    return random_streamed(
        bench.random,
        bench.slice,
        largest,
        l1_size=bench.slice.l1.size - RINGS_BYTES if l1_size is None else l1_size,
        hbm=range(hbm, bench.driver.memory_bytes),
    )


def check_contract(bench: Bench, program: Program, run: Run) -> None:
    """Every product ends when the contract says, given when each was issued."""
    timeline = Timeline(bench.slice)
    words = program.queues["tensor"]
    for number, (word, span) in enumerate(zip(words, run.spans["tensor"], strict=True)):
        issued = max(span[0], timeline.ready)  # an earlier one breaks the contract
        done = issued + 1 + timeline.run(by_opcode(word[0]).decode(word), issued).cycles
        assert span == (issued, done), f"product {number}: {span}, the contract: {(issued, done)}"


def check_beats(bench: Bench, program: Program, run: Run) -> None:
    """The memories moved as many beats as the rows touch bus words."""
    for port in bench.ports:
        wanted: list[int] = []
        for half in ("load", "store"):
            beats = 0
            for word in program.queues.get(f"{half}_{port}", ()):
                values = by_opcode(word[0]).decode(word)
                for row in range(values["rows"]):
                    start = values["hbm"] + row * values["hbm_row_stride"]
                    beats += num_beats(start, values["length"], bench.slice.hbm.width)
            wanted.append(beats)
        assert run.beats[port] == tuple(wanted), (port, run.beats[port], wanted)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def streamed_products(dut: Any) -> None:
    """Products of random sizes, formats, chunks and buffers: bytes, cycles and beats are exact."""
    bench = Bench(dut)
    await bench.driver.start()
    for _ in range(count(20)):
        hbm = PAGE * bench.random.randrange(4) + bench.random.randrange(64)
        streamed = product_of(bench, hbm=hbm)
        await load(bench, streamed)
        program = program_of(bench, streamed.plan.queues)
        run = await bench.driver.run(program, 1_000_000)
        await check(bench, streamed)
        check_contract(bench, program, run)
        check_beats(bench, program, run)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def two_products_in_one_program(dut: Any) -> None:
    """A product is loaded to where the one before was as soon as that is stored."""
    bench = Bench(dut)
    await bench.driver.start()
    for _ in range(count(4)):
        first = product_of(bench, 120)
        start = -(-first.plan.hbm_end // PAGE) * PAGE
        second = product_of(bench, 120, hbm=start)
        await load(bench, first)
        await load(bench, second)
        queues = {
            name: [*first.plan.queues[name], *words] for name, words in second.plan.queues.items()
        }
        loads, stores = queues["load_0"], queues["store_0"]
        begins, ends = len(first.plan.queues["load_0"]), len(first.plan.queues["store_0"]) - 1
        loads[begins] = with_fields(loads[begins], wait_a=NEXT, wait_a_count=1)
        stores[ends] = with_fields(stores[ends], signal_a=NEXT, signal_a_count=1)
        program = program_of(bench, queues)
        run = await bench.driver.run(program, 1_000_000)
        await check(bench, first)
        await check(bench, second)
        check_contract(bench, program, run)
        check_beats(bench, program, run)
        assert run.spans["load_0"][begins][0] > run.spans["store_0"][ends][1]
