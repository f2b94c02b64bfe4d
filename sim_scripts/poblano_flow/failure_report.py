"""What a user is told of a failed test: what went wrong, where to look, and how to repeat it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.selection import BenchJob
from poblano_flow.sim_results import Case
from poblano_flow.simulate import RunResult
from poblano_flow.waves import cycle_at

__all__ = ["Seen", "full_report", "short_report"]


@dataclass(frozen=True)
class Seen:
    """A test in the run whose waveform is shown."""

    case: Case
    run: RunResult

    @staticmethod
    def of(run: RunResult, case: Case) -> Seen:
        """Return how the same test ended in another run."""
        return Seen(next((again for again in run.cases if again.name == case.name), case), run)


def short_report(name: str, message: str) -> str:
    """Return the report of something that was never run."""
    return f"FAILED {name}\n{_indented(message)}"


def full_report(
    job: BenchJob, case: Case, seed: int, log: Path, seen: Seen, note: str, *, nightly: bool
) -> str:
    """Return the report of a failed test.

    Parameters
    ----------
    job, case, seed, log:
        What failed, and the log of its run.
    seen:
        The run with the waveform.
    note:
        What is special about that run.
    nightly:
        Whether the variant runs only on request.
    """
    known = case.name in job.tests
    name = job.test_name(case.name) if known else job.name
    entries = {"log": str(_near(log))}
    if note:
        entries["note"] = note
    waveform, signals = seen.run.waveform, seen.run.signals
    if waveform is not None and signals is not None:
        entries["waveform"], entries["signals"] = str(_near(waveform)), str(_near(signals))
        look = ["poblano", "waves", str(_near(waveform))]
        if seen.case.end_ns is not None:
            look += ["--around", str(cycle_at(waveform, seen.case.end_ns))]
        entries["look"] = shlex.join(look)
    elif seen.run.wave_fault:
        entries["waveform"] = seen.run.wave_fault
    repeat = ["poblano", "test"]
    if job.file:
        repeat += ["--bench", job.file, "--block", f"{job.block}:{job.variant}"]
    repeat += ["-k", name, "--seed", str(seed), "--waves"]
    if nightly:
        repeat.append("--nightly")
    entries["repeat"] = shlex.join(repeat)
    lines = [f"  {key:9} {text}" for key, text in entries.items()]
    return "\n".join([f"FAILED {name} (seed {seed})", _indented(case.message), *lines])


def _near(path: Path) -> Path:
    """Return a path from the current folder, if it is below it."""
    folder = Path.cwd()
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
