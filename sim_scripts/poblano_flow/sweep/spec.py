"""Sweep files: what is varied, what is asked of every point, and what is best."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from poblano.config import Configuration, ConfigurationError, load
from poblano_flow.sweep.expression import Expression
from poblano_golden.errors import PoblanoError

__all__ = ["METRICS", "Product", "Search", "Sweep", "Synthesis", "load_sweep"]

METRICS = {
    "area.kge": "logic, thousand gate equivalents",
    "area.logic": "logic, in the library's unit",
    "area.sram": "SRAM macros, in the library's unit",
    "area.cells": "library cells",
    "area.delay_ns": "longest path of any module, by ABC, nanoseconds",
    "product.cycles": "exact cycles of the product with operands in L1",
    "product.streamed_cycles": "predicted cycles of the product with operands in HBM",
}
"""What can be asked of a point, beside its parameters and `derived.NAME`."""

Number = int | float
Scalar = int | float | str | bool


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Range(_Section):
    """From one number to another, both included, by a step or by a factor."""

    first: Annotated[Number, Field(alias="from")]
    last: Annotated[Number, Field(alias="to")]
    step: Annotated[Number, Field(gt=0)] | None = None
    factor: Annotated[Number, Field(gt=1)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.step is None) == (self.factor is None):
            raise ValueError("a range must have a step or a factor")
        if self.last < self.first or (self.factor is not None and self.first <= 0):
            raise ValueError("a range must go up, and by a factor from above 0")
        return self

    def values(self) -> list[Scalar]:
        """Return the numbers."""
        found: list[Scalar] = []
        value = self.first
        while value <= self.last:
            found.append(value)
            value = value * self.factor if self.factor else value + (self.step or 0)
        return found


class Synthesis(_Section):
    """What is mapped, and to what."""

    top: Literal["slice", "tensor", "unit"] = "tensor"
    """The slice, its tensor engine, or one tensor unit."""
    tech: str | None = None
    liberty: tuple[str, ...] = ()
    delay: Annotated[int, Field(ge=1)] = 5000
    macro_bits: Annotated[int, Field(ge=1)] = 4096


class Product(_Section):
    """A product A[m, k] * B[n, k] transposed."""

    m: Annotated[int, Field(ge=1)]
    n: Annotated[int, Field(ge=1)]
    k: Annotated[int, Field(ge=1)]
    a: str = "mxfp4"
    b: str = "mxfp4"
    result: str = "mxfp4"


class Search(_Section):
    """Which points are evaluated."""

    method: Literal["grid", "random", "optuna"] = "grid"
    points: Annotated[int, Field(ge=1)] | None = None
    """At most so many; required except for a grid."""
    seed: int = 1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.method != "grid" and self.points is None:
            raise ValueError("a random or optuna search must say how many points")
        return self


class Sweep(_Section):
    """A sweep file."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    base: str
    """Preset or configuration file that the parameters are set in."""
    set: tuple[str, ...] = ()
    """Overrides for every point, `slice.tensor.rows=8`."""
    parameters: Annotated[dict[str, list[Scalar] | Range], Field(min_length=1)]
    constraints: tuple[str, ...] = ()
    """Expressions that must hold; points that break one are left out or infeasible."""
    metrics: dict[str, str] = {}
    """Further figures by expressions on others."""
    objectives: Annotated[dict[str, Literal["minimise", "maximise"]], Field(min_length=1)]
    synthesis: Synthesis = Synthesis()
    product: Product | None = None
    search: Search = Search()

    @cached_property
    def choices(self) -> dict[str, list[Scalar]]:
        """The values of every parameter."""
        return {
            name: item.values() if isinstance(item, Range) else item
            for name, item in self.parameters.items()
        }

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        """The further figures, which may use those before them."""
        return {name: Expression(text) for name, text in self.metrics.items()}

    @cached_property
    def rules(self) -> tuple[Expression, ...]:
        """The constraints."""
        return tuple(map(Expression, self.constraints))

    @cached_property
    def early_rules(self) -> tuple[Expression, ...]:
        """The constraints on parameters alone, which no evaluation is needed for."""
        return tuple(rule for rule in self.rules if rule.names <= self.parameters.keys())

    @cached_property
    def wanted(self) -> tuple[str, ...]:
        """The figures that are measured: all that something in the file uses."""
        used = set(self.objectives).union(*(rule.names for rule in self.rules))
        for name, expression in reversed(self.expressions.items()):
            used |= expression.names
            used.discard(name)
        return tuple(sorted(used - self.parameters.keys() - self.expressions.keys()))

    def overrides(self, point: Mapping[str, Scalar]) -> list[str]:
        """Return a point as overrides of the base."""
        return [*self.set, *(f"{name}={_text(value)}" for name, value in point.items())]

    def configuration(self, point: Mapping[str, Scalar]) -> Configuration:
        """Return a point's configuration.

        Raises
        ------
        ConfigurationError
            If the point breaks a rule of configurations.
        """
        return load(self.base, self.overrides(point))


