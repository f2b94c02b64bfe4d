"""Runs the benches of the registry side by side, and reports what failed and where to look."""

from __future__ import annotations

import os
import re
import shlex
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from poblano_flow import icarus, verilator
from poblano_flow.build_cache import BuildError, build_root
from poblano_flow.emission import Emission, emit
from poblano_flow.selection import BenchJob
from poblano_flow.sim_options import SimOptions
from poblano_flow.sim_results import Case, write_merged
from poblano_flow.simulate import RunResult, build, run
from poblano_flow.waves import cycle_at
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
    """

    seed: int = 1
    waves: bool = False
    jobs: int = 1


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
        (verilator if simulator == "verilator" else icarus).toolchain()
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
    write_merged(results_path(), ((result.job.name, _short(result)) for result in ordered))
    return ordered


def _short(result: JobResult) -> Iterator[Case]:
    for case in result.cases:
        yield replace(case, name=case.name.removeprefix(f"{result.job.bench}."))


def _not_run(job: BenchJob) -> JobResult:
    case = Case(job.bench, "failed", "interrupted")
    return JobResult(job, (case,), (f"FAILED {job.name}\n  interrupted",), 0.0)


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
    return JobResult(job, (case,), (f"FAILED {job.name}\n{_indented(message)}",), 0.0)


def _simulate(
    job: BenchJob,
    settings: Settings,
    tests: Sequence[str],
    waves: bool,
    cancelled: threading.Event | None,
) -> RunResult:
    block, variant_name = registry.find(f"{job.block}:{job.variant}")
    variant = block.variants[variant_name]
    options = SimOptions(waves=waves, hierarchical=block.hierarchical)
    compilers = max(1, (os.cpu_count() or 1) // settings.jobs)
    made = build(_emission(job), job.simulator, options=options, jobs=compilers)
    label = f"{job.block}-{job.variant}" + (f"-{job.bench}" if job.alone else "")
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
        environment=variant.simulators[job.simulator],
        limit=variant.limit,
        cancelled=cancelled,
    )


_emissions: dict[tuple[str, str, bool], Emission] = {}
_emission_lock = threading.Lock()


def _emission(job: BenchJob) -> Emission:
    """Return the emission of a block; simulators share it, and one thread makes it."""
    key = (job.block, job.variant, job.alone)
    with _emission_lock:
        if key not in _emissions:
            block, variant = registry.find(f"{job.block}:{job.variant}")
            found = block.variants[variant]
            _emissions[key] = emit(found.make() if job.alone else found.simulated())
        return _emissions[key]


def _report(
    job: BenchJob,
    case: Case,
    settings: Settings,
    first: RunResult,
    cancelled: threading.Event | None,
) -> str:
    """Say what failed, and where to look; make the waveform if the first run left none."""
    name = job.test_name(case.name) if case.name in job.tests else job.name
    lines = [
        f"FAILED {name} (seed {settings.seed})",
        _indented(case.message),
        f"  log       {first.log}",
    ]
    again, note = first, ""
    wanted = cancelled is None or not cancelled.is_set()
    if first.waveform is None and case.name in job.tests and wanted:
        again = _simulate(job, settings, (case.name,), True, cancelled)
        repeated = next((c for c in again.cases if c.name == case.name), None)
        if repeated is not None and repeated.status == "passed":
            again = _simulate(job, settings, job.tests, True, cancelled)
            note = "it passes alone; this waveform shows it among the others"
            repeated = next((c for c in again.cases if c.name == case.name), None)
            if repeated is not None and repeated.status == "passed":
                note = "it passed when it was repeated"
        case = repeated or case
    if note:
        lines.append(f"  note      {note}")
    if again.waveform is not None and again.signals is not None:
        lines += [f"  waveform  {again.waveform}", f"  signals   {again.signals}"]
        around = "" if case.end_ns is None else f" --around {cycle_at(again.waveform, case.end_ns)}"
        lines.append(f"  look      poblano waves {shlex.quote(str(again.waveform))}{around}")
    elif again.wave_fault:
        lines.append(f"  waveform  {again.wave_fault}")
    lines.append(f"  repeat    poblano test -k {shlex.quote(name)} --seed {settings.seed} --waves")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
