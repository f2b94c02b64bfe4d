"""A first estimate of what a configuration's tensor unit and engine take, for a report."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from poblano.arith.modes import LANES
from poblano.config import Configuration
from poblano.tensor.geometry import Geometry
from poblano_flow.area_figures import unit_area
from poblano_flow.demo_report import AreaRow
from poblano_flow.synthesis.liberty import VARIABLE, find_liberty
from poblano_golden.errors import PoblanoError

__all__ = ["estimate"]

_OSU018 = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
"""Debian's qflow-tech-osu018: a real library, 180 nm, that any user can install."""


def _library() -> tuple[str, Path]:
    """Return the library to estimate with, and its name.

    Raises
    ------
    PoblanoError
        If there is none.
    """
    candidates: list[tuple[str, Callable[[], Path]]] = []
    if os.environ.get(VARIABLE):
        candidates.append(("Nangate 45 typical", lambda: find_liberty("nangate45_typ")))
    if _OSU018.is_file():
        candidates.append(("OSU 180 nm", lambda: _OSU018))
    for name, find in candidates:
        try:
            return name, find()
        except PoblanoError:
            continue
    raise PoblanoError(
        f"a cell library is needed: point {VARIABLE} at a folder with nangate45_typ.lib, "
        "or apt-get install qflow-tech-osu018"
    )


def estimate(configuration: Configuration) -> list[AreaRow]:
    """Return the area and depth of the tensor unit and of the engine's arithmetic.

    Mapped by Yosys and ABC with relaxed timing, before layout. Without a library the rows say
    what is missing.
    """
    tensor = configuration.slice.tensor
    units = tensor.rows * tensor.cols
    parts = ("one tensor unit", f"arithmetic of the engine, {tensor.rows}x{tensor.cols} units")
    try:
        name, path = _library()
        area = unit_area(tensor, [path])
    except PoblanoError as error:
        return [AreaRow(part, "-", None, "-", str(error)) for part in parts]
    longest = max(r.delay for r in (area.unit, area.decoder_a, area.decoder_b)) / 1000
    bits = 2 * Geometry(configuration.slice).accumulators * units * 32
    return [
        AreaRow(
            parts[0],
            name,
            area.unit_kge,
            f"{area.unit.delay / 1000:.2f} ns",
            f"{LANES} MXFP4 products a cycle, all formats, registers included",
        ),
        AreaRow(
            parts[1],
            name,
            area.shared_kge * units,
            f"{longest:.2f} ns",
            "units and operand decoders; beside them "
            f"{bits // 8192} KiB of accumulators and the engine's control, not counted",
        ),
    ]
