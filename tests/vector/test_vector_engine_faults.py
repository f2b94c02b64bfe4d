"""Faults planted in the vector engine, each of which its bench must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

ENGINE, LANE = "vector_engine:tiny/icarus", "vector_lane:default/icarus"

FAULTS = {
    "a sum's second accumulator is forgotten in short rows": (
        f"{ENGINE}/reductions_of_rows",
        "row_sum.py",
        "again | (place >= number)",
        "again | (place > number)",
    ),
    "a reference falls back with each beat": (
        f"{ENGINE}/softmax_in_two_passes",
        "power_sum.py",
        "reference.eq(Mux(of_beat > before, of_beat, before))",
        "reference.eq(of_beat)",
    ),
    "of equal numbers the last is the largest": (
        f"{ENGINE}/largest_of_rows",
        "row_maximum.py",
        "winner.key > best.key",
        "winner.key >= best.key",
    ),
    "a beat's second line is not joined": (
        f"{ENGINE}/random_passes",
        "stream_window.py",
        "step.takes & ~step.joins",
        "step.takes",
    ),
    "a line that came while time stood still is lost": (
        f"{ENGINE}/passes_that_wait",
        "landing.py",
        "Mux(fresh, self.read_data, kept)",
        "self.read_data",
    ),
    "a beat waits a cycle longer than the contract says": (
        f"{ENGINE}/blocks_along_rows",
        "write_debt.py",
        "debt <= DEBT_LIMIT",
        "debt < DEBT_LIMIT",
    ),
    "the reciprocal is that of p": (
        f"{ENGINE}/softmax_in_two_passes",
        "lanes.py",
        "reciprocal.x.eq(self.q)",
        "reciprocal.x.eq(self.p)",
    ),
    "select keeps the smaller": (
        f"{LANE}/every_choice",
        "operation.py",
        "~compare.less & ~compare.unordered",
        "(compare.less | compare.equal)",
    ),
    "a neighbour is not there": (
        f"{LANE}/every_choice",
        "lane.py",
        '"pair": self.neighbour',
        '"pair": self.p',
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name, tmp_path):
    selection, file, old, new = FAULTS[name]
    run = run_bench(tmp_path, selection, f"vector/{file}", old, new)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "1 failed" in run.stdout, run.stdout


def test_the_benches_pass_without_a_fault(tmp_path):
    run = run_bench(tmp_path, f"{ENGINE}/softmax_in_two_passes")
    assert run.returncode == 0, run.stdout + run.stderr
