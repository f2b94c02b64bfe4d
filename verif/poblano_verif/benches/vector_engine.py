"""Bench of the vector engine: chains, passes and topks against the numpy models, cycle by cycle.

All of L1 is compared after each command, and each that runs without waits for L1 must take exactly
the cycles of the timing contract.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import cocotb
import numpy as np

from poblano.commands import CHAIN, PASS, TOPK
from poblano.faults import Fault
from poblano.vector.layout import STORE_NONE
from poblano_golden.formats import MX_FORMATS, SCALE_RULES
from poblano_golden.vector import NUMBERS, OPERATIONS, REDUCTIONS, SECOND_FACTORS
from poblano_verif.vector_bench import VectorBench
from poblano_verif.vector_workload import random_chain, random_pass, random_topk

LIMIT = 2_000_000_000
COUNT = int(os.environ.get("POBLANO_RANDOM_PASSES", "120"))


def bits(x: float) -> int:
    """Return the bits of a binary32 number."""
    return int(np.float32(x).view(np.uint32))


async def run_random(bench: VectorBench, rows: int, cols: int, **chain: int) -> None:
    """Run a random chain and pass of that size."""
    await bench.set_chain(random_chain(bench.random, **chain))
    values = random_pass(bench.slice, bench.random, bench.room(), bench.chain, rows, cols)
    await bench.check(PASS, values)


def sizes(bench: VectorBench) -> list[int]:
    """Return numbers of columns at, below and above beats and blocks."""
    lanes = bench.lanes
    found = {1, 2, lanes - 1, lanes, lanes + 1, 2 * lanes, 3 * lanes + 1}
    found |= {31, 32, 33, 63, 64, 65, 96, 4 * lanes, 6 * lanes - 1}
    return sorted(size for size in found if size > 0)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def plain_copies(dut: Any) -> None:
    """The chain after a reset does nothing; then a's rows are copied in each pair of formats."""
    bench = VectorBench(dut)
    await bench.start()
    await bench.check(PASS, random_pass(bench.slice, bench.random, bench.room(), bench.chain, 2, 9))
    names = list(NUMBERS)
    for a, d in bench.share(itertools.product(names, names)):
        chain = {"a_format": NUMBERS[a].code, "d_format": NUMBERS[d].code}
        await bench.set_chain(CHAIN.complete(chain))
        values = random_pass(bench.slice, bench.random, bench.room(), bench.chain, 3, 45)
        await bench.check(PASS, values)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def blocks_along_rows(dut: Any) -> None:
    """Every MX format and scale rule, rows of every length about a block."""
    bench = VectorBench(dut)
    await bench.start()
    cases = list(itertools.product(MX_FORMATS.values(), SCALE_RULES.values(), sizes(bench)))
    some = bench.share(cases)
    for fmt, rule, cols in some[:60]:
        await run_random(
            bench, bench.random.randrange(1, 5), cols, d_format=fmt.code, scale_rule=rule, indexed=0
        )


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reductions_of_rows(dut: Any) -> None:
    """Every reduction of rows of every length about a beat, stored as well or not."""
    bench = VectorBench(dut)
    await bench.start()
    cases = itertools.product(range(1, len(REDUCTIONS)), sizes(bench), (1, 5), (False, True))
    for reduction, cols, rows, stores in bench.share(cases):
        chain = {} if stores else {"d_format": STORE_NONE}
        await run_random(bench, rows, cols, reduction=reduction, **chain)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def random_passes(dut: Any) -> None:
    """Anything, one pass after the other."""
    bench = VectorBench(dut)
    await bench.start()
    for _ in range(COUNT):
        rows, cols = bench.random.randrange(1, 9), bench.random.randrange(1, 150)
        await run_random(bench, rows, cols)
        if bench.random.random() < 0.2:
            k = bench.random.randrange(1, min(cols, 9) + 1)
            await bench.check(TOPK, random_topk(bench.random, bench.room(), 2, cols, k))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def passes_that_wait(dut: Any) -> None:
    """Anything, while L1 makes reads and writes wait."""
    bench = VectorBench(dut)
    await bench.start()
    for pause in (0.2, 0.7):
        bench.pause = pause
        for _ in range(max(2, COUNT // 4)):
            await run_random(bench, bench.random.randrange(1, 6), bench.random.randrange(1, 100))
        await bench.check(TOPK, random_topk(bench.random, bench.room(), 3, 40, 5))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def largest_of_rows(dut: Any) -> None:
    """The largest: every k to 32 and many lengths, equal numbers and NaN among them."""
    bench = VectorBench(dut)
    await bench.start()
    for cols in bench.share([*sizes(bench), 100, 130]):
        for k in {1, min(cols, 4), min(cols, 32)}:
            values = random_topk(bench.random, bench.room(), bench.random.randrange(1, 4), cols, k)
            await bench.check(TOPK, values)
    # a row of equal numbers: their order is that of their columns
    room = bench.room()
    place = room.take(4 * 40)
    bench.l1[place : place + 160] = np.full(40, np.float32(np.nan)).view(np.uint8)
    fields = {"values": room.take(160, 4), "indices": room.take(160, 4)}
    await bench.check(TOPK, TOPK.complete({"a": place, "cols": 40, "k": 32, **fields}))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def softmax_in_two_passes(dut: Any) -> None:
    """A whole softmax of 1024 numbers, its cycles, and how near it is to float64."""
    bench = VectorBench(dut)
    await bench.start()
    cols = 1024
    room = bench.room(aligned=1.0)
    source, result, words = room.take(4 * cols), room.take(4 * cols), room.take(8)
    x = np.array([bench.random.gauss(0, 60) for _ in range(cols)], np.float32)
    bench.l1[source : source + 4 * cols] = x.view(np.uint8)
    scale = {"factor1": 4, "constant1": bits(float(np.log2(np.e)))}
    statistics = CHAIN.complete({**scale, "reduction": REDUCTIONS.index("softmax")})
    weights = CHAIN.complete(
        {
            **scale,
            "operation1": OPERATIONS.index("subtract"),
            "operand1": 2,
            "function": 3,
            "factor2": SECOND_FACTORS.index("reciprocal_q"),
            "d_format": NUMBERS["fp32"].code,
        }
    )
    first = PASS.complete({"a": source, "r": words, "cols": cols})
    second = {"a": source, "p": words, "q": words + 4, "d_codes": result, "cols": cols}
    await bench.set_chain(statistics)
    one = await bench.check(PASS, first)
    await bench.set_chain(weights)
    two = await bench.check(PASS, PASS.complete(second))
    found = bench.l1[result : result + 4 * cols].view(np.float32).astype(np.float64)
    exact = np.exp(x.astype(np.float64) - x.max())
    exact /= exact.sum()
    assert abs(found.sum() - 1) < 1e-6, f"weights add up to {found.sum()}"
    large = exact > 1e-30
    error = np.abs(found[large] / exact[large] - 1).max()
    assert error < 4e-5, f"a weight is {error} off"
    # the same words one behind the other
    words_of = (CHAIN.encode(statistics), PASS.encode(first), CHAIN.encode(weights))
    issued = bench.commands.send(*words_of, PASS.encode(PASS.complete(second)))
    await bench.finish()
    cycles = issued[-1].done - issued[0].accepted - 1
    cocotb.log.info(
        "softmax of %d numbers: passes %d and %d, all %d cycles, %.3f lane cycles a number",
        cols,
        one.cycles,
        two.cycles,
        cycles,
        cycles * bench.lanes / cols,
    )
    assert cycles <= 2 * cols // bench.lanes + 60


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def illegal_words(dut: Any) -> None:
    """A word that breaks a rule of the table is refused with its field; L1 stays as it was."""
    bench = VectorBench(dut)
    await bench.start()
    chain = CHAIN.complete({"d_format": 10, "reduction": 1})
    base = random_pass(bench.slice, bench.random, bench.room(), chain, 2, 20)
    largest = random_topk(bench.random, bench.room(), 2, 20, 3)
    before = bench.l1.copy()
    cases: list[tuple[bytes, Fault, int]] = [(bytes(64), Fault.OPCODE, 0)]
    for command, values, broken in (
        (PASS, base, {"rows": 0}),
        (PASS, base, {"cols": 0}),
        *((PASS, base, {name: 6}) for name in ("p", "q", "r", "index")),
        (TOPK, largest, {"k": 0}),
        (TOPK, largest, {"k": 21}),
        (TOPK, largest, {"a_format": 7}),
        (TOPK, largest, {"values": 2}),
        (TOPK, largest, {"indices": 9}),
        (CHAIN, chain, {"a_format": 0}),
        (CHAIN, chain, {"d_format": 12}),
        (CHAIN, chain, {"factor1": 5}),
        (CHAIN, chain, {"operation1": 7}),
        (CHAIN, chain, {"left2": 3}),
        (CHAIN, chain, {"factor2": 9}),
        (CHAIN, chain, {"scale_rule": 3}),
        (CHAIN, {**chain, "reduction": 3}, {"function": 1}),
        (CHAIN, {**chain, "reduction": 3}, {"operation2": 1}),
    ):
        place = [item.name for item in command.fields].index(next(iter(broken)))
        cases.append((command.encode({**values, **broken}), Fault.FIELD, place))
    for word, kind, field in cases:
        await bench.reset()
        ahead = bench.random.randrange(3)
        bench.commands.send(*[CHAIN.encode(CHAIN.complete({}))] * ahead, word)
        await bench.finish()
        bench.expect_fault(kind, field=field, number=ahead)
        assert bench.commands.issued[-1].done < 0, "a refused command must not be done"
        bench.compare(before, bench.describe(word) if word[0] else "no command")
    await bench.reset()
    await bench.set_chain(chain)
    await bench.check(PASS, base)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def places_outside_l1(dut: Any) -> None:
    """An array past the end of L1 is a fault; what is written before is right, nothing else is."""
    bench = VectorBench(dut)
    await bench.start()
    size = bench.slice.l1.size
    names = ["a", "b", "p", "d_codes", "r", "index"] + ["d_codes"] * 2
    for number, name in enumerate(names):
        await bench.reset()
        chain = CHAIN.complete(
            {
                "factor1": 2,
                "operation1": 1,
                "operand1": 2,
                "d_format": 0 if number == len(names) - 1 else 10,
                "reduction": REDUCTIONS.index("sum"),
                "indexed": int(name == "index"),
            }
        )
        await bench.set_chain(chain)
        values = dict(random_pass(bench.slice, bench.random, bench.room(), chain, 4, 50))
        wanted = bench.after(PASS, values)
        if name in ("p", "r", "index"):
            values[name] = bench.random.choice((size, (1 << 24) - 4))
        elif number % 2:
            near = size - 30 if name == "d_codes" else size
            values[name] = bench.random.choice((size, (1 << 24) - 4, near))
        else:
            stride = "d_code_stride" if name == "d_codes" else f"{name}_row_stride"
            values[stride] = size
        before = bench.l1.copy()
        bench.commands.send(PASS.encode(PASS.complete(values)))
        await bench.finish()
        bench.expect_fault(Fault.ADDRESS, number=1)
        assert fault_address(bench) >= size - bench.line, f"fault at {fault_address(bench):#x}"
        changed = bench.l1 != before
        if name in ("a", "b", "p", "index"):
            assert np.array_equal(bench.l1[changed], wanted[changed]), f"{name}: wrong bytes"
        bench.l1[:] = before
    await bench.reset()
    await run_random(bench, 3, 40)


def fault_address(bench: VectorBench) -> int:
    """Return the address of the engine's fault."""
    return bench.fault["address"]
