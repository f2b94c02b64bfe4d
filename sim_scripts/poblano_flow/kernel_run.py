"""Runs a kernel of the catalogue on the simulator, and on the RTL beside it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

from poblano.config import Configuration
from poblano_flow.run_programs import MEMORY_BYTES, Outcome, ProgramJob, Progress, run_programs
from poblano_golden.arrays import U8
from poblano_golden.errors import PoblanoError
from poblano_sw.kernels.workloads.workload import Workload
from poblano_sw.simulator import Memories, Trace, simulate

__all__ = ["KernelRun", "OnRtl", "parse_shape", "run_on_rtl", "run_on_simulator"]


_L1_SEED = 1


@dataclass(frozen=True)
class KernelRun:
    """What a kernel did on the simulator.

    Attributes
    ----------
    trace:
        Its commands.
    memory:
        HBM port 0 afterwards.
    wrong:
        What is not as the numpy model says.
    relative_error:
        Root mean square error against float64.
    seconds:
        Time of the simulation, memory's loading included.
    """

    work: Workload
    trace: Trace
    memory: U8
    wrong: tuple[str, ...]
    relative_error: float
    seconds: float

    @property
    def port_utilisation(self) -> float:
        """Unpadded bytes over what the HBM ports can read in the cycles."""
        hbm = self.work.builder.configuration.slice.hbm
        return self.work.port_bytes / (hbm.width * hbm.ports * self.trace.cycles)

    def busy(self) -> dict[str, float]:
        """Return for each queue in what part of the cycles a command was on its way."""
        found: dict[str, float] = {}
        for queue in self.work.program.queues:
            busy = end = 0
            for issued, done in self.trace.of_queue(queue):
                busy += max(0, done - max(issued, end))
                end = max(end, done)
            found[queue] = busy / max(1, self.trace.cycles)
        return found

    def by_line(self) -> list[tuple[str, str, int, int]]:
        """Return source line, queue, commands and cycles from issue to end, longest first."""
        lines = self.work.builder.lines()
        counts: Counter[tuple[str, str]] = Counter()
        cycles: Counter[tuple[str, str]] = Counter()
        for span in self.trace.spans:
            key = (lines[span.queue, span.number], span.queue)
            counts[key] += 1
            cycles[key] += span.done - span.issued
        return [(*key, counts[key], total) for key, total in cycles.most_common()]


@dataclass(frozen=True)
class OnRtl:
    """A kernel on the RTL beside the simulator.

    Attributes
    ----------
    outcome:
        What the RTL did.
    different:
        Bytes of HBM that differ from the simulator's.
    cycle_error:
        The simulator's cycles over the RTL's, less 1.
    speed:
        How many times faster the simulator was.
    """

    outcome: Outcome
    different: int
    cycle_error: float
    speed: float


def run_on_simulator(work: Workload) -> KernelRun:
    """Run a kernel on the simulator and compare it with the numpy model.

    L1 holds random bytes before: a kernel that reads what nothing wrote is wrong.
    """
    configuration = work.builder.configuration
    program, memory = work.program, work.memory()
    began = time.perf_counter()
    memories = Memories(configuration.slice, len(memory))
    memories.hbm[0][:] = memory
    memories.l1[:] = np.random.default_rng(_L1_SEED).integers(0, 256, len(memories.l1), np.uint8)
    trace = simulate(configuration, program, memories)
    seconds = time.perf_counter() - began
    after = memories.hbm[0]
    return KernelRun(
        work, trace, after, tuple(work.wrong(after)), work.relative_error(after), seconds
    )


def run_on_rtl(
    configuration: Configuration, runs: list[KernelRun], progress: Progress | None = None
) -> list[OnRtl]:
    """Run kernels, which ran on the simulator, on the RTL under Verilator with an ideal memory.

    Raises
    ------
    PoblanoError
        If the run ends without all results.
    """
    size = MEMORY_BYTES
    while size < max(len(run.memory) for run in runs):
        size *= 2
    jobs: list[ProgramJob] = []
    for number, run in enumerate(runs):
        memory = run.work.memory()
        jobs.append(
            ProgramJob(
                f"kernel {number}",
                run.work.program,
                [(0, memory)],
                range(len(memory)),
                100_000 + 4 * run.trace.cycles,
            )
        )
    outcomes = run_programs(configuration, jobs, memory_bytes=size, progress=progress)
    return [
        OnRtl(
            outcome,
            int(np.count_nonzero(outcome.data != run.memory)),
            run.trace.cycles / outcome.cycles - 1,
            outcome.wall_seconds / run.seconds,
        )
        for run, outcome in zip(runs, outcomes, strict=True)
    ]


def parse_shape(texts: list[str]) -> dict[str, int]:
    """Return the sizes that options give as `NAME=N`."""
    shape: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and value.isdecimal()):
            raise PoblanoError(f"--shape takes NAME=N; got {text!r}")
        shape[name] = int(value)
    return shape
