"""The demonstration from end to end: model, policy, hardware, report."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from rich.progress import Progress, TaskID

from poblano.config import Configuration
from poblano_flow.demo import jobs, judge, prepare
from poblano_flow.demo_report import AreaRow, Links, Report, write_report
from poblano_flow.matmul_job import MatmulJob, StreamedOutcome
from poblano_golden.errors import PoblanoError
from poblano_sw.model.llama import LINEARS, LlamaModel
from poblano_sw.model.policy import Policy

__all__ = ["Backend", "Request", "RunProducts", "run_demo"]

PAGE = "report.html"
_WAVED = "decode.attn_k"
"""The product whose waveform is kept: the smallest."""


class RunProducts(Protocol):
    """Runs jobs on the simulated slice and returns an outcome for each, in order.

    `progress` is told a stage, how much of it is done, and how much there is.
    """

    def __call__(  # noqa: D102 (the class says it)
        self,
        configuration: Configuration,
        jobs: Sequence[MatmulJob],
        *,
        waves: bool,
        progress: Callable[[str, int, int], None],
    ) -> list[StreamedOutcome]: ...


@dataclass(frozen=True)
class Backend:
    """What the demonstration stands on.

    Attributes
    ----------
    run_products:
        The simulated hardware.
    write_verilog:
        Writes Verilog and manifest of a configuration to a folder.
    estimate_area:
        First estimates of the unit and the engine.
    """

    run_products: RunProducts
    write_verilog: Callable[[Configuration, Path], None]
    estimate_area: Callable[[Configuration], Sequence[AreaRow]]


@dataclass(frozen=True)
class Request:
    """What to show: a layer's number, a prompt, a policy, a machine, and where the report goes.

    `waves` asks for a waveform of one product too.
    """

    prompt: str
    layer: int
    policy: Policy
    configuration: Configuration
    folder: Path
    command: str
    waves: bool = True


def run_demo(
    request: Request, model: LlamaModel, backend: Backend, progress: Progress | None = None
) -> Report:
    """Run the demonstration and write its report, `report.html` in the request's folder.

    Parameters
    ----------
    request, model, backend:
        What to run, and on what.
    progress:
        Shows how far the run is; none by default.

    Raises
    ------
    PoblanoError
        The prompt, the layer or the policy does not fit the model, or the engine.
    OSError
        The folder cannot be written.
    """
    configuration, folder = request.configuration, request.folder
    _check_policy(request.policy, model, configuration)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / PAGE
    page.unlink(missing_ok=True)
    steps = _Steps(progress or Progress(disable=True))
    with steps.step(f"activations of layer {request.layer}, in float"):
        prompt = model.tokenizer.encode(request.prompt)
        layer = prepare(model, request.policy, prompt, request.layer)
    work = list(jobs(configuration, layer.products))
    with steps.step("Verilog"):
        backend.write_verilog(configuration, folder / "rtl")
    started = time.monotonic()
    outcomes = backend.run_products(configuration, work, waves=False, progress=steps.stage)
    elapsed = time.monotonic() - started
    by_name = {job.name: outcome for job, outcome in zip(work, outcomes, strict=True)}
    waveform = _waveform(request, backend, work, by_name, steps) if request.waves else None
    with steps.step("area and depth"):
        area = backend.estimate_area(configuration)
    report = Report(
        layer=layer,
        policy=request.policy,
        configuration=configuration,
        verdicts=[judge(configuration, product, by_name) for product in layer.products],
        build_seconds=max(0.0, elapsed - sum(outcome.wall_seconds for outcome in outcomes)),
        area=area,
        links=Links("rtl/", "rtl/manifest.json", waveform, _WAVED),
        command=request.command,
    )
    write_report(report, page)
    return report


def _check_policy(policy: Policy, model: LlamaModel, configuration: Configuration) -> None:
    layers = range(model.configuration.layers)
    tensors = [f"blk.{layer}.{linear}" for layer in layers for linear in LINEARS]
    policy.check(tensors, configuration.slice.tensor.formats)


def _waveform(
    request: Request,
    backend: Backend,
    work: Sequence[MatmulJob],
    outcomes: Mapping[str, StreamedOutcome],
    steps: _Steps,
) -> str | None:
    """Run one small job again with waves; return the waveform's path from the report's folder."""
    job = next(job for job in work if job.name.startswith(_WAVED))
    (outcome,) = backend.run_products(
        request.configuration, [job], waves=True, progress=steps.stage
    )
    first = outcomes[job.name]
    if outcome.cycles != first.cycles or not np.array_equal(
        np.asarray(outcome.d).view(np.uint32), np.asarray(first.d).view(np.uint32)
    ):
        raise PoblanoError(f"{job.name}: a run with waves must repeat the run without; it did not")
    if outcome.waveform is None:
        return None
    return os.path.relpath(outcome.waveform, request.folder)


class _Steps:
    """A line of progress for each step of the run."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    @contextlib.contextmanager
    def step(self, name: str) -> Generator[None]:
        """Show a step whose length is unknown."""
        task = self._progress.add_task(name, total=None)
        yield
        self._progress.update(task, total=1, completed=1)

    def stage(self, name: str, done: int, total: int) -> None:
        """Show how much of a step is done."""
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.update(self._tasks[name], completed=done, total=total)