def load_sweep(path: Path) -> Sweep:
    """Read a sweep file.

    Raises
    ------
    PoblanoError
        With a line for every problem: an unknown key, parameter or figure, no values, no YAML.
    """
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        sweep = Sweep.model_validate(content)
    except ValidationError as error:
        lines = [
            f"{path}: {'.'.join(map(str, item['loc'])) or 'a sweep'}: {item['msg']}; "
            f"got {item['input']!r}"
            for item in error.errors(include_url=False)
        ]
        raise PoblanoError("\n".join(lines)) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        text = str(error).replace("\n", " ")
        raise PoblanoError(f"{path}: a sweep must be YAML; got {text}") from None
    except OSError as error:
        raise PoblanoError(f"{path}: a sweep must be readable; got {error.strerror}") from None
    problems = [f"{path}: {problem}" for problem in _problems(sweep)]
    if problems:
        raise PoblanoError("\n".join(problems))
    return sweep


def _problems(sweep: Sweep) -> list[str]:
    """Return what pydantic cannot know: names that nothing has."""
    try:
        base = load(sweep.base, sweep.set)
    except ConfigurationError as error:
        return [f"base: {problem}" for problem in error.problems]
    problems: list[str] = []
    for name, values in sweep.choices.items():
        if not values:
            problems.append(f"parameters.{name}: a parameter must have a value; got none")
        elif not _is_parameter(base, name):
            problems.append(
                f"parameters.{name}: a parameter must be a dotted name of the configuration; "
                f"got {name!r}"
            )
    if problems:
        return problems
    derived = derived_names(base)
    known = {*sweep.parameters, *METRICS, *derived}
    uses = [(f"constraints: {rule.text!r}", rule.names) for rule in sweep.rules]
    uses.append(("objectives", frozenset(sweep.objectives)))
    unknown = [(place, names - known - sweep.expressions.keys()) for place, names in uses]
    for name, expression in sweep.expressions.items():
        unknown.append((f"metrics.{name}", expression.names - known))
        known.add(name)
    problems = [
        f"{place}: a figure must be a parameter, one of {', '.join(METRICS)}, one of metrics "
        f"before it, or derived.NAME; got {name!r}"
        for place, names in unknown
        for name in sorted(names)
    ]
    if sweep.product is None and any(name.startswith("product.") for name in sweep.wanted):
        problems.append("product: a product must be given for its cycles; got none")
    return problems


def derived_names(configuration: Configuration) -> dict[str, float]:
    """Return the derived figures that are numbers, by `derived.NAME` and `derived.NAME.FORMATS`."""
    from poblano.config import derive

    found: dict[str, float] = {}
    for name, value in derive(configuration).items():
        if isinstance(value, dict):
            for key, number in value.items():
                found[f"derived.{name}.{str(key).replace('*', '_')}"] = number
        elif isinstance(value, int | float):
            found[f"derived.{name}"] = value
    return found


def _is_parameter(base: Configuration, name: str) -> bool:
    section: Any = base
    for part in name.split("."):
        if not isinstance(section, BaseModel) or part not in type(section).model_fields:
            return False
        section = getattr(section, part)
    return not isinstance(section, BaseModel)


def _text(value: Scalar) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
