"""A test that fails only after another one has run in the same simulation."""

import cocotb

from poblano_verif.clock import PERIOD
from poblano_verif.dut import Dut

_ran = []


@cocotb.test(timeout_time=100 * PERIOD, timeout_unit="step")
async def first(dut):
    """Leave something behind."""
    block = Dut(dut)
    block.rest()
    block.clock.start()
    await block.clock.reset()
    _ran.append("first")


@cocotb.test(timeout_time=100 * PERIOD, timeout_unit="step")
async def second(dut):
    """Fail if something was left."""
    block = Dut(dut)
    block.rest()
    block.clock.start()
    await block.clock.reset()
    assert not _ran, "something was left behind"
