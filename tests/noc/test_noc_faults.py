"""Faults planted in the network on chip, each of which its benches must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

MESH, ROUTER = "noc_mesh:two_by_two/verilator", "noc_router:default/verilator"

FAULTS = {
    "a flit right behind a tail is lost": (
        ROUTER,
        "output_channel.py",
        "m.d.sync += may.eq(Mux(is_last, ~C(0, self.sources), turn.grant))",
        "m.d.sync += may.eq(turn.grant)",
    ),
    "a flit that waits gives a credit every cycle": (
        ROUTER,
        "router.py",
        "incoming.credit[channel].eq(pop)",
        "incoming.credit[channel].eq(buffer.valid)",
    ),
    "packets mix": (
        ROUTER,
        "output_channel.py",
        "asks.eq(self.requests & may)",
        "asks.eq(self.requests)",
    ),
    "a credit is lost when a flit goes": (
        MESH,
        "output_channel.py",
        "with m.If(self.taken & ~self.credit):",
        "with m.If(self.taken):",
    ),
    "the direction comes from comparing indices": (
        "noc_mesh:torus/verilator",
        "router.py",
        'if self.network.topology == "mesh":',
        "if self.network:",
    ),
    "a flit that crosses the dateline keeps its class": (
        "noc_mesh:torus/verilator",
        "router.py",
        "return wants & (crosses if is_upper else ~crosses)",
        "return None if is_upper else wants",
    ),
    "the last node of the row is outside": (
        "noc_mesh:registered/verilator",
        "terminal.py",
        "at < side for at",
        "at + 1 < side for at",
    ),
}

USUAL = ("a flit right behind a tail is lost", "a flit that waits gives a credit every cycle")
"""The faults that every run plants; the others are nightly."""


@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, marks=[] if f in USUAL else [pytest.mark.nightly]) for f in FAULTS],
)
def test_the_bench_finds(fault, tmp_path):
    job, file, *texts = FAULTS[fault]
    done = run_bench(tmp_path, job, f"noc/{file}", *texts)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {job}" in done.stdout
