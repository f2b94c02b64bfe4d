"""Runs matrix products on the simulated slice."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from poblano.config import Configuration
from poblano_flow.emission import emit
from poblano_flow.matmul_job import MatmulJob, MatmulOutcome
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import Build, RunResult, build, build_root, run
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
from poblano_sw.matmul import MatmulPlan, plan_matmul
from poblano_verif.tensor_driver import L1Image
from poblano_verif.tensor_on_l1 import TensorOnL1

__all__ = ["build_slice", "plan_job", "run_matmuls"]

BENCH = "poblano_verif.benches.matmul_jobs"

Progress = Callable[[str, int, int], None]
"""Called with the stage, and how many of its steps are done."""


UNTRACED = ("TensorRow", "TensorUnit", "OperandDecoder", "MxQuantiser", "MxEncoder", "MxCandidate")
"""Arithmetic that a waveform of a whole product leaves out; its operands and results are in it."""


def build_slice(configuration: Configuration, *, jobs: int = 2) -> Build:
    """Return a Verilator build of a slice, from the cache if it is there.

    It can record waveforms of everything but the insides of the arithmetic.
    """
    emission = emit(TensorOnL1(configuration=configuration))
    return build(emission, options=SimOptions(waves=True, untraced=UNTRACED), jobs=jobs)


def plan_job(configuration: Configuration, job: MatmulJob) -> MatmulPlan:
    """Place a job in L1.

    Raises
    ------
    CommandError
        If it does not fit.
    """
    return plan_matmul(
        configuration.slice,
        m=job.a.rows,
        n=job.b.rows,
        k=job.a.k,
        a=job.a.fmt,
        b=job.b.fmt,
        result={**MX_FORMATS, **WIDE_FORMATS}[job.result],
        rule=job.rule,
        axis=job.axis,
    )


def run_matmuls(
    configuration: Configuration,
    jobs: Sequence[MatmulJob],
    *,
    waves: bool = False,
    progress: Progress | None = None,
) -> list[MatmulOutcome]:
    """Run `jobs` one after the other on the simulated slice; return an outcome for each.

    Parameters
    ----------
    configuration:
        The chip; one of its slices is simulated under Verilator.
    jobs:
        The products; each must fit L1.
    waves:
        Record a waveform of the whole run.
    progress:
        Called with `build`, then with `simulate` after every job.

    Raises
    ------
    PoblanoError
        If a job does not fit, the build fails, or the run ends without all results.
    """
    tell = progress or (lambda _stage, _done, _total: None)
    plans = [plan_job(configuration, job) for job in jobs]
    tell("build", 0, 1)
    model = build_slice(configuration)
    tell("build", 1, 1)
    name = f"matmuls-{configuration.name}-{configuration.hash[:12]}" + ("-waves" if waves else "")
    folder = build_root() / "run" / name
    exchange = folder / "jobs"
    shutil.rmtree(exchange, ignore_errors=True)
    exchange.mkdir(parents=True)
    for number, (job, plan) in enumerate(zip(jobs, plans, strict=True)):
        _write_job(exchange / f"{number:04}.npz", job, plan)
    with _watched(exchange / "progress.jsonl", lambda done: tell("simulate", done, len(jobs))):
        result = run(
            model,
            BENCH,
            folder,
            seed=1,
            waves=waves,
            environment={"POBLANO_JOBS": str(exchange)},
            limit=3600.0,
        )
    _refuse_failure(result)
    return [
        _read_outcome(exchange / f"{number:04}.out.npz", plan, result.waveform)
        for number, plan in enumerate(plans)
    ]


def _write_job(path: Path, job: MatmulJob, plan: MatmulPlan) -> None:
    runs = list(plan.images(job.a, job.b))
    extents = [plan.arrays[name] for name in ("d_code", "d_scale") if name in plan.arrays]
    spans = [
        (e.address + step * e.stride, np.zeros(e.length, np.uint8))
        for e in extents
        for step in range(e.steps)
    ]
    l1 = plan.configuration.l1
    np.savez(
        path,
        word=np.frombuffer(plan.word, np.uint8),
        limit=2 * plan.phases.cycles + 1000,
        addresses=np.array([address for address, _ in runs]),
        lengths=np.array([len(data) for _, data in runs]),
        data=np.concatenate([data for _, data in runs]),
        read_lines=np.array(L1Image(l1.size, l1.line).lines(spans)),
    )


def _read_outcome(path: Path, plan: MatmulPlan, waveform: Path | None) -> MatmulOutcome:
    answer = np.load(path)
    l1 = plan.configuration.l1
    memory = np.zeros((l1.size // l1.line, l1.line), np.uint8)
    memory[answer["lines"]] = answer["data"]
    return MatmulOutcome(
        d=plan.read(memory.reshape(-1)),
        cycles=int(answer["cycles"]),
        load_cycles=int(answer["other_cycles"]),
        wall_seconds=float(answer["seconds"]),
        waveform=waveform,
    )


def _refuse_failure(result: RunResult) -> None:
    for case in result.cases:
        if case.status == "failed":
            raise PoblanoError(
                f"the simulation must run every product; got: {case.message} (log: {result.log})"
            )


@contextmanager
def _watched(path: Path, tell: Callable[[int], None]) -> Generator[None]:
    """Call `tell` with the number of lines in a growing file, now and then, until left."""
    ended = threading.Event()

    def lines() -> int:
        return len(path.read_text("utf-8").splitlines()) if path.exists() else 0

    def watch() -> None:
        while not ended.wait(0.2):
            tell(lines())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        tell(lines())
