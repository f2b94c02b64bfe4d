"""Runs a list of matrix products on a slice and hands back what L1 holds afterwards.

Not a test of its own: the flow writes the products to a folder (`POBLANO_JOBS`) and judges the
results. Each job is `NAME.npz` with the command word and the runs of bytes to load; the answer is
`NAME.out.npz`. A line of JSON in `progress.jsonl` tells of each step as it is done.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.utils import get_sim_time

from poblano.config import Configuration
from poblano_verif.tensor_driver import L1Image, TensorDriver

PERIOD = 1000
"""Clock period in simulation steps."""


@cocotb.test()
async def run_jobs(dut: Any) -> None:
    """Load, run and read back every job in the order of its name."""
    manifest = json.loads(Path(os.environ["POBLANO_MANIFEST"]).read_text("utf-8"))
    configuration = Configuration.model_validate(manifest["configuration"]["values"])
    l1 = configuration.slice.l1
    folder = Path(os.environ["POBLANO_JOBS"])
    driver = TensorDriver(dut, line=l1.line, period=PERIOD)
    Clock(dut.clk, PERIOD, unit="step").start(start_high=False)
    await driver.reset()
    found = int(dut.configuration_hash.value)
    assert found == configuration.hash64, f"hash {found:#x}, expected {configuration.hash64:#x}"

    jobs = sorted(path for path in folder.glob("*.npz") if not path.name.endswith(".out.npz"))
    assert jobs, f"{folder} must hold jobs; it holds none"
    with (folder / "progress.jsonl").open("w", encoding="utf-8") as progress:
        for path in jobs:
            await _run_job(dut, driver, path, l1.size, l1.line)
            print(json.dumps({"job": path.stem}), file=progress, flush=True)


async def _run_job(dut: Any, driver: TensorDriver, path: Path, size: int, line: int) -> None:
    job = np.load(path)
    image = L1Image(size, line)
    data, offset = job["data"], 0
    for address, length in zip(job["addresses"], job["lengths"], strict=True):
        image.put([(int(address), data[offset : offset + int(length)])])
        offset += int(length)

    began, begin = time.perf_counter(), get_sim_time("step")
    await driver.write_lines(image, image.take_touched())
    loaded = get_sim_time("step")
    cycles = await driver.run(job["word"].tobytes(), int(job["limit"]))
    ran = get_sim_time("step")
    fault = int(dut.fault.value)
    assert fault == 0, f"{path.stem}: fault {fault}"
    lines = job["read_lines"]
    read = await driver.read_lines(int(index) for index in lines)
    ended, end = time.perf_counter(), get_sim_time("step")
    np.savez(
        path.with_suffix(".out.npz"),
        lines=lines,
        data=np.stack([read[int(index)] for index in lines]),
        cycles=cycles,
        other_cycles=round((loaded - begin + end - ran) / PERIOD),
        seconds=ended - began,
    )
