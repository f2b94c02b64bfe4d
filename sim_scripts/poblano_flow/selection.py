"""Which tests to run: the names of all of them, and expressions that select some.

A test is named `BLOCK:VARIANT/SIMULATOR/TEST`. An expression is made of words joined by `and`,
`or`, `not` and parentheses. A word stands for the names that contain it, or for the one name that
it is.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from poblano_golden.errors import PoblanoError
from poblano_verif import registry

__all__ = ["BenchJob", "matcher", "plan", "plan_file", "tests_of"]

_TOKEN = re.compile(r"[()]|[^\s()]+")


@dataclass(frozen=True)
class BenchJob:
    """Tests of one block that run in one simulation.

    Attributes
    ----------
    block, variant, simulator:
        What is simulated, and how.
    bench:
        The cocotb module.
    tests:
        Full names (`module.function`) of the tests.
    file:
        The file of a testbench that is not in the registry. The block is then simulated alone,
        without what its own bench wants about it.
    """

    block: str
    variant: str
    simulator: str
    bench: str
    tests: tuple[str, ...]
    file: str = ""

    @property
    def name(self) -> str:
        """`BLOCK:VARIANT/SIMULATOR`."""
        return f"{self.block}:{self.variant}/{self.simulator}"

    def test_name(self, test: str) -> str:
        """Return `BLOCK:VARIANT/SIMULATOR/TEST` of a test, given its full name."""
        return f"{self.name}/{test.removeprefix(f'{self.bench}.')}"


@cache
def tests_of(bench: str) -> tuple[str, ...]:
    """Return the full names of the tests in a cocotb module, in order."""
    from cocotb.regression import Test, TestGenerator

    found: list[Test] = []
    for item in vars(importlib.import_module(bench)).values():
        if isinstance(item, Test):
            found.append(item)
        elif isinstance(item, TestGenerator):
            found.extend(item.generate_tests())
    return tuple(test.fullname for test in found)


def plan(
    expression: str | None, simulators: Sequence[str], *, nightly: bool = False
) -> list[BenchJob]:
    """Return what to run of the registry, in its order.

    Parameters
    ----------
    expression:
        As the module's docstring says; None selects everything.
    simulators:
        Those to use.
    nightly:
        Whether variants for nightly runs are taken too.

    Raises
    ------
    PoblanoError
        If the expression cannot be read, or selects nothing.
    """
    jobs = [
        BenchJob(block.name, variant, simulator, block.bench_module, tests_of(block.bench_module))
        for block in registry.BLOCKS.values()
        for variant, item in block.variants.items()
        for simulator in item.simulators
        if simulator in simulators and (nightly or not item.nightly)
    ]
    return _select(jobs, expression, simulators)


def plan_file(
    path: Path, block: str, expression: str | None, simulators: Sequence[str]
) -> list[BenchJob]:
    """Return what to run of a testbench in a file of its own, against one block.

    Parameters
    ----------
    path:
        A Python file; its folder becomes importable.
    block:
        `NAME` or `NAME:VARIANT` of the registry.
    expression, simulators:
        As in `plan`.

    Raises
    ------
    PoblanoError
        If the file or the block is missing, or nothing is selected.
    """
    if not path.is_file():
        raise PoblanoError(f"{path}: a testbench must be a Python file; got no such file")
    found, variant = registry.find(block)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    tests = tests_of(path.stem)
    usable = [name for name in found.variants[variant].simulators if name in simulators]
    jobs = [BenchJob(found.name, variant, name, path.stem, tests, str(path)) for name in usable]
    return _select(jobs, expression, simulators)


def _select(
    jobs: Sequence[BenchJob], expression: str | None, simulators: Sequence[str]
) -> list[BenchJob]:
    names = [job.test_name(test) for job in jobs for test in job.tests]
    wanted = matcher(expression or "", names)
    selected: list[BenchJob] = []
    for job in jobs:
        tests = tuple(test for test in job.tests if wanted(job.test_name(test)))
        if tests:
            selected.append(replace(job, tests=tests))
    if not selected:
        raise PoblanoError(
            f"-k must select a test of {' or '.join(simulators)}; {expression!r} selects none"
            " (poblano test --list names them)"
        )
    return selected


def matcher(expression: str, names: Iterable[str]) -> Callable[[str], bool]:
    """Return whether a name is selected by an expression; an empty one selects every name.

    Raises
    ------
    PoblanoError
        If the expression cannot be read.
    """
    if not expression.strip():
        return lambda _: True
    return _Parser(expression, set(names)).parse()


class _Parser:
    """Recursive descent: `or` binds least, then `and`, then `not`."""

    def __init__(self, expression: str, names: set[str]) -> None:
        self._expression = expression
        self._names = names
        self._tokens = _TOKEN.findall(expression)

    def parse(self) -> Callable[[str], bool]:
        found = self._either()
        if self._tokens:
            raise self._error(f"{self._tokens[0]!r} where nothing fits")
        return found

    def _either(self) -> Callable[[str], bool]:
        left = self._both()
        while self._accept("or"):
            left = _or(left, self._both())
        return left

    def _both(self) -> Callable[[str], bool]:
        left = self._one()
        while self._accept("and"):
            left = _and(left, self._one())
        return left

    def _one(self) -> Callable[[str], bool]:
        if self._accept("not"):
            inner = self._one()
            return lambda name: not inner(name)
        if self._accept("("):
            inner = self._either()
            if not self._accept(")"):
                raise self._error("no ')'")
            return inner
        if not self._tokens or self._tokens[0] in (")", "and", "or"):
            raise self._error("no word where one must stand")
        word = self._tokens.pop(0)
        if word in self._names:
            return lambda name: name == word
        return lambda name: word in name

    def _accept(self, token: str) -> bool:
        if self._tokens[:1] == [token]:
            self._tokens.pop(0)
            return True
        return False

    def _error(self, what: str) -> PoblanoError:
        return PoblanoError(
            "-k must be words joined by and, or, not and parentheses; "
            f"{self._expression!r} has {what}"
        )


def _or(a: Callable[[str], bool], b: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda name: a(name) or b(name)


def _and(a: Callable[[str], bool], b: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda name: a(name) and b(name)
