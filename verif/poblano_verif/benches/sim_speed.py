"""Measures how fast a slice simulates: one product, over and over, while the testbench waits.

Not a test of the slice; `poblano bench` runs it. The figures go to the file that
`POBLANO_SPEED_FILE` names, as JSON: `cycles`, and the `seconds` of processor time that they took.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from random import Random
from typing import Any

import cocotb
from cocotb.clock import Clock

from poblano.arith.modes import modes
from poblano.config import Configuration
from poblano_verif.dut import read_manifest
from poblano_verif.matmul_workload import random_product
from poblano_verif.tensor_driver import L1Image, TensorDriver

PERIOD = 1000
"""Clock period in simulation steps."""

M, K = 64, 576
"""Sizes of the product; N is as much as fits, at most `LARGEST_N`."""

LARGEST_N = 192

SECONDS = 3.0
"""Processor time to measure over."""


@cocotb.test(timeout_time=10**12, timeout_unit="step")
async def speed(dut: Any) -> None:
    """Load the operands, then issue the same command until enough time went by."""
    values = read_manifest()["configuration"]["values"]
    section = Configuration.model_validate(values).slice
    mode = modes(section.tensor.formats)[0]
    room = section.l1.size // 2 * 8 // (mode.a.storage_bits * K) - M
    shape = (M, min(LARGEST_N, room // 32 * 32), K)
    product = random_product(
        Random(cocotb.RANDOM_SEED), section, mode=mode, result=mode.a, axis=0, shape=shape, nan=0
    )
    driver = TensorDriver(dut, line=section.l1.line, period=PERIOD)
    Clock(dut.clk, PERIOD, unit="step").start()
    await driver.reset()
    image = L1Image(section.l1.size, section.l1.line)
    image.put(product.plan.images(product.a, product.b))
    await driver.write_lines(image, image.take_touched())
    cycles, began = 0, time.process_time()
    while time.process_time() - began < SECONDS:
        cycles += await driver.run(product.plan.word, 10 * product.plan.phases.cycles)
    seconds = time.process_time() - began
    report = {"cycles": cycles, "seconds": seconds}
    Path(os.environ["POBLANO_SPEED_FILE"]).write_text(json.dumps(report), "utf-8")
