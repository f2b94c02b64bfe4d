"""Runs the benches of the registry side by side, and reports what failed and where to look."""

from __future__ import annotations

import os
import re
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from poblano_flow import icarus, verilator_runtime
from poblano_flow.build_cache import BuildError, build_root, file_error
from poblano_flow.emission import Emission, emit
from poblano_flow.failure_report import Seen, full_report, short_report
from poblano_flow.selection import BenchJob
from poblano_flow.sim_options import STEPS_PER_NS, SimOptions
from poblano_flow.sim_results import Case, write_merged
from poblano_flow.simulate import RunResult, build, run
from poblano_verif import registry

__all__ = ["JobResult", "Settings", "results_path", "run_all", "run_job"]


@dataclass(frozen=True)
class Settings:
    """How to run.

    Attributes
    ----------
    seed:
        Of everything random.
    waves:
        Whether every run writes a waveform, not only those that are repeated after a failure.
    jobs:
        Simulations at a time.
    debug:
        Whether testbenches can read and write every signal (Verilator only; slow).
    """

    seed: int = 1
    waves: bool = False
    jobs: int = 1
    debug: bool = False


@dataclass(frozen=True)
class JobResult:
    """What became of a job.

    Attributes
    ----------
    job:
        The job.
    cases:
        Its tests, at least one.
    reports:
        For every failed test, what a user needs to know, in lines.
    seconds:
        Wall time of the simulation.
    """

    job: BenchJob
    cases: tuple[Case, ...]
    reports: tuple[str, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether tests ran and none failed."""
        return not any(case.status == "failed" for case in self.cases)


def results_path() -> Path:
    """Return the JUnit XML file of a whole regression."""
    return build_root() / "test" / "results.xml"


def run_all(
    jobs: Sequence[BenchJob],
    settings: Settings,
    finished: Callable[[JobResult], None] = lambda _: None,
    started: Callable[[BenchJob], None] = lambda _: None,
) -> list[JobResult]:
    """Run jobs side by side; write the merged JUnit XML; return the results in order of the jobs.

    Ctrl-C ends the running simulations, which close their waveforms; what was done by then is
    written, and the rest counts as failed.

    Parameters
    ----------
    jobs, settings:
        What to run, and how.
    finished, started:
        Called, from several threads, with every job when it ends and when it begins.

    Raises
    ------
    PoblanoError
        If a simulator is not installed, a folder cannot be written, or the disk is full.
    """
    for simulator in {job.simulator for job in jobs}:
        (verilator_runtime if simulator == "verilator" else icarus).toolchain()
    cancelled = threading.Event()
    results: dict[BenchJob, JobResult] = {}

    def work(job: BenchJob) -> JobResult:
        started(job)
        return run_job(job, settings, cancelled)

    with ThreadPoolExecutor(settings.jobs) as pool:
        futures: dict[Future[JobResult], BenchJob] = {pool.submit(work, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                results[futures[future]] = future.result()
                finished(results[futures[future]])
        except BaseException as error:
            cancelled.set()
            pool.shutdown(cancel_futures=True)
            if not isinstance(error, KeyboardInterrupt):
                raise
    ordered = [results.get(job) or _not_run(job) for job in jobs]
    try:
        write_merged(results_path(), ((result.job.name, _short(result)) for result in ordered))
    except OSError as error:
        raise file_error(results_path(), error) from None
    return ordered


def _short(result: JobResult) -> Iterator[Case]:
    for case in result.cases:
        yield replace(case, name=case.name.removeprefix(f"{result.job.bench}."))


def _not_run(job: BenchJob) -> JobResult:
    case = Case(job.bench, "failed", "interrupted")
    return JobResult(job, (case,), (short_report(job.name, "interrupted"),), 0.0)


def run_job(
    job: BenchJob, settings: Settings, cancelled: threading.Event | None = None
) -> JobResult:
    """Build and run one job; run each failed test again with waves.

    Raises
    ------
    PoblanoError
        If a tool is missing, a folder cannot be written, or the disk is full. Everything else
        that goes wrong is a failed case.
    """
    try:
        result = _simulate(job, settings, job.tests, settings.waves, cancelled)
    except BuildError as error:
        return _broken(job, str(error), "")
    except (ValueError, TypeError, AttributeError, ImportError, SyntaxError) as error:
        return _broken(job, f"{type(error).__name__}: {error}", traceback.format_exc())
    reports = tuple(
        _report(job, case, settings, result, cancelled)
        for case in result.cases
        if case.status == "failed"
    )
    return JobResult(job, result.cases, reports, result.seconds)


def _broken(job: BenchJob, message: str, trace: str) -> JobResult:
    case = Case(job.bench, "failed", message, trace)
    return JobResult(job, (case,), (short_report(job.name, message),), 0.0)


def _simulate(
    job: BenchJob,
    settings: Settings,
    tests: Sequence[str],
    waves: bool,
    cancelled: threading.Event | None,
    wave_window: tuple[int, int] | None = None,
) -> RunResult:
    block, variant_name = registry.find(f"{job.block}:{job.variant}")
    variant = block.variants[variant_name]
    options = SimOptions(waves=waves, hierarchical=block.hierarchical, debug=settings.debug)
    compilers = max(1, (os.cpu_count() or 1) // settings.jobs)
    made = build(_emission(job), job.simulator, options=options, jobs=compilers)
    label = f"{job.block}-{job.variant}" + (f"-{job.bench}" if job.file else "")
    folder = build_root() / "test" / label / job.simulator / f"seed-{settings.seed}"
    if tuple(tests) != job.tests:
        folder /= re.sub(r"\W+", "_", tests[0].removeprefix(f"{job.bench}."))
    return run(
        made,
        job.bench,
        folder,
        seed=settings.seed,
        test_filter="^(" + "|".join(map(re.escape, tests)) + ")$",
        waves=waves,
        wave_window=wave_window,
        environment=variant.simulators[job.simulator],
        limit=variant.limit,
        cancelled=cancelled,
    )


_emissions: dict[tuple[str, str, bool], Emission] = {}
_emission_lock = threading.Lock()


def _emission(job: BenchJob) -> Emission:
    """Return the emission of a block; simulators share it, and one thread makes it."""
    key = (job.block, job.variant, bool(job.file))
    with _emission_lock:
        if key not in _emissions:
            block, variant = registry.find(f"{job.block}:{job.variant}")
            found = block.variants[variant]
            _emissions[key] = emit(found.make() if job.file else found.simulated())
        return _emissions[key]


def _report(
    job: BenchJob,
    case: Case,
    settings: Settings,
    first: RunResult,
    cancelled: threading.Event | None,
) -> str:
    """Say what failed, and where to look; make the waveform if the first run left none."""
    seen, note = Seen(case, first), ""
    wanted = cancelled is None or not cancelled.is_set()
    if first.waveform is None and case.name in job.tests and wanted:
        seen, note = _repeat(job, case, settings, cancelled)
    return full_report(job, case, settings.seed, first.log, seen, note, nightly=_nightly(job))


def _repeat(
    job: BenchJob, case: Case, settings: Settings, cancelled: threading.Event | None
) -> tuple[Seen, str]:
    """Run a failed test again with waves: alone, or if it passes then, among the others.

    Of a nightly test, which can be very long, the waveform holds the end.
    """
    window, note = None, ""
    if _nightly(job) and case.end_ns is not None and job.simulator == "verilator":
        length = (case.end_ns - case.start_ns) * STEPS_PER_NS
        window = (int(length * (1 - _NIGHTLY_SHARE)), int(2 * length))
        note = f"the waveform holds the last {_NIGHTLY_SHARE:.0%}, and its cycles count from there"
    seen = Seen.of(_simulate(job, settings, (case.name,), True, cancelled, window), case)
    if seen.case.status == "failed" or len(job.tests) == 1:
        return seen, note if seen.case.status == "failed" else "it passed when it was repeated"
    seen = Seen.of(_simulate(job, settings, job.tests, True, cancelled), case)
    if seen.case.status == "failed":
        return seen, "it passes alone; this waveform shows it among the others"
    return seen, "it passed when it was repeated"


def _nightly(job: BenchJob) -> bool:
    return registry.BLOCKS[job.block].variants[job.variant].nightly


_NIGHTLY_SHARE = 0.02
