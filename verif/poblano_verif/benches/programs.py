"""Runs a list of programs on a slice with ideal memories and hands back what HBM holds afterwards.

Not a test of its own: the flow writes the programs to a folder (`POBLANO_JOBS`) and judges the
results. Each is `NAME.npz` with the words of every queue, the bytes to put into HBM, and which
bytes to read back; the answer is `NAME.out.npz`. A line of JSON in `progress.jsonl` tells of each
as it is done.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
import numpy as np

from poblano.commands import WORD_BYTES
from poblano_sw.program import Program
from poblano_verif.system_driver import SystemDriver


@cocotb.test()
async def run_programs(dut: Any) -> None:
    """Load, run and read back every program in the order of its name."""
    folder = Path(os.environ["POBLANO_JOBS"])
    driver = SystemDriver(dut)
    await driver.start()
    jobs = sorted(path for path in folder.glob("*.npz") if not path.name.endswith(".out.npz"))
    assert jobs, f"{folder} must hold programs; it holds none"
    with (folder / "progress.jsonl").open("w", encoding="utf-8") as progress:
        for path in jobs:
            await _run(driver, path)
            print(json.dumps({"job": path.stem}), file=progress, flush=True)


async def _run(driver: SystemDriver, path: Path) -> None:
    job = np.load(path)
    names = [str(name) for name in job["queues"]]
    program = Program(
        {
            name: [bytes(word) for word in job[f"words_{name}"].reshape(-1, WORD_BYTES)]
            for name in names
        },
        ring_base=int(job["ring_base"]),
        ring_words=int(job["ring_words"]),
    )
    began = time.perf_counter()
    for number, address in enumerate(job["addresses"]):
        await driver.load_hbm(0, int(address), job[f"data_{number}"])
    run = await driver.run(program, int(job["limit"]))
    start, length = (int(value) for value in job["results"])
    data = await driver.dump_hbm(0, start, length)
    first = run.events[0].cycle
    spans: dict[str, Any] = {f"spans_{name}": np.array(run.spans[name]) - first for name in names}
    np.savez(
        path.with_suffix(".out.npz"),
        data=data,
        cycles=run.cycles,
        beats=np.array(run.beats),
        seconds=time.perf_counter() - began,
        **spans,
    )
