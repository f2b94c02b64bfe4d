"""Runs programs on a simulated slice with ideal memories, and hands back what HBM then holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poblano.config import Configuration
from poblano_flow.build_cache import build_root
from poblano_flow.emission import emit
from poblano_flow.job_folder import refuse_failure, watched
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import Build, build, run
from poblano_golden.arrays import U8
from poblano_sw.program import Program
from poblano_verif.slice_system import SliceSystem

__all__ = ["MEMORY_BYTES", "Outcome", "ProgramJob", "Progress", "build_system", "run_programs"]

BENCH = "poblano_verif.benches.programs"

MEMORY_BYTES = 4 << 20
"""Bytes of the simulated memory of an HBM port, unless a program needs more."""

UNTRACED = (
    "TensorRow",
    "TensorUnit",
    "OperandDecoder",
    "MxQuantiser",
    "MxEncoder",
    "MxCandidate",
)
"""Arithmetic that a waveform of a whole product leaves out; its operands and results are in it."""

Progress = Callable[[str, int, int], None]
"""Called with the stage, and how many of its steps are done."""


@dataclass(frozen=True)
class ProgramJob:
    """A program, and the memory of HBM port 0.

    Parameters
    ----------
    name:
        For messages.
    program:
        What is run.
    images:
        HBM address and bytes of every run that must be there before.
    results:
        HBM addresses that are read back.
    limit:
        Cycles that it may take, the host's part included.
    """

    name: str
    program: Program
    images: Sequence[tuple[int, U8]]
    results: range
    limit: int


@dataclass(frozen=True)
class Outcome:
    """What a program did.

    Attributes
    ----------
    data:
        The bytes of `results`.
    cycles:
        From the first issue to the last response.
    spans:
        For each queue the cycles of issue and end of its commands, from the first issue.
    beats:
        Beats of HBM port 0 read and written.
    wall_seconds:
        Time of the simulation, memory's loading included.
    waveform:
        Of the whole run, if one was recorded.
    """

    data: U8
    cycles: int
    spans: dict[str, list[tuple[int, int]]]
    beats: tuple[int, int]
    wall_seconds: float
    waveform: Path | None


def build_system(
    configuration: Configuration, *, memory_bytes: int = MEMORY_BYTES, jobs: int = 2
) -> Build:
    """Return a Verilator build of a slice with its memories, from the cache if it is there.

    It can record waveforms of everything but the insides of the arithmetic.
    """
    emission = emit(SliceSystem(configuration=configuration, memory_bytes=memory_bytes))
    options = SimOptions(waves=True, untraced=UNTRACED)
    return build(emission, options=options, configuration=configuration, jobs=jobs)


def run_programs(
    configuration: Configuration,
    jobs: Sequence[ProgramJob],
    *,
    memory_bytes: int = MEMORY_BYTES,
    waves: bool = False,
    progress: Progress | None = None,
) -> list[Outcome]:
    """Run programs one after the other on a simulated slice; return an outcome for each.

    Parameters
    ----------
    configuration:
        The chip; one of its slices is simulated under Verilator, with an ideal memory.
    jobs:
        The programs.
    memory_bytes:
        Bytes of each HBM port's memory.
    waves:
        Record a waveform of the whole run.
    progress:
        Called with `build`, then with `simulate` after every job.

    Raises
    ------
    PoblanoError
        If the build fails, or the run ends without all results.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    tell("build", 0, 1)
    model = build_system(configuration, memory_bytes=memory_bytes)
    tell("build", 1, 1)
    name = f"programs-{configuration.name}-{configuration.hash[:12]}" + ("-waves" if waves else "")
    folder = build_root() / "run" / name
    exchange = folder / "jobs"
    shutil.rmtree(exchange, ignore_errors=True)
    exchange.mkdir(parents=True)
    for number, job in enumerate(jobs):
        _write_job(exchange / f"{number:04}.npz", job)
    with watched(exchange / "progress.jsonl", lambda done: tell("simulate", done, len(jobs))):
        result = run(
            model,
            BENCH,
            folder,
            seed=1,
            waves=waves,
            environment={"POBLANO_JOBS": str(exchange)},
            limit=3600.0,
        )
    refuse_failure(result)
    return [
        _read_outcome(exchange / f"{number:04}.out.npz", job, result.waveform)
        for number, job in enumerate(jobs)
    ]


def _write_job(path: Path, job: ProgramJob) -> None:
    arrays: dict[str, Any] = {
        f"words_{name}": np.frombuffer(b"".join(words), np.uint8)
        for name, words in job.program.queues.items()
    }
    arrays |= {f"data_{number}": data for number, (_, data) in enumerate(job.images)}
    np.savez(
        path,
        queues=np.array(list(job.program.queues)),
        ring_base=job.program.ring_base,
        ring_words=job.program.ring_words,
        limit=job.limit,
        results=np.array([job.results.start, len(job.results)]),
        addresses=np.array([address for address, _ in job.images]),
        **arrays,
    )


def _read_outcome(path: Path, job: ProgramJob, waveform: Path | None) -> Outcome:
    answer = np.load(path)
    read, written = (int(beats) for beats in answer["beats"][0])
    return Outcome(
        data=answer["data"],
        cycles=int(answer["cycles"]),
        spans={
            name: [(int(issue), int(done)) for issue, done in answer[f"spans_{name}"]]
            for name in job.program.queues
        },
        beats=(read, written),
        wall_seconds=float(answer["seconds"]),
        waveform=waveform,
    )
