"""Counts commands that do not take the cycles of the timing contract.

Random commands of every kind, each alone on a slice with ideal memories, and a load of short rows
beside one of the same bytes in one run. The figures go to the file that `POBLANO_CONTRACT_FILE`
names, as JSON: `commands` and `mismatches` by mnemonic, and the cycles of both loads. A mismatch
also fails the bench; `poblano bench` runs it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import cocotb
import numpy as np

from poblano.commands import by_mnemonic
from poblano.config import SliceConfiguration
from poblano_sw.program import Program
from poblano_verif.matmul_workload import random_product
from poblano_verif.system_driver import Run, SystemDriver
from poblano_verif.vector_workload import Room, random_chain, random_pass, random_topk

COUNT = int(os.environ.get("POBLANO_COMMANDS", "25"))
"""Commands of each kind."""

SHORT_ROWS, SHORT_BYTES = 1024, 90
"""A matrix of short rows: the scales of 1,024 rows of 2,880 elements."""

RING_BYTES = 64
INDICES = 1024
"""Bytes of L1 for the ring of one word, and for indices; both lie at its end."""


@dataclass
class Case:
    """A command, and what its cycles depend on besides.

    Attributes
    ----------
    indices:
        What a move by index finds in L1.
    chain:
        The chain that a pass runs through, set before.
    """

    mnemonic: str
    values: dict[str, int]
    indices: list[int] | None = None
    chain: dict[str, int] | None = None

    def __post_init__(self) -> None:
        self.command = by_mnemonic(self.mnemonic)
        self.values = self.command.complete(self.values)

    def expected(self, configuration: SliceConfiguration) -> int:
        """Return what the contract says."""
        more = [part for part in (self.indices, self.chain) if part is not None]
        return self.command.cycles(configuration, self.values, *more)


def _move(random: Random, l1_size: int, hbm_size: int, *, indexed: bool) -> Case:
    engine = random.choice(("load", "store"))
    length = random.choice((1, 17, 64, 90, random.randint(1, 6000)))
    rows = random.randint(1, max(1, min(60, 12_000 // length)))
    planes = 1 if indexed else random.randint(1, 3)
    values = {"length": length, "rows": rows}
    for side, size in (("l1", l1_size), ("hbm", hbm_size)):
        room = size - length
        stride = min(room // (rows * planes + 1), random.choice((length, length + 3, 4096)))
        values |= {f"{side}_row_stride": stride}
        if not indexed:
            values |= {f"{side}_plane_stride": rows * stride, "planes": planes}
        values[side] = random.randint(0, room - rows * planes * stride)
    if not indexed:
        return Case(f"{engine}.rows", values)
    values["indices"] = l1_size + 4 * random.randint(0, INDICES // 4 - rows)
    indices = [random.randint(0, rows) for _ in range(rows)]
    return Case(f"{engine}.{'gather' if engine == 'load' else 'scatter'}", values, indices)


async def _run(driver: SystemDriver, case: Case) -> Run:
    """Run a command alone."""
    engine = case.command.engine
    queue = f"{engine}_0" if engine in ("load", "store") else engine
    word = case.command.encode(case.values)
    base = driver.configuration.slice.l1.size - RING_BYTES
    return await driver.run(Program({queue: [word]}, base, ring_words=1), 1_000_000)


@cocotb.test()
async def commands_alone(dut: Any) -> None:
    """Run every case and count."""
    driver = SystemDriver(dut)
    await driver.start()
    section = driver.configuration.slice
    random = Random(cocotb.RANDOM_SEED)
    l1_size = section.l1.size - RING_BYTES - INDICES
    noise = np.frombuffer(random.randbytes(section.l1.size), np.uint8)
    await driver.window.write(0, noise.tobytes())
    memory = random.randbytes(driver.memory_bytes)
    await driver.load_hbm(0, 0, memory)

    def product() -> Case:
        window = range(min(l1_size, 1 << 16))
        made = random_product(random, section, largest=80, window=window)
        return Case("tensor.matmul", made.plan.values)

    def passes() -> Case:
        chain = random_chain(random, indexed=0)
        room = Room(np.zeros(l1_size, np.uint8), section.l1.line, random)
        rows, cols = random.randint(1, 6), random.randint(1, 200)
        return Case(
            "vector.pass", random_pass(section, random, room, chain, rows, cols), None, chain
        )

    def largest() -> Case:
        room = Room(np.zeros(l1_size, np.uint8), section.l1.line, random)
        cols = random.randint(1, 150)
        k = random.randint(1, min(4, cols))
        return Case("vector.topk", random_topk(random, room, random.randint(1, 3), cols, k))

    makers: list[Callable[[], Case]] = [
        product,
        lambda: _move(random, l1_size, driver.memory_bytes, indexed=False),
        lambda: _move(random, l1_size, driver.memory_bytes, indexed=True),
        passes,
        largest,
    ]
    size = SHORT_ROWS * SHORT_BYTES
    one_run = {"hbm": 0, "l1": 0, "length": size}
    row = {"hbm_row_stride": SHORT_BYTES, "l1_row_stride": SHORT_BYTES, "rows": SHORT_ROWS}
    short_rows = {**one_run, **row, "length": SHORT_BYTES}
    cases = [make() for make in makers for _ in range(COUNT)]
    if size <= l1_size:
        cases += [Case("load.rows", values) for values in (one_run, short_rows)]
    counts: dict[str, list[int]] = {}
    wrong: list[str] = []
    taken: list[int] = []
    for case in cases:
        if case.indices is not None:
            data = np.array(case.indices, "<u4").tobytes()
            await driver.window.write(case.values["indices"], data)
        if case.chain is not None:
            await _run(driver, Case("vector.chain", case.chain))
        run = await _run(driver, case)
        taken.append(run.cycles)
        expected = case.expected(section)
        entry = counts.setdefault(case.command.mnemonic, [0, 0])
        entry[0] += 1
        if run.cycles != expected:
            entry[1] += 1
            wrong.append(
                f"{case.command.mnemonic} {case.values}: {run.cycles} cycles, "
                f"the contract says {expected}"
            )
    report: dict[str, Any] = {
        mnemonic: {"commands": commands, "mismatches": mismatches}
        for mnemonic, (commands, mismatches) in sorted(counts.items())
    }
    report = {"commands": report, "one_run": taken[-2], "short_rows": taken[-1]}
    if path := os.environ.get("POBLANO_CONTRACT_FILE"):
        Path(path).write_text(json.dumps(report), "utf-8")
    assert not wrong, "\n".join(wrong)
