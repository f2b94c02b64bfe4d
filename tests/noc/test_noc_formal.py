"""Proofs of the network, and faults that they must find."""

from __future__ import annotations

import pytest
from planted_fault import run_poblano

from poblano_flow.formal import PROOFS, prove, selected
from poblano_golden.errors import PoblanoError

QUICK = [proof for proof in PROOFS if "router" not in proof.name]


@pytest.mark.parametrize(
    "proof",
    [pytest.param(p, id=p.name, marks=[] if p in QUICK else [pytest.mark.nightly]) for p in PROOFS],
)
def test_it_is_proved(proof, tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path))
    outcome = prove(proof, limit=3600.0)
    assert outcome.passed, outcome.message


FAULTS = {
    "flits move forward although none leaves": (
        "noc_buffer",
        "flit_buffer.py",
        "with m.If(self.pop & filled_behind):",
        "with m.If(filled_behind):",
    ),
    "a credit counts twice": (
        "noc_credits",
        "output_channel.py",
        "room.eq(room + 1)",
        "room.eq(room + 2)",
    ),
    "a credit is lost when a flit goes": (
        "noc_credits_registered",
        "output_channel.py",
        "with m.If(self.taken & ~self.credit):",
        "with m.If(self.taken):",
    ),
    "the order of turns never changes": (
        "noc_turns",
        "round_robin.py",
        "with m.If(self.taken):",
        "with m.If(C(0)):",
    ),
    "two requests are granted": (
        "noc_turns",
        "round_robin.py",
        "wanted[index] & ~earlier",
        "wanted[index]",
    ),
    "south is taken for north": (
        "noc_router_west",
        "router.py",
        "Port.SOUTH: ~away_x & away_y & ~north",
        "Port.SOUTH: ~away_x & away_y & north",
    ),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(f, marks=[pytest.mark.nightly] if "router" in FAULTS[f][0] else [])
        for f in FAULTS
    ],
)
def test_the_proof_finds(fault, tmp_path):
    name, file, *texts = FAULTS[fault]
    done = run_poblano(tmp_path, ["prove", name], f"noc/{file}", *texts)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED  {name}: " in done.stdout
    assert "Assert failed" in done.stdout or "not proved" in done.stdout


def test_unknown_proof():
    with pytest.raises(PoblanoError, match=r"a proof must be one of noc_buffer, .*; got noc_x"):
        selected(["noc_x"])
