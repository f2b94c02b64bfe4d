"""Runs matrix products on a simulated tensor engine whose L1 holds operands and results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from poblano.config import Configuration
from poblano_flow.emission import emit
from poblano_flow.job_folder import refuse_failure, watched
from poblano_flow.matmul_job import MatmulJob, MatmulOutcome
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import Build, build, build_root, run
from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
from poblano_sw.matmul import MatmulPlan, plan_matmul
from poblano_verif.tensor_driver import L1Image
from poblano_verif.tensor_on_l1 import TensorOnL1

__all__ = ["build_engine", "plan_job", "run_matmuls"]

BENCH = "poblano_verif.benches.matmul_jobs"

Progress = Callable[[str, int, int], None]
"""Called with the stage, and how many of its steps are done."""


def build_engine(configuration: Configuration, *, jobs: int = 2) -> Build:
    """Return a Verilator build of a tensor engine on its L1, from the cache if it is there."""
    emission = emit(TensorOnL1(configuration=configuration))
    return build(emission, options=SimOptions(), jobs=jobs)


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
    progress: Progress | None = None,
) -> list[MatmulOutcome]:
    """Run `jobs` one after the other on a simulated engine; return an outcome for each.

    Parameters
    ----------
    configuration:
        The chip; one of its engines is simulated under Verilator.
    jobs:
        The products; each must fit L1.
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
    model = build_engine(configuration)
    tell("build", 1, 1)
    name = f"matmuls-{configuration.name}-{configuration.hash[:12]}"
    folder = build_root() / "run" / name
    exchange = folder / "jobs"
    shutil.rmtree(exchange, ignore_errors=True)
    exchange.mkdir(parents=True)
    for number, (job, plan) in enumerate(zip(jobs, plans, strict=True)):
        _write_job(exchange / f"{number:04}.npz", job, plan)
    with watched(exchange / "progress.jsonl", lambda done: tell("simulate", done, len(jobs))):
        result = run(
            model,
            BENCH,
            folder,
            seed=1,
            environment={"POBLANO_JOBS": str(exchange)},
            limit=3600.0,
        )
    refuse_failure(result)
    return [
        _read_outcome(exchange / f"{number:04}.out.npz", plan) for number, plan in enumerate(plans)
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


def _read_outcome(path: Path, plan: MatmulPlan) -> MatmulOutcome:
    answer = np.load(path)
    l1 = plan.configuration.l1
    memory = np.zeros((l1.size // l1.line, l1.line), np.uint8)
    memory[answer["lines"]] = answer["data"]
    return MatmulOutcome(
        d=plan.read(memory.reshape(-1)),
        cycles=int(answer["cycles"]),
        load_cycles=int(answer["other_cycles"]),
        wall_seconds=float(answer["seconds"]),
    )
