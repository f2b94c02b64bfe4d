"""What a synthesis found, for people, for programs and for spreadsheets."""

from __future__ import annotations

import csv
import io
from importlib import metadata
from typing import Any

from rich.table import Table

from poblano_flow.synthesis.hierarchy import DesignArea, ModuleArea
from poblano_flow.synthesis.technology import Technology

__all__ = ["area_csv", "area_json", "area_table", "header_lines"]


def header_lines(design: DesignArea, label: str) -> list[str]:
    """Return what every figure needs beside it: design, library, corner, tools, before layout."""
    tech = design.technology
    unit = _area_unit(tech)
    files = ", ".join(path.name for path in design.library.files)
    lines = [
        f"design     {label}, top {design.top.module.name}",
        f"library    {tech.title if tech else 'given by --liberty'} ({files})",
        f"corner     {tech.corner if tech else 'as in the Liberty files'}",
        f"units      1 GE = smallest NAND2 = {design.library.gate:g} {unit}",
        f"tools      poblano {metadata.version('poblano')}, pyosys {metadata.version('pyosys')} "
        f"with its ABC, {design.delay_ps} ps asked",
        "stage      before layout: no clock tree, no placement, no routing",
    ]
    if tech is not None and design.top.memory:
        bits = sum(m.bits * area.count for area in design.modules for m in area.macros)
        macros = sum(len(area.macros) * area.count for area in design.modules)
        sram = tech.sram
        lines.append(
            f"SRAM       {macros} macros, {bits / 8192:g} KiB: {sram.macro_area.value:g} {unit} "
            f"each and {sram.bit_area.value:g} {unit} a bit ({sram.bit_area.source})"
        )
    return lines


def area_table(design: DesignArea, limit: int | None) -> Table:
    """Return the modules by the area that they take in the design.

    Parameters
    ----------
    design:
        What was found.
    limit:
        How many rows; None for all.
    """
    unit = _area_unit(design.technology)
    table = Table(box=None, pad_edge=False)
    table.add_column("module", no_wrap=True)
    for heading in ("instances", "own kGE", "total kGE", "share", "SRAM " + unit, "cells"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("ABC delay", justify="right", no_wrap=True)
    for area in _largest_first(design)[:limit]:
        gate = design.library.gate * 1000
        part = area.logic * area.count / design.top.logic if design.top.logic else 0.0
        table.add_row(
            area.module.kind,
            f"{area.count:,}",
            f"{area.own_logic / gate:,.2f}",
            f"{area.logic / gate:,.2f}",
            f"{part:.1%}",
            f"{area.own_memory:,.0f}" if area.own_memory else "",
            f"{area.cells:,}",
            f"{area.mapped.delay_ps / 1000:.2f} ns" if area.mapped else "",
        )
    gate = design.library.gate * 1000
    table.add_section()
    table.add_row(
        "whole design", "", "", f"{design.top.logic / gate:,.2f}", "", f"{design.top.memory:,.0f}",
        f"{design.cells:,}", "",
    )  # fmt: skip
    return table


def area_json(design: DesignArea, label: str) -> dict[str, Any]:
    """Return everything as JSON data; areas in the technology's unit, delays in picoseconds."""
    tech = design.technology
    return {
        "design": label,
        "top": design.top.module.name,
        "library": {
            "files": [path.name for path in design.library.files],
            "digest": design.library.digest,
            "technology": tech.name if tech else None,
            "corner": tech.corner if tech else None,
            "gate_area": design.library.gate,
            "area_unit": _area_unit(tech),
        },
        "tools": {name: metadata.version(name) for name in ("poblano", "pyosys")},
        "stage": "before layout",
        "delay_asked_ps": design.delay_ps,
        "logic_area": design.top.logic,
        "memory_area": design.top.memory,
        "gate_equivalents": design.top.logic / design.library.gate,
        "cells": design.cells,
        "modules": [_row(area, design) for area in _largest_first(design)],
    }


def area_csv(design: DesignArea) -> str:
    """Return the modules as comma-separated values, in the order of the table."""
    rows = [_row(area, design) for area in _largest_first(design)]
    scratch = io.StringIO()
    writer = csv.DictWriter(scratch, [name for name in rows[0] if name != "macros"])
    writer.writeheader()
    writer.writerows({k: v for k, v in row.items() if k != "macros"} for row in rows)
    return scratch.getvalue()


def _row(area: ModuleArea, design: DesignArea) -> dict[str, Any]:
    mapped = area.mapped
    return {
        "module": area.module.name,
        "kind": area.module.kind,
        "instances": area.count,
        "own_logic_area": area.own_logic,
        "own_sequential_area": mapped.sequential_area if mapped else 0.0,
        "logic_area": area.logic,
        "gate_equivalents": area.logic / design.library.gate,
        "own_memory_area": area.own_memory,
        "memory_area": area.memory,
        "cells": area.cells,
        "delay_ps": mapped.delay_ps if mapped else None,
        "macros": [
            {"depth": m.depth, "width": m.width, "reads": m.reads, "writes": m.writes}
            for m in area.macros
        ],
    }


def _largest_first(design: DesignArea) -> list[ModuleArea]:
    return sorted(design.modules, key=lambda a: (-a.own_logic * a.count, -a.own_memory * a.count))


def _area_unit(technology: Technology | None) -> str:
    return technology.units.area.removeprefix("1 ") if technology else "unit"
