"""The figures of one point of a sweep, kept by content.

A point's key is the digest of its configuration, of what is asked, of the library and of the
generator's own code: the same key gives the same figures. Results are written whole or not at all,
and two sweeps that meet at a point wait for each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from poblano.config import Configuration
from poblano_flow.build_cache import build_root, recipe_key
from poblano_flow.sweep.spec import Product, Scalar, Sweep, Synthesis, derived_names
from poblano_golden.errors import PoblanoError

__all__ = ["Outcome", "basis_of", "evaluate", "outcome_row", "point_key"]


@dataclass(frozen=True)
class Outcome:
    """What became of a point.

    Attributes
    ----------
    point:
        Its parameters.
    figures:
        Its figures, empty if it failed.
    error:
        Why it failed; empty if it did not.
    feasible:
        Whether the constraints hold.
    seconds:
        Of the evaluation, by whoever made it.
    cached:
        Whether an earlier evaluation was used.
    """

    point: dict[str, Scalar]
    figures: dict[str, float]
    error: str = ""
    feasible: bool = True
    seconds: float = 0.0
    cached: bool = False


@cache
def _code_digest() -> str:
    """Return the digest of the code that figures come from."""
    import poblano
    import poblano_flow.synthesis
    import poblano_golden
    import poblano_sw

    digest = hashlib.sha256()
    for package in (poblano, poblano_golden, poblano_sw, poblano_flow.synthesis):
        for path in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def basis_of(sweep: Sweep) -> str:
    """Return the digest of what all points of a sweep share: the code and the library.

    Raises
    ------
    PoblanoError
        If the library cannot be used.
    """
    shared: dict[str, Any] = {"code": _code_digest()}
    if any(name.startswith("area.") for name in sweep.wanted):
        from poblano_flow.synthesis.technology import select_library

        paths = [Path(name) for name in sweep.synthesis.liberty]
        library, technology = select_library(paths, sweep.synthesis.tech)
        shared["library"] = library.digest
        shared["technology"] = None if technology is None else technology.model_dump()
        shared["synthesis"] = sweep.synthesis.model_dump()
    return recipe_key(shared)


def point_key(sweep: Sweep, configuration: Configuration, basis: str) -> str:
    """Return the key of a point's result."""
    return recipe_key(
        {
            "configuration": configuration.hash,
            "wanted": sweep.wanted,
            "product": None if sweep.product is None else sweep.product.model_dump(),
            "basis": basis,
        }
    )


def evaluate(sweep: Sweep, point: dict[str, Scalar], basis: str) -> Outcome:
    """Return the outcome of a point: an earlier one, or a new one, which is kept.

    Faults of the point (a rule broken, a product that does not fit, Yosys) are its outcome and are
    kept; faults of the machine (no room, no permission) are its outcome and are not. `basis` is
    what `basis_of` returned for the sweep.
    """
    started = time.monotonic()
    try:
        configuration = sweep.configuration(point)
        path = build_root() / "sweep_points" / f"{point_key(sweep, configuration, basis)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            known = _read(path)
            if known is None:
                known = _measure(sweep, configuration)
                known["seconds"] = time.monotonic() - started
                _write(path, known)
                cached = False
            else:
                cached = True
    except (PoblanoError, OSError) as error:
        seconds = time.monotonic() - started
        return Outcome(point, {}, str(error) or type(error).__name__, False, seconds)
    return _outcome(sweep, point, known, cached)


def _measure(sweep: Sweep, configuration: Configuration) -> dict[str, Any]:
    try:
        figures: dict[str, float] = {}
        wanted = sweep.wanted
        if any(name.startswith("area.") for name in wanted):
            figures |= _areas(sweep.synthesis, configuration)
        if sweep.product is not None:
            figures |= _cycles(sweep.product, configuration, wanted)
        figures |= derived_names(configuration)
    except PoblanoError as error:
        return {"figures": {}, "error": str(error)}
    return {"figures": {name: figures[name] for name in wanted}, "error": ""}


