"""Runs matrix products on a simulated slice: operands and results in HBM, engines in parallel."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from poblano.config import Configuration
from poblano_flow.build_cache import build_root
from poblano_flow.emission import emit
from poblano_flow.job_folder import refuse_failure, watched
from poblano_flow.matmul_job import MatmulJob, StreamedOutcome
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import Build, build, run
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
from poblano_sw.chunking import plan_streamed
from poblano_sw.program import Program
from poblano_sw.streamed_matmul import Product, StreamedMatmul
from poblano_verif.slice_system import SliceSystem

__all__ = ["MEMORY_BYTES", "build_system", "plan_job", "program_of", "run_streamed"]

BENCH = "poblano_verif.benches.programs"

MEMORY_BYTES = 4 << 20
"""Bytes of the simulated memory of an HBM port."""

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


def build_system(configuration: Configuration, *, jobs: int = 2) -> Build:
    """Return a Verilator build of a slice with its memories, from the cache if it is there.

    It can record waveforms of everything but the insides of the arithmetic.
    """
    emission = emit(SliceSystem(configuration=configuration, memory_bytes=MEMORY_BYTES))
    options = SimOptions(waves=True, untraced=UNTRACED)
    return build(emission, options=options, configuration=configuration, jobs=jobs)


def _ring_words(configuration: Configuration) -> int:
    return 64 if configuration.slice.l1.size >= 1 << 18 else 16


def _ring_base(configuration: Configuration) -> int:
    """Return where the rings of the three queues begin: at the end of L1."""
    return configuration.slice.l1.size - 3 * 64 * _ring_words(configuration)


def plan_job(configuration: Configuration, job: MatmulJob) -> StreamedMatmul:
    """Cut a job into chunks and place it in L1 and HBM.

    Raises
    ------
    CommandError
        If it does not fit L1.
    PoblanoError
        If it does not fit the simulated memory.
    """
    result = {**MX_FORMATS, **WIDE_FORMATS}[job.result]
    product = Product(job.a.rows, job.b.rows, job.a.k, job.a.fmt, job.b.fmt, result, job.rule)
    plan = plan_streamed(configuration.slice, product, l1_size=_ring_base(configuration))
    if plan.hbm_end > MEMORY_BYTES:
        raise PoblanoError(
            f"{job.name}: a product must fit the {MEMORY_BYTES} bytes of the simulated memory; "
            f"it takes {plan.hbm_end}"
        )
    return plan


def program_of(configuration: Configuration, plan: StreamedMatmul) -> Program:
    """Return the program that runs a plan."""
    return Program(
        plan.queues, ring_base=_ring_base(configuration), ring_words=_ring_words(configuration)
    )


def run_streamed(
    configuration: Configuration,
    jobs: Sequence[MatmulJob],
    *,
    waves: bool = False,
    progress: Progress | None = None,
) -> list[StreamedOutcome]:
    """Run `jobs` one after the other on a simulated slice; return an outcome for each.

    Parameters
    ----------
    configuration:
        The chip; one of its slices is simulated under Verilator, with an ideal memory.
    jobs:
        The products; axis m is not supported.
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
    model = build_system(configuration)
    tell("build", 1, 1)
    name = f"programs-{configuration.name}-{configuration.hash[:12]}" + ("-waves" if waves else "")
    folder = build_root() / "run" / name
    exchange = folder / "jobs"
    shutil.rmtree(exchange, ignore_errors=True)
    exchange.mkdir(parents=True)
    for number, (job, plan) in enumerate(zip(jobs, plans, strict=True)):
        _write_job(exchange / f"{number:04}.npz", configuration, job, plan)
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
        _read_outcome(exchange / f"{number:04}.out.npz", plan, result.waveform)
        for number, plan in enumerate(plans)
    ]


def _write_job(
    path: Path, configuration: Configuration, job: MatmulJob, plan: StreamedMatmul
) -> None:
    program = program_of(configuration, plan)
    images = list(plan.images(job.a, job.b))
    macs = job.a.rows * job.b.rows * job.a.k
    arrays: dict[str, Any] = {
        f"words_{name}": np.frombuffer(b"".join(words), np.uint8)
        for name, words in program.queues.items()
    }
    arrays |= {f"data_{number}": data for number, (_, data) in enumerate(images)}
    np.savez(
        path,
        queues=np.array(list(program.queues)),
        ring_base=program.ring_base,
        ring_words=program.ring_words,
        limit=100_000 + macs + 10 * plan.hbm_end,
        results=np.array([plan.hbm_d, plan.hbm_end - plan.hbm_d]),
        addresses=np.array([address for address, _ in images]),
        **arrays,
    )


def _read_outcome(path: Path, plan: StreamedMatmul, waveform: Path | None) -> StreamedOutcome:
    answer = np.load(path)
    read, written = (int(beats) for beats in answer["beats"][0])
    return StreamedOutcome(
        d=plan.read(answer["data"]),
        cycles=int(answer["cycles"]),
        spans={
            name: [(int(issue), int(done)) for issue, done in answer[f"spans_{name}"]]
            for name in plan.queues
        },
        beats=(read, written),
        wall_seconds=float(answer["seconds"]),
        waveform=waveform,
    )
