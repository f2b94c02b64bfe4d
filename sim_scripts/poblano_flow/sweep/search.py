"""Which points a sweep evaluates: a grid, a random sample, or what optuna asks for."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from poblano_flow.sweep.evaluate import Outcome
from poblano_flow.sweep.spec import Scalar, Sweep
from poblano_golden.errors import PoblanoError

__all__ = ["Strategy", "feasible_grid", "strategy"]

Point = dict[str, Scalar]

RANDOM_TRIES = 1000
"""Draws in a row without a new feasible point after which a random search has found all."""


class Strategy(ABC):
    """Gives points in batches, and may learn from their outcomes.

    Attributes
    ----------
    total:
        How many points there will be, at most.
    """

    total: int

    @abstractmethod
    def batches(self) -> Iterator[list[Point]]:
        """Yield batches; the outcomes of one are told before the next is asked for."""

    @abstractmethod
    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Take the outcomes of the last batch, in its order."""


def feasible_grid(sweep: Sweep) -> Iterator[Point]:
    """Yield every combination of values that no constraint on parameters forbids, in order."""
    for values in itertools.product(*sweep.choices.values()):
        point = dict(zip(sweep.choices, values, strict=True))
        if _may_be(sweep, point):
            yield point


def strategy(sweep: Sweep, batch: int) -> Strategy:
    """Return the search that a sweep asks for; `batch` points are evaluated at a time.

    Raises
    ------
    PoblanoError
        If no point is feasible, or optuna is asked for and not installed.
    """
    if next(feasible_grid(sweep), None) is None:
        raise PoblanoError("constraints must leave a point of the parameters; got none")
    if sweep.search.method == "optuna":
        return _Optuna(sweep, batch)
    points = list(feasible_grid(sweep) if sweep.search.method == "grid" else _sample(sweep))
    return _Listed(points[: sweep.search.points])


def _may_be(sweep: Sweep, point: Point) -> bool:
    return all(rule.value(point) for rule in sweep.early_rules)


def _sample(sweep: Sweep) -> Iterator[Point]:
    """Yield different feasible points at random, the same for the same seed."""
    numbers = random.Random(sweep.search.seed)
    seen: set[tuple[Scalar, ...]] = set()
    tries = 0
    while tries < RANDOM_TRIES and len(seen) < (sweep.search.points or 0):
        point = {name: numbers.choice(values) for name, values in sweep.choices.items()}
        tries += 1
        if tuple(point.values()) not in seen and _may_be(sweep, point):
            seen.add(tuple(point.values()))
            tries = 0
            yield point


class _Listed(Strategy):
    def __init__(self, points: list[Point]) -> None:
        self._points = points
        self.total = len(points)

    def batches(self) -> Iterator[list[Point]]:
        yield self._points

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Take nothing from them: which points come is settled."""


class _Optuna(Strategy):
    """NSGA-II over the choices; a point that fails or breaks a constraint counts as failed."""

    def __init__(self, sweep: Sweep, batch: int) -> None:
        try:
            optuna: Any = importlib.import_module("optuna")
        except ImportError:
            raise PoblanoError(
                "search.method optuna must have optuna: pip install 'poblano[sweep]'; got none"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._sweep = sweep
        self._batch = batch
        self._failed = optuna.trial.TrialState.FAIL
        self.total = min(
            sweep.search.points or 0, math.prod(len(v) for v in sweep.choices.values())
        )
        self._study: Any = optuna.create_study(
            directions=[f"{way[:-3]}ize" for way in sweep.objectives.values()],
            sampler=optuna.samplers.NSGAIISampler(seed=sweep.search.seed, population_size=16),
        )
        self._asked: list[Any] = []

    def batches(self) -> Iterator[list[Point]]:
        seen: set[tuple[Scalar, ...]] = set()
        tries = 0
        while len(seen) < self.total and tries < RANDOM_TRIES:
            self._asked = []
            points: list[Point] = []
            while len(points) < min(self._batch, self.total - len(seen)) and tries < RANDOM_TRIES:
                trial = self._study.ask()
                point: Point = {
                    name: trial.suggest_categorical(name, values)
                    for name, values in self._sweep.choices.items()
                }
                tries += 1
                if tuple(point.values()) in seen or not _may_be(self._sweep, point):
                    self._study.tell(trial, state=self._failed)
                    continue
                tries = 0
                seen.add(tuple(point.values()))
                points.append(point)
                self._asked.append(trial)
            if points:
                yield points

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        for trial, outcome in zip(self._asked, outcomes, strict=True):
            if outcome.error or not outcome.feasible:
                self._study.tell(trial, state=self._failed)
                continue
            figures = {**outcome.point, **outcome.figures}
            self._study.tell(trial, [float(figures[name]) for name in self._sweep.objectives])
