"""Evaluation of a sweep's points in local processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from poblano_flow.build_cache import empty_build_folder
from poblano_flow.sweep.evaluate import Outcome, basis_of, evaluate
from poblano_flow.sweep.search import Point, strategy
from poblano_flow.sweep.spec import Sweep

__all__ = ["ATTEMPTS", "repeat", "run_sweep"]

ATTEMPTS = 2
"""Times that a point is begun whose worker process ends without an answer."""


def run_sweep(
    sweep: Sweep,
    *,
    jobs: int,
    progress: Callable[[Outcome, int], None] | None = None,
) -> list[Outcome]:
    """Evaluate every point of a sweep; return the outcomes in the search's order.

    A sweep that was ended can be run again: what is done is taken from the cache.

    Parameters
    ----------
    sweep:
        What to do.
    jobs:
        Processes.
    progress:
        Called after every point, with its outcome and how many there will be.

    Raises
    ------
    PoblanoError
        If the library cannot be used or there is no point.
    """
    basis = basis_of(sweep)
    search = strategy(sweep, jobs)
    outcomes: list[Outcome] = []
    with _Workers(jobs) as workers:
        for batch in search.batches():
            found = workers.evaluate(
                sweep, batch, basis, lambda done: progress and progress(done, search.total)
            )
            search.tell(found)
            outcomes += found
    return outcomes


def repeat(
    sweep: Sweep, outcomes: Sequence[Outcome], *, jobs: int
) -> list[tuple[Outcome, Outcome]]:
    """Evaluate points again with nothing kept; return those whose figures differ, old and new."""
    basis = basis_of(sweep)
    with empty_build_folder(), _Workers(jobs) as workers:
        points = [outcome.point for outcome in outcomes]
        again = workers.evaluate(sweep, points, basis, lambda _: None)
    return [
        (old, new)
        for old, new in zip(outcomes, again, strict=True)
        if (old.figures, old.error) != (new.figures, new.error)
    ]


class _Workers:
    """A pool of processes that is made anew when one of them dies."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool = self._new()

    def __enter__(self) -> _Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._jobs, multiprocessing.get_context("spawn"))

    def evaluate(
        self,
        sweep: Sweep,
        points: Sequence[Point],
        basis: str,
        done: Callable[[Outcome], object],
    ) -> list[Outcome]:
        """Return the outcomes of points; one that keeps ending its worker has failed."""
        outcomes: dict[int, Outcome] = {}
        begun = dict.fromkeys(range(len(points)), 0)
        while len(outcomes) < len(points):
            left = [i for i in range(len(points)) if i not in outcomes]
            suspects = [i for i in left if begun[i]]
            for indices in [[i] for i in suspects] or [left]:
                if not self._batch(sweep, points, basis, indices, outcomes, done):
                    self._pool = self._new()
                    for index in indices:
                        begun[index] += index not in outcomes
            for index in left:
                if index not in outcomes and begun[index] >= ATTEMPTS:
                    error = f"its worker process ended {ATTEMPTS} times without an answer"
                    outcomes[index] = Outcome(dict(points[index]), {}, error, False)
                    done(outcomes[index])
        return [outcomes[index] for index in range(len(points))]

    def _batch(
        self,
        sweep: Sweep,
        points: Sequence[Point],
        basis: str,
        indices: Sequence[int],
        outcomes: dict[int, Outcome],
        done: Callable[[Outcome], object],
    ) -> bool:
        """Evaluate some points; return whether every worker lived."""
        running: dict[Future[Outcome], int] = {}
        try:
            for i in indices:
                running[self._pool.submit(evaluate, sweep, dict(points[i]), basis)] = i
            for future in as_completed(running):
                outcomes[running[future]] = future.result()
                done(outcomes[running[future]])
        except BrokenProcessPool:
            return False
        return True
