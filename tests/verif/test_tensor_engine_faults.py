"""Faults planted in the tensor engine, each of which its bench must find."""

import pytest
from planted_fault import run_bench

ENGINE = "tensor_engine:tiny/verilator"

FAULTS = {
    "sums start from the tile before": (
        "tensor/sequencer.py",
        "first_block.eq(blocks_left == job.last_block)",
        "first_block.eq(0)",
    ),
    "the tail of K is not masked": (
        "tensor/sequencer.py",
        "Mux(blocks_left == 0, job.tail, 32)",
        "32",
    ),
    "a sub-tile is left out": (
        "tensor/sequencer.py",
        "covered <= side.rows * (index + 1)",
        "covered <= side.rows * (index + 1) + 1",
    ),
    "a bank is filled before it is drained": (
        "tensor/sequencer.py",
        "~first_block | (undrained != 2)",
        "C(1)",
    ),
    "a panel is overwritten while it is read": (
        "tensor/engine.py",
        "fetch.panel_free.eq(~full | sequencer.panel_done)",
        "fetch.panel_free.eq(3)",
    ),
    "panels are counted anew for every command": (
        "tensor/fetch.py",
        "m.d.sync += busy.eq(1)",
        "m.d.sync += [busy.eq(1), panel.eq(0)]",
    ),
    "a command begins while another is in the array": (
        "tensor/engine.py",
        "fetched & sequencer.idle & (in_array == 0) & ~computed",
        "fetched & sequencer.idle & ~computed",
    ),
    "the drain takes a job before the last results left": (
        "tensor/engine.py",
        "empty.eq(drain.done & results.empty)",
        "empty.eq(drain.done)",
    ),
    "a job is overwritten before the drain took it": (
        "tensor/engine.py",
        "(in_array == 0) & ~computed",
        "(in_array == 0)",
    ),
    "results past N are written": (
        "tensor/drain.py",
        "valid.eq(Mux(left < cols, left, cols))",
        "valid.eq(cols)",
    ),
    "a tile's columns step by one block": (
        "tensor/drain.py",
        "job.d.scale_stride * blocks",
        "job.d.scale_stride",
    ),
    "what is past N joins the last block": (
        "tensor/block_gatherer.py",
        "self.takes & (self.count > index)",
        "self.takes",
    ),
    "axis m is axis n": ("tensor/decode.py", "swap = fields.axis", "swap = C(0)"),
    "the second half of an entry is the first": (
        "tensor/panel.py",
        "Mux(half, read.data[4 * side.entry :], read.data)",
        "read.data[: 4 * side.entry]",
    ),
    "the held line is not joined": (
        "l1/line_reader.py",
        "Mux(stage.joins, held_data, self.memory_data)",
        "self.memory_data",
    ),
    "a straddling run loses its end": (
        "l1/line_writer.py",
        "straddles.eq(end[offset_width:] != first)",
        "straddles.eq(0)",
    ),
    "a read outside L1 is not told": (
        "l1/line_reader.py",
        "self.outside.eq(reads & (line >= self.lines))",
        "self.outside.eq(0)",
    ),
}


@pytest.mark.nightly
def test_the_bench_passes_without_a_fault(tmp_path):
    done = run_bench(tmp_path, ENGINE, POBLANO_RANDOM_PRODUCTS="20")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path):
    done = run_bench(tmp_path, ENGINE, *FAULTS[fault], POBLANO_RANDOM_PRODUCTS="20")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {ENGINE}" in done.stdout
