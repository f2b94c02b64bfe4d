"""Runs matrix products on a simulated slice: operands and results in HBM, engines in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from poblano.config import Configuration
from poblano_flow.matmul_job import MatmulJob, StreamedOutcome
from poblano_flow.run_programs import MEMORY_BYTES, ProgramJob, Progress, run_programs
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
from poblano_sw.chunking import plan_streamed
from poblano_sw.program import Program
from poblano_sw.streamed_matmul import Product, StreamedMatmul

__all__ = ["plan_job", "program_of", "run_streamed"]


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
    plans = [plan_job(configuration, job) for job in jobs]
    outcomes = run_programs(
        configuration,
        [
            ProgramJob(
                job.name,
                program_of(configuration, plan),
                list(plan.images(job.a, job.b)),
                range(plan.hbm_d, plan.hbm_end),
                100_000 + job.a.rows * job.b.rows * job.a.k + 10 * plan.hbm_end,
            )
            for job, plan in zip(jobs, plans, strict=True)
        ],
        waves=waves,
        progress=progress,
    )
    return [
        StreamedOutcome(
            d=plan.read(outcome.data),
            cycles=outcome.cycles,
            spans=outcome.spans,
            beats=outcome.beats,
            wall_seconds=outcome.wall_seconds,
            waveform=outcome.waveform,
        )
        for plan, outcome in zip(plans, outcomes, strict=True)
    ]
