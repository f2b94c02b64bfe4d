"""Faults planted in the DMA engine, each of which its benches must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

LOAD, STORE = "dma_load:tiny/verilator", "dma_store:tiny/verilator"

FAULTS = {
    "a row's end is not seen to cross 4 KiB": (
        LOAD,
        "burst_splitter.py",
        "last.eq(row.length <= room)",
        "last.eq(row.length <= room + 1)",
    ),
    "bursts end by bit 12 of the address": (
        LOAD,
        "burst_splitter.py",
        "self.window - row.hbm[: self.window.bit_length() - 1]",
        "self.window - (row.hbm[: self.window.bit_length() - 1] & 0x7FF)",
    ),
    "a second plane starts at the first": (
        LOAD,
        "row_walker.py",
        "next_plane.hbm.eq(plane.hbm + job.hbm_plane_stride)",
        "next_plane.hbm.eq(plane.hbm)",
    ),
    "a new job keeps the old plane": (
        STORE,
        "row_walker.py",
        "for target in (row, plane)",
        "for target in (row,)",
    ),
    "an index has 24 bits": (
        LOAD,
        "row_walker.py",
        "Mux(job.indexed, reader.index, 0)",
        "Mux(job.indexed, reader.index[:24], 0)",
    ),
    "a line of indices is kept too long": (
        STORE,
        "index_reader.py",
        "with m.If(position[:in_line].all()):",
        "with m.If(C(0)):",
    ),
    "the last byte of HBM is outside": (
        LOAD,
        "row_walker.py",
        "leaves_hbm.eq(hbm_end > self",
        "leaves_hbm.eq(hbm_end >= self",
    ),
    "the carry out of an HBM address is lost": (
        STORE,
        "row_walker.py",
        "hbm.eq(base.hbm + distance)",
        "hbm.eq((base.hbm + distance)[:HBM_ADDRESS_WIDTH])",
    ),
    "indices outside L1 stop the rows before them": (
        LOAD,
        "row_walker.py",
        "self.reader.outside & drained & self.rows.ready",
        "self.reader.outside",
    ),
    "bytes for the next line are lost": (
        LOAD,
        "lander.py",
        "beat.rest.eq(Mux(in_first, second, 0) & good)",
        "beat.rest.eq(0)",
    ),
    "lines of two commands are merged": (
        LOAD,
        "lander.py",
        "(held.index == beat.index) & ~held.last",
        "held.index == beat.index",
    ),
    "strobes of a written line stay": (
        LOAD,
        "lander.py",
        "m.d.sync += [held_valid.eq(0), held.strobe.eq(0)]",
        "m.d.sync += [held_valid.eq(0)]",
    ),
    "a beat with an error is written": (
        LOAD,
        "lander.py",
        "~self.beats.payload.error.replicate(self.line)",
        "C(1).replicate(self.line)",
    ),
    "bytes before a fault stay in the engine": (
        LOAD,
        "load.py",
        "lander.flush.eq(halted & (in_flight == 0))",
        "lander.flush.eq(0)",
    ),
    "one burst too many is in flight": (
        "dma_load:narrow/verilator",
        "load.py",
        "(in_flight != outstanding)",
        "(in_flight != outstanding + 1)",
    ),
    "a fault takes back an address": (
        LOAD,
        "load.py",
        "with m.If(axi.arready):",
        "with m.If(axi.arready | halted):",
    ),
    "an engine with a fault goes on": (
        "dma_store:narrow/verilator",
        "store.py",
        "& answers.w_rdy & ~halted",
        "& answers.w_rdy",
    ),
    "a move is done before its response": (
        STORE,
        "store.py",
        "ends.eq(axi.bvalid & answers.r_rdy",
        "ends.eq(axi.wvalid & axi.wlast & answers.r_rdy",
    ),
    "stalled data are dropped": (
        STORE,
        "beat_reader.py",
        "room.eq(used != BEAT_QUEUE_DEPTH)",
        "room.eq(1)",
    ),
    "a command keeps the line of the one before": (
        STORE,
        "beat_reader.py",
        "with m.If(self.bursts.valid & new.first):",
        "with m.If(C(0)):",
    ),
    "a beat in one held line is cut from the bus of L1": (
        STORE,
        "beat_reader.py",
        "Mux(stage.reads, self.memory_data, held_data)",
        "self.memory_data",
    ),
    "no last beat but the first burst's": (
        STORE,
        "beat_reader.py",
        "beat.last.eq(stage.last)",
        "beat.last.eq(stage.last & stage.low.any())",
    ),
    "L1's silence is the memory's": (
        STORE,
        "store.py",
        "answers.r_rdy & ~bursts.r_rdy & ~reader.busy & ~axi.awvalid",
        "answers.r_rdy",
    ),
    "patience of one cycle more for every wait": (
        LOAD,
        "watch.py",
        "with m.If(~self.waiting):",
        "with m.If(C(0)):",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("job", [LOAD, STORE])
def test_the_bench_passes_without_a_fault(job, tmp_path):
    done = run_bench(tmp_path, job)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path):
    job, file, *texts = FAULTS[fault]
    done = run_bench(tmp_path, job, f"dma/{file}", *texts)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {job}" in done.stdout