def _outcome(
    sweep: Sweep, point: dict[str, Scalar], known: Mapping[str, Any], cached: bool
) -> Outcome:
    if known["error"]:
        return Outcome(point, {}, known["error"], False, known["seconds"], cached)
    figures = dict(known["figures"])
    names: dict[str, Any] = {**point, **figures}
    try:
        for name, expression in sweep.expressions.items():
            names[name] = figures[name] = expression.value(names)
        feasible = all(rule.value(names) for rule in sweep.rules)
    except PoblanoError as error:
        return Outcome(point, {}, str(error), False, known["seconds"], cached)
    return Outcome(point, figures, "", feasible, known["seconds"], cached)


def _areas(synthesis: Synthesis, configuration: Configuration) -> dict[str, float]:
    from poblano.slice import Slice
    from poblano.tensor.engine import TensorEngine
    from poblano_flow.area_figures import tensor_unit
    from poblano_flow.emission import emit
    from poblano_flow.synthesis.hierarchy import synthesise
    from poblano_flow.synthesis.technology import select_library

    component = {
        "slice": lambda: Slice(configuration=configuration),
        "tensor": lambda: TensorEngine(configuration=configuration.slice),
        "unit": lambda: tensor_unit(configuration.slice.tensor),
    }[synthesis.top]()
    library, technology = select_library([Path(n) for n in synthesis.liberty], synthesis.tech)
    found = synthesise(
        emit(component),
        library,
        technology,
        delay_ps=synthesis.delay,
        macro_bits=synthesis.macro_bits,
        workers=1,
    )
    delays = [area.mapped.delay_ps for area in found.modules if area.mapped is not None]
    return {
        "area.kge": found.top.logic / library.gate / 1000,
        "area.logic": found.top.logic,
        "area.sram": found.top.memory,
        "area.cells": found.cells,
        "area.delay_ns": max(delays, default=0.0) / 1000,
    }


def _cycles(
    product: Product, configuration: Configuration, wanted: tuple[str, ...]
) -> dict[str, float]:
    from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
    from poblano_sw.chunking import plan_streamed, predicted_cycles
    from poblano_sw.matmul import plan_matmul
    from poblano_sw.streamed_matmul import Product as Streamed

    known = MX_FORMATS | WIDE_FORMATS
    for name, formats in (
        (product.a, MX_FORMATS),
        (product.b, MX_FORMATS),
        (product.result, known),
    ):
        if name not in formats:
            raise PoblanoError(f"a format must be one of {', '.join(formats)}; got {name!r}")
    a, b, result = MX_FORMATS[product.a], MX_FORMATS[product.b], known[product.result]
    found: dict[str, float] = {}
    m, n, k = product.m, product.n, product.k
    if "product.cycles" in wanted:
        plan = plan_matmul(configuration.slice, m=m, n=n, k=k, a=a, b=b, result=result)
        found["product.cycles"] = plan.phases.cycles
    if "product.streamed_cycles" in wanted:
        streamed = plan_streamed(
            configuration.slice,
            Streamed(m, n, k, a, b, result),
            l1_size=configuration.slice.l1.size,
        )
        found["product.streamed_cycles"] = predicted_cycles(streamed)
    return found


def _read(path: Path) -> dict[str, Any] | None:
    """Return a kept result; None if there is none that is whole."""
    try:
        known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return known if {"figures", "error", "seconds"} <= known.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def _write(path: Path, known: dict[str, Any]) -> None:
    scratch = path.with_suffix(f".{os.getpid()}")
    try:
        scratch.write_text(json.dumps(known), encoding="utf-8")
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as one flat row."""
    fields = asdict(outcome)
    return {
        **fields["point"],
        **fields["figures"],
        "feasible": outcome.feasible,
        "error": outcome.error,
        "seconds": round(outcome.seconds, 3),
    }
