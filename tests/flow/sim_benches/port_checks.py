"""Testbenches of blocks without streams."""

import cocotb
from cocotb.triggers import Timer

from poblano_verif.dut import Dut


@cocotb.test(timeout_time=100, timeout_unit="step")
async def constants_at_time_zero(dut):
    """Outputs of constant logic have their values before anything changes."""
    await Timer(1, "step")
    block = Dut(dut)
    assert (block.ports["a"].bits, block.ports["state"].bits) == (1, 5)


@cocotb.test(timeout_time=100_000, timeout_unit="step")
async def keywords_as_names(dut):
    """Ports named like keywords carry values."""
    block = Dut(dut)
    block.rest()
    block.clock.start()
    await block.clock.reset()
    for value in (3, 9, 14):
        block.ports["input"].drive(value)
        block.ports["begin"].drive(value & 1)
        await block.clock.edges(2)
        assert block.ports["output"].bits == value + 1
        assert block.ports["wire"].bits == 1 - (value & 1)
