"""Annealing of a structure with synthesis as its cost; goes on where it was ended."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from poblano.arith.structure import (
    NEGATIVE_HEIGHTS,
    TOTAL_HEIGHTS,
    FourBitStructure,
    from_json,
    load_structure,
    to_json,
)
from poblano_flow.area_figures import Dot32
from poblano_flow.emission import emit
from poblano_flow.optimise.construct import Delays, compressor_tree, graph_of
from poblano_flow.optimise.moves import changed
from poblano_flow.optimise.proof import prove
from poblano_flow.synthesis.liberty import Library
from poblano_flow.synthesis.mapping import Source, map_module
from poblano_golden.errors import PoblanoError

__all__ = ["UNITS", "Point", "Question", "State", "search", "structure_file"]

UNITS = ("dot32_mxfp4",)
"""What can be searched for."""

_LATE = 14
"""When the count of negative products is there, in the units of `Delays`."""
_TOLERANCE = 0.03
"""How far the delay may pass what is asked: ABC meets it by its own wires and sizes or not."""
_HOT, _COLD = 0.004, 0.0005
"""Relative rise of the cost that a third of the time is taken, at the first and the last step."""


@dataclass(frozen=True)
class Question:
    """What is searched for.

    Attributes
    ----------
    unit:
        One of `UNITS`.
    library:
        SHA-256 of the cell library.
    delay_ps:
        Delay asked of ABC, and not to be passed.
    seed, steps:
        Of the annealing.
    """

    unit: str
    library: str
    delay_ps: int
    seed: int
    steps: int


@dataclass(frozen=True)
class Point:
    """Area and delay of a structure as synthesis gave them, at a step of the search."""

    step: int
    kge: float
    delay_ps: float

    def cost(self, delay_ps: int) -> float:
        """Return the area, raised by ten times what the delay passes the asked one and 3 % by."""
        return self.kge * (1 + 10 * max(0.0, self.delay_ps / delay_ps - 1 - _TOLERANCE))


@dataclass
class State:
    """How far a search is.

    Attributes
    ----------
    step:
        The next one.
    current, best:
        Structures, each with its point.
    curve:
        Every point that was the best.
    """

    step: int
    current: tuple[FourBitStructure, Point]
    best: tuple[FourBitStructure, Point]
    curve: list[Point]


def search(
    question: Question, library: Library, folder: Path, progress: Callable[[State], None]
) -> State:
    """Anneal until the last step; return the best structure, proved.

    The state is kept in `folder` after every step. The first steps try the structures to begin
    with; every later one changes the current structure.

    Raises
    ------
    PoblanoError
        If the unit is unknown, the folder holds another search, or Yosys fails.
    """
    if question.unit not in UNITS:
        raise PoblanoError(f"a unit must be one of {', '.join(UNITS)}; got {question.unit}")
    path = folder / "state.json"
    state = _resume(path, question)
    beginnings = _beginnings(question.unit)
    while state is None or state.step < question.steps:
        step = state.step if state else 0
        random = Random(f"{question.seed} {step}")
        if state is None or step < len(beginnings):
            tried = beginnings[step]
        else:
            tried = changed(state.current[0], random)
        point = measure(tried, library, question.delay_ps, step)
        cost = point.cost(question.delay_ps)
        if state is None:
            state = State(0, (tried, point), (tried, point), [point])
        share = step / max(1, question.steps - 1)
        heat = _HOT * (_COLD / _HOT) ** share
        rise = cost / state.current[1].cost(question.delay_ps) - 1
        if rise <= 0 or (step >= len(beginnings) and random.random() < math.exp(-rise / heat)):
            state.current = tried, point
        if cost < state.best[1].cost(question.delay_ps):
            prove(tried, vectors=1 << 14, seed=step)
            state.best = tried, point
            state.curve.append(point)
        state.step = step + 1
        _save(path, question, state)
        progress(state)
    prove(state.best[0])
    return state


def measure(structure: FourBitStructure, library: Library, delay_ps: int, step: int = 0) -> Point:
    """Return area and delay of the unit with a structure."""
    emission = emit(Dot32(structure=structure))
    text = "\n".join(module.verilog for module in emission.modules)
    mapped = map_module(Source(emission.top.name, text), library, delay_ps)
    return Point(step, mapped.area / library.gate / 1000, mapped.delay_ps)


def structure_file(question: Question, state: State, library: Library) -> str:
    """Return the text of a structure's file: what it is, where it came from, the structure."""
    structure, point = state.best
    fields: dict[str, Any] = {
        "unit": question.unit,
        "library": library.name,
        "asked_ps": question.delay_ps,
        "seed": question.seed,
        "kge": round(point.kge, 4),
        "delay_ps": round(point.delay_ps, 1),
        "proof": str(prove(structure)),
        "curve": [[p.step, round(p.kge, 4), round(p.delay_ps, 1)] for p in state.curve],
        "structure": to_json(structure),
    }
    return json.dumps(fields, separators=(",", ":")).replace("],[", "],\n[") + "\n"


def _beginnings(unit: str) -> list[FourBitStructure]:
    """Return structures to begin with: the generator's own, and its lane in constructed trees."""
    own = load_structure(unit)
    found = [own]
    for delays, graph in (
        (Delays(), "serial"),
        (Delays(two_rows=True), "sklansky"),
        (Delays(two_rows=True), "brent_kung"),
    ):
        late: dict[int, float] = {}
        place = 0
        for column, height in enumerate(TOTAL_HEIGHTS):
            if column < len(NEGATIVE_HEIGHTS) or column >= 8:
                late[place + (32 if column < 8 else 0)] = _LATE
            place += height
        found.append(
            FourBitStructure(
                own.lane,
                compressor_tree(NEGATIVE_HEIGHTS, {}, delays),
                compressor_tree(TOTAL_HEIGHTS, late, delays),
                graph_of("serial", len(NEGATIVE_HEIGHTS)),
                graph_of(graph, len(TOTAL_HEIGHTS)),
            )
        )
    return found


def _save(path: Path, question: Question, state: State) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {
        "question": asdict(question),
        "step": state.step,
        "current": [to_json(state.current[0]), asdict(state.current[1])],
        "best": [to_json(state.best[0]), asdict(state.best[1])],
        "curve": [asdict(point) for point in state.curve],
    }
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(fields) + "\n", encoding="utf-8")
    scratch.replace(path)


def _resume(path: Path, question: Question) -> State | None:
    if not path.is_file():
        return None
    try:
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        asked = Question(**fields["question"])
        pair = {
            name: (from_json(fields[name][0]), Point(**fields[name][1]))
            for name in ("current", "best")
        }
        state = State(
            fields["step"], pair["current"], pair["best"], [Point(**p) for p in fields["curve"]]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise PoblanoError(f"{path}: must be the state of a search; got {error}") from None
    if asdict(asked) | {"steps": 0} != asdict(question) | {"steps": 0}:
        raise PoblanoError(f"{path}: must be of the same search; got that of {asked}")
    return state
