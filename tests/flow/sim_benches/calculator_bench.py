"""A testbench of the calculator, with a golden model."""

import cocotb

from poblano_verif.bench import Bench
from poblano_verif.clock import PERIOD

COUNT = 60


def model(operation):
    """Return the outcome of an operation."""
    a, b = operation["a"], operation["b"]
    value = {
        "ADD": (a + b) & 0xFF,
        "SUBTRACT": (a - b) & 0xFF,
        "SWAP": (a >> 4) | (a << 4) & 0xFF,
    }[operation["op"]]
    return {"op": operation["op"], "value": value}


@cocotb.test(timeout_time=3000 * PERIOD, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.4])
async def random_operations(dut, pause):
    """Random operations, with and without pauses."""
    bench = Bench(dut, pause=pause, patience=200)
    await bench.start()
    layout = bench.dut.streams["i"].payload.layout
    operations = [layout.random(bench.random) for _ in range(COUNT)]
    bench.send("i", *operations)
    bench.expect("o", *map(model, operations))
    await bench.finish()
    assert len(bench.received["o"]) == COUNT


@cocotb.test(timeout_time=200 * PERIOD, timeout_unit="step")
async def one_addition(dut):
    """A small sum; right in every calculator that accepts anything."""
    bench = Bench(dut, patience=50)
    await bench.start()
    bench.send("i", {"op": "ADD", "a": 1, "b": 2})
    bench.expect("o", {"op": "ADD", "value": 3})
    await bench.finish()
