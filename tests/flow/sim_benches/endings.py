"""Tests that end a simulation in every bad way."""

import os
import signal

import cocotb
from cocotb.triggers import Timer

from poblano_verif.bench import Bench
from poblano_verif.clock import PERIOD


@cocotb.test(timeout_time=10**9, timeout_unit="step")
async def passes(dut):
    """Pass after a few cycles."""
    bench = Bench(dut)
    await bench.start()
    await bench.dut.clock.edges(10)


@cocotb.test(timeout_time=10**9, timeout_unit="step")
async def crashes(dut):
    """End the simulator with a signal."""
    bench = Bench(dut)
    await bench.start()
    await bench.dut.clock.edges(10)
    os.kill(os.getpid(), signal.SIGKILL)


@cocotb.test(timeout_time=10**9, timeout_unit="step")
async def leaves(dut):
    """End the simulator with status 0, so that no result is written."""
    del dut
    os._exit(0)


@cocotb.test()
async def interrupted_while_simulating(dut):
    """Ask the own simulator to end, and simulate on for ever."""
    bench = Bench(dut)
    await bench.start()
    await bench.dut.clock.edges(25)
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        await Timer(PERIOD, "step")


@cocotb.test()
async def interrupted_while_stuck(dut):
    """Ask the own simulator to end, and never return to it."""
    bench = Bench(dut)
    await bench.start()
    await bench.dut.clock.edges(25)
    os.kill(os.getpid(), signal.SIGTERM)
    while True:
        pass


@cocotb.test()
async def never_ends(dut):
    """Simulate for ever."""
    bench = Bench(dut)
    await bench.start()
    while True:
        await Timer(PERIOD, "step")


@cocotb.test(timeout_time=300 * PERIOD, timeout_unit="step")
async def reaches_its_limit(dut):
    """Wait for something that does not come, up to the limit in simulated time."""
    bench = Bench(dut)
    await bench.start()
    while True:
        await bench.dut.clock.edge()


@cocotb.test(timeout_time=1000 * PERIOD, timeout_unit="step")
async def reads_inside(dut):
    """Read a register of a module inside."""
    bench = Bench(dut)
    await bench.start()
    bench.send("i", {"op": "ADD"}, {"op": "SWAP"})
    bench.accept_anything("o")
    await bench.finish()
    assert dut.second.held.value == 2
