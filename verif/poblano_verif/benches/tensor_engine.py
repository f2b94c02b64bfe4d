"""Bench of the tensor engine: matrix products in every mode and shape against the numpy model.

L1 is full of random bytes, so that whatever lies past a ragged edge would show, and all of it is
compared after each product, so that a byte written elsewhere would too. Every product must take
exactly the cycles of the timing contract.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import cocotb
import numpy as np
from cocotb.clock import Clock

from poblano.arith.modes import modes, operand_formats
from poblano.commands import MATMUL
from poblano.config import Configuration, SliceConfiguration
from poblano.faults import Fault
from poblano.tensor.layout import format_of
from poblano.tensor.timing import Timeline
from poblano_golden.formats import BF16, FP32
from poblano_sw.matmul import golden_bytes
from poblano_verif.matmul_workload import Product, random_bytes, random_product
from poblano_verif.tensor_driver import L1Image, TensorDriver

T = TypeVar("T")

PERIOD = 1000
"""Clock period in simulation steps."""


class Bench:
    """A tensor engine under test with a model of its L1."""

    def __init__(self, dut: Any) -> None:
        manifest = json.loads(Path(os.environ["POBLANO_MANIFEST"]).read_text())
        self.configuration = Configuration.model_validate(manifest["configuration"]["values"])
        self.slice: SliceConfiguration = self.configuration.slice
        self.dut = dut
        self.random = Random(cocotb.RANDOM_SEED)
        self.driver = TensorDriver(dut, line=self.slice.l1.line, period=PERIOD)
        self.image = L1Image(self.slice.l1.size, self.slice.l1.line)

    async def start(self) -> None:
        """Clock, reset, and random bytes everywhere."""
        Clock(self.dut.clk, PERIOD, unit="step").start(start_high=False)
        await self.driver.reset()
        assert int(self.dut.configuration_hash.value) == self.configuration.hash64
        self.image.fill(random_bytes(self.random, self.slice.l1.size))
        await self.driver.write_lines(self.image, self.image.take_touched())

    async def load(self, product: Product) -> None:
        """Bring the operands into L1."""
        self.image.put(product.images())
        await self.driver.write_lines(self.image, self.image.take_touched())

    async def check(self, product: Product, *, everything: bool = True) -> None:
        """Run the product and compare its results, its cycles and the rest of L1."""
        await self.load(product)
        plan = product.plan
        expected = plan.phases.cycles
        cycles = await self.driver.run(plan.word, 2 * expected + 1000)
        text = describe(product)
        assert self.fault == 0, f"{text}: fault {self.fault}"
        assert cycles == expected, f"{text}: {cycles} cycles, the contract says {expected}"
        results = golden_bytes(plan, product.a, product.b)
        self.image.put(results)
        self.image.take_touched()
        lines = range(self.slice.l1.size // self.slice.l1.line)
        await self.compare(lines if everything else self.image.lines(results), text)

    async def compare(self, lines: Any, text: str) -> None:
        """Compare lines of L1 with the model."""
        size = self.slice.l1.line
        for index, found in (await self.driver.read_lines(lines)).items():
            wanted = self.image.data[index * size : (index + 1) * size]
            if not np.array_equal(found, wanted):
                byte = int(np.flatnonzero(found != wanted)[0])
                raise AssertionError(
                    f"{text}: L1 byte {index * size + byte:#x} is {found[byte]:#04x}, "
                    f"expected {wanted[byte]:#04x}"
                )

    def share(self, cases: Iterable[T]) -> list[T]:
        """Return the part of `cases` that the environment asks for, drawn at random; at least one.

        Icarus takes a tenth of what Verilator does.
        """
        everything = list(cases)
        part = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
        return self.random.sample(everything, max(1, round(part * len(everything))))

    @property
    def fault(self) -> int:
        """The kind of the first fault since reset."""
        return int(self.dut.fault.value) & 15


def describe(product: Product) -> str:
    """Return the command as text, for messages."""
    values = product.plan.values
    names = "x".join(format_of(values[f"{side}_format"]).name for side in "ab")
    return (
        f"{names} to {product.plan.result.name}, m={values['m']} n={values['n']} k={values['k']} "
        f"axis={values['axis']} rule={values['scale_rule']}"
    )


def tile(configuration: SliceConfiguration) -> tuple[int, int]:
    """Return rows and columns of a tile."""
    tensor = configuration.tensor
    return tensor.rows * tensor.tile_rows, tensor.cols * tensor.tile_cols


@cocotb.test(timeout_time=400_000_000, timeout_unit="step")
async def every_mode_and_result(dut: Any) -> None:
    """Every format pair with every result format and axis, on a ragged shape."""
    bench = Bench(dut)
    await bench.start()
    formats = bench.slice.tensor.formats
    results = (FP32, BF16, *operand_formats(formats))
    cases = itertools.product(modes(formats), results, (0, 1))
    for mode, result, axis in bench.share(cases):
        product = random_product(
            bench.random,
            bench.slice,
            mode=mode,
            result=result,
            axis=axis,
            shape=(5 + axis, 35 - axis, 45),
        )
        await bench.check(product, everything=False)
    await bench.compare(range(bench.slice.l1.size // bench.slice.l1.line), "at the end")


@cocotb.test(timeout_time=400_000_000, timeout_unit="step")
async def edges_of_tiles(dut: Any) -> None:
    """Sizes at, below and above units, tiles and blocks, in both directions."""
    bench = Bench(dut)
    await bench.start()
    rows, cols = tile(bench.slice)
    tensor = bench.slice.tensor
    ms = {1, tensor.rows, tensor.rows + 1, rows - 1, rows, rows + 1}
    ns = {1, tensor.cols, tensor.cols + 1, 31, 32, 33, cols - 1, cols, cols + 1}
    shapes = [(m, 7, 33) for m in sorted(ms)] + [(3, n, 32) for n in sorted(ns)]
    shapes += [(rows + 1, 2 * cols + 1, k) for k in (1, 31, 32, 64, 65)]
    for shape in bench.share(shapes):
        product = random_product(bench.random, bench.slice, shape=shape, nan=0)
        await bench.check(product, everything=False)
    await bench.compare(range(bench.slice.l1.size // bench.slice.l1.line), "at the end")


@cocotb.test(timeout_time=2_000_000_000, timeout_unit="step")
async def random_products(dut: Any) -> None:
    """Random products at random places, NaN scales and elements among them."""
    bench = Bench(dut)
    await bench.start()
    count = int(os.environ.get("POBLANO_RANDOM_PRODUCTS", "60"))
    for number in range(count):
        product = random_product(bench.random, bench.slice)
        await bench.check(product, everything=number % 10 == 9)


@cocotb.test(timeout_time=2_000_000_000, timeout_unit="step")
async def commands_overlap(dut: Any) -> None:
    """Several commands at once, each in a part of L1 of its own: bits, and when each is done."""
    bench = Bench(dut)
    await bench.start()
    part = bench.slice.l1.size // 4
    for _ in range(int(os.environ.get("POBLANO_RANDOM_PRODUCTS", "60")) // 4):
        products = [
            random_product(
                bench.random, bench.slice, largest=70, window=range(part * i, part * (i + 1))
            )
            for i in range(4)
        ]
        for product in products:
            await bench.load(product)
        timeline = Timeline(bench.slice)
        expected: list[int] = []
        for product in products:
            issue = timeline.ready + 1
            expected.append(issue + timeline.run(product.plan.values).cycles)
        words = [product.plan.word for product in products]
        done = await bench.driver.run_all(words, 2 * expected[-1] + 1000)
        text = "; ".join(map(describe, products))
        assert bench.fault == 0, f"{text}: fault {bench.fault}"
        assert done == expected, f"{text}: done at {done}, the contract says {expected}"
        for product in products:
            bench.image.put(golden_bytes(product.plan, product.a, product.b))
        bench.image.take_touched()
        await bench.compare(range(bench.slice.l1.size // bench.slice.l1.line), text)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def host_works_beside_engine(dut: Any) -> None:
    """Host accesses while a product runs: they wait, the product does not."""
    bench = Bench(dut)
    await bench.start()
    product = random_product(bench.random, bench.slice, shape=(9, 40, 70), nan=0)
    await bench.load(product)
    size = bench.slice.l1.line
    used = bench.image.lines(
        [
            *product.images(),
            *golden_bytes(product.plan, product.a, product.b),
        ]
    )
    free = [n for n in range(bench.slice.l1.size // size) if n not in set(used)]
    expected = product.plan.phases.cycles
    run = cocotb.start_soon(bench.driver.run(product.plan.word, 2 * expected + 1000))
    while not run.done():
        index = bench.random.choice(free)
        bench.image.put([(index * size, random_bytes(bench.random, size))])
        await bench.driver.write_lines(bench.image, bench.image.take_touched())
        await bench.compare([index], "host access beside a product")
    assert await run == expected
    bench.image.put(golden_bytes(product.plan, product.a, product.b))
    await bench.compare(range(bench.slice.l1.size // size), describe(product))


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def illegal_commands(dut: Any) -> None:
    """A word that breaks a rule of the table is refused with its fault; L1 stays as it was."""
    bench = Bench(dut)
    await bench.start()
    product = random_product(bench.random, bench.slice, shape=(3, 5, 40), nan=0)
    legal = MATMUL.encode(product.plan.values)
    names = [item.name for item in MATMUL.fields]

    def broken(**values: int) -> bytes:
        return MATMUL.encode({**product.plan.values, **values})

    cases = [
        (bytes([0xFF, *legal[1:]]), Fault.OPCODE, 0),
        (bytes(len(legal)), Fault.OPCODE, 0),
        *((broken(**{name: 0}), Fault.FIELD, names.index(name)) for name in "mnk"),
        *(
            (broken(**{name: 15}), Fault.FIELD, names.index(name))
            for name in ("a_format", "b_format", "d_format")
        ),
        (broken(scale_rule=3), Fault.FIELD, names.index("scale_rule")),
    ]
    pairs = {(mode.a.code, mode.b.code) for mode in modes(bench.slice.tensor.formats)}
    missing = [(a, b) for a in range(6) for b in range(6) if (a, b) not in pairs]
    cases += [(broken(a_format=a, b_format=b), Fault.FORMATS, 0) for a, b in missing]
    for word, kind, field in cases:
        await bench.driver.reset()
        await bench.driver.refuse(word, 100)
        assert bench.fault == kind, f"{word.hex()}: fault {bench.fault}, not {kind}"
        found = int(dut.fault.value) >> 4 & 0xFF
        assert found == field, f"{word.hex()}: field {found}, not {field}"
    await bench.compare(range(bench.slice.l1.size // bench.slice.l1.line), "refused commands")
    await bench.driver.reset()
    await bench.check(product)


@cocotb.test(timeout_time=100_000_000, timeout_unit="step")
async def addresses_outside_l1(dut: Any) -> None:
    """An operand or a result past the end of L1 raises the fault and writes nothing there."""
    bench = Bench(dut)
    await bench.start()
    product = random_product(bench.random, bench.slice, result=FP32, shape=(3, 5, 40), nan=0)
    await bench.load(product)
    size = bench.slice.l1.size
    for name in ("a_codes", "a_scales", "b_codes", "b_scales", "d_codes"):
        await bench.driver.reset()
        values = {**product.plan.values, name: size + bench.random.randrange(size)}
        await bench.driver.refuse(MATMUL.encode(values), 10_000)
        assert bench.fault == Fault.ADDRESS, f"{name} outside L1: fault {bench.fault}"
        line = values[name] // bench.slice.l1.line * bench.slice.l1.line
        found = int(dut.fault.value) >> 12 & ((1 << 40) - 1)
        assert found == line, f"{name} outside L1 at {values[name]:#x}: address {found:#x}"
        if name == "d_codes":
            await bench.compare(range(size // bench.slice.l1.line), "results outside L1")
        else:
            d = product.plan.arrays["d_code"]
            runs = [
                (d.address + i * d.stride, np.zeros(d.length, np.uint8)) for i in range(d.steps)
            ]
            lines = bench.image.lines(runs)
            for index, found in (await bench.driver.read_lines(lines)).items():
                line = bench.slice.l1.line
                bench.image.put([(index * line, found)])
            bench.image.take_touched()
    await bench.driver.reset()
    await bench.check(product)
