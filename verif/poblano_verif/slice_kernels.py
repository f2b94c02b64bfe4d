"""Tests of the whole slice with kernels of all engines; its bench imports them."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from poblano_sw.kernel import Builder
from poblano_sw.kernels.catalogue import workload
from poblano_sw.program import Program
from poblano_sw.scalar.assembler import assemble_scalar
from poblano_sw.simulator import Memories, simulate
from poblano_verif.kernel_workload import in_order, random_kernel
from poblano_verif.slice_bench import LIMIT, Bench, count

__all__ = ["catalogue", "data_dependent_loads", "random_kernels"]

_CATALOGUE = (
    ("softmax", {"rows": 3, "cols": 33}),
    ("rms_norm", {"rows": 2, "cols": 127}),
    ("rope_halves", {"rows": 3, "head": 32}),
    ("rope_pairs", {"rows": 3, "head": 32}),
    (
        "attention_decode",
        {"rows": 2, "heads": 2, "tokens": 129, "head": 32, "chunk": 64, "sinks": 1},
    ),
    ("attention_decode", {"rows": 3, "heads": 1, "tokens": 31, "head": 32, "window": 20}),
    ("attention_prefill", {"tokens": 33, "heads": 1, "head": 32, "tile": 16, "window": 9}),
    ("mla_decode", {"rows": 2, "tokens": 32, "head": 96, "values": 64, "chunk": 32}),
    ("decode_step", {"rows": 2, "tokens": 1, "head": 32}),
    ("decode_step", {"rows": 2, "tokens": 65, "head": 32, "chunk": 32}),
    ("best_token", {"vocabulary": 127, "hidden": 64, "piece": 32}),
    ("route_groups", {"experts": 32, "groups": 4, "kept": 2, "chosen": 5}),
    ("mlp", {"hidden": 64, "intermediate": 96, "piece": 32}),
    ("moe", {"hidden": 64, "intermediate": 64, "experts": 5, "chosen": 2, "piece": 32}),
)
"""Kernels and sizes that the smallest slice can run, ragged ones among them."""

_CYCLE_ERROR = 0.02
"""How far the simulator's cycles may be from the RTL's, whose engines wait for each other's L1."""

_EXPERT = 512
"""Bytes of a row that is loaded by its number."""

_PLACES = {"code": 0, "ids": 1024, "rows": 2048, "rings": 16384}
"""L1 addresses."""

_SOURCE = f"""
# r1: where the ids lie, r2: how many, r3: where the rows go
    address r5, template
next: load32 r6, r1, 0
    let r7, {_EXPERT}
    mul r6, r6, r7
    word r5, 0
    field r6, load.rows.hbm
    field r3, load.rows.l1
    issue load_0
    addi r1, r1, 4
    add r3, r3, r7
    addi r2, r2, -1
    bne r2, r0, next
    let r8, {{count}}
back: wait 9, 1
    addi r8, r8, -1
    bne r8, r0, back
    signal 10, 1
    halt
template: .word load.rows hbm=0 l1=0 length={_EXPERT} signal_a=9 signal_a_count=1
"""
"""Loads rows by ids that lie in L1, and signals semaphore 10 when all have come."""


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


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def data_dependent_loads(dut: Any) -> None:
    """The scalar engine loads rows by their numbers; a store waits for it. As the simulator."""
    bench = Bench(dut)
    memories = await bench.start()
    driver, configuration = bench.driver, bench.driver.configuration
    for number in (1, 5, 20):
        ids = [bench.random.randrange(len(memories[0]) // _EXPERT // 2) for _ in range(number)]
        source = _SOURCE.format(count=number)
        images = {
            _PLACES["code"]: assemble_scalar(configuration, source).code,
            _PLACES["ids"]: np.array(ids, "<u4").tobytes(),
        }
        simulated = Memories(configuration.slice, len(memories[0]))
        simulated.hbm[0][:] = memories[0]
        for address, data in images.items():
            await driver.window.write(address, data)
            simulated.l1[address : address + len(data)] = np.frombuffer(data, np.uint8)
        run = {"pc": _PLACES["code"], "r1": _PLACES["ids"], "r2": number, "r3": _PLACES["rows"]}
        move = {
            "hbm": len(memories[0]) // 2,
            "l1": _PLACES["rows"],
            "length": number * _EXPERT,
            "wait_a": 10,
            "wait_a_count": 1,
        }
        queues = {
            "scalar": [bench.word("scalar.run", **run)],
            "store_0": [bench.word("store.rows", **move)],
        }
        program = Program(queues, _PLACES["rings"], 4)
        trace = simulate(configuration, program, simulated)
        found = await driver.run(program, 200_000)
        memories[0] = simulated.hbm[0]
        await bench.compare(memories)
        rows = memories[0][: len(memories[0]) // 2].reshape(-1, _EXPERT)[ids].reshape(-1)
        stored = memories[0][move["hbm"] :][: len(rows)]
        assert np.array_equal(stored, rows)
        error = trace.cycles / found.cycles - 1
        assert abs(error) <= 0.02, f"{trace.cycles} cycles, the RTL's are {found.cycles}"


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def catalogue(dut: Any) -> None:
    """Kernels leave in HBM what numpy model and simulator say, in the simulator's cycles."""
    bench = Bench(dut)
    await bench.start()
    driver, configuration = bench.driver, bench.driver.configuration
    errors: list[str] = []
    for name, shape in bench.random.sample(_CATALOGUE, count(len(_CATALOGUE))):
        work = workload(configuration, name, shape, seed=bench.random.getrandbits(32))
        before = work.memory()
        simulated = Memories(configuration.slice, len(before))
        simulated.hbm[0][:] = before
        trace = simulate(configuration, work.program, simulated)
        await driver.load_hbm(0, 0, before)
        run = await driver.run(work.program, 200_000)
        found = await driver.dump_hbm(0, 0, len(before))
        assert not list(work.wrong(found)), f"{name} {shape}"
        assert np.array_equal(found, simulated.hbm[0]), f"{name} {shape}"
        error = trace.cycles / run.cycles - 1
        cocotb.log.info("%s %s: %d cycles, the simulator's %+.4f", name, shape, run.cycles, error)
        if abs(error) > _CYCLE_ERROR:
            errors.append(f"{name} {shape}: {trace.cycles} cycles, the RTL's are {run.cycles}")
    assert not errors, "\n".join(errors)
