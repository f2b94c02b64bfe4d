"""The steps of `poblano synth`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from poblano_flow.build_cache import build_root
from poblano_flow.design import Design
from poblano_flow.output import MANIFEST, check_replaceable, digests, write_folder
from poblano_flow.synthesis.activity import read_activity
from poblano_flow.synthesis.fpga import TARGETS, fit
from poblano_flow.synthesis.hierarchy import DesignArea, synthesise
from poblano_flow.synthesis.report import area_csv, area_json, area_table, header_lines
from poblano_flow.synthesis.technology import select_library
from poblano_flow.synthesis.timing import DEFAULT_ACTIVITY, Power, Timing, analyse
from poblano_flow.synthesis.treemap import treemap_svg
from poblano_golden.errors import PoblanoError

__all__ = [
    "print_area",
    "print_fit",
    "print_timings",
    "synthesise_design",
    "time_module",
    "timings_json",
    "write_results",
]


def synthesise_design(
    design: Design,
    console: Console,
    *,
    liberty: Sequence[Path] | None,
    tech: str | None,
    delay_ps: int,
    macro_bits: int,
) -> DesignArea:
    """Emit a design and map it, with a progress bar.

    Raises
    ------
    PoblanoError
        If the library cannot be used or a module cannot be mapped.
    """
    library, technology = select_library(liberty, tech)
    with console.status(f"emitting {design.label}"):
        emission = design.emit()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("mapping", total=None)

        def report(name: str, done: int, total: int) -> None:
            progress.update(task, description=name, completed=done, total=total)

        return synthesise(
            emission,
            library,
            technology,
            delay_ps=delay_ps,
            macro_bits=macro_bits,
            progress=report,
        )


def write_results(
    area: DesignArea, label: str, output: Path | None, *, force: bool, extra: dict[str, str]
) -> Path:
    """Write the results as a folder that appears whole; return it.

    Parameters
    ----------
    area:
        What was found.
    label:
        Names the design, and the folder if `output` is not given.
    output, force:
        The folder, and whether to replace one that something else made.
    extra:
        Further files, relative path to text.
    """
    folder = output or build_root() / "synth" / f"{label}-{area.library.digest[:8]}"
    check_replaceable(folder, force=force)
    header = header_lines(area, label)
    files = {
        "area.json": json.dumps(area_json(area, label), indent=1) + "\n",
        "area.csv": area_csv(area),
        "treemap.svg": treemap_svg(area, "; ".join((label, *header[1:3], "before layout"))),
        **extra,
    }
    for module in area.modules:
        if module.mapped is not None:
            files[f"netlist/{module.module.name}.v"] = module.mapped.netlist.read_text("utf-8")
    files[MANIFEST] = json.dumps({"header": header, "files": digests(files)}, indent=1) + "\n"
    write_folder(folder, files, force=force)
    return folder


def print_area(area: DesignArea, label: str, console: Console, rows: int) -> None:
    """Print the header and the table."""
    for line in header_lines(area, label):
        console.print(line, highlight=False, soft_wrap=True)
    console.print()
    console.print(area_table(area, rows))


def print_fit(design: Design, target: str, console: Console) -> None:
    """Place and route a design on an FPGA and print what it takes.

    Raises
    ------
    PoblanoError
        If there is no such target, or the design does not fit.
    """
    if target not in TARGETS:
        raise PoblanoError(f"--target must be one of {', '.join(TARGETS)}; got {target!r}")
    with console.status(f"placing and routing {design.label} on {TARGETS[target].device}"):
        found = fit(design.emit(), target)
    console.print(f"design     {design.label}", highlight=False)
    console.print(f"device     {found.device}, placed and routed", highlight=False)
    console.print(f"tools      {found.tool}", highlight=False)
    speed = "no clock" if found.megahertz is None else f"{found.megahertz:.1f} MHz"
    console.print(f"frequency  {speed}", highlight=False)
    for kind, (used, available) in found.used.items():
        share = f"{used / available:.1%}"
        console.print(f"  {kind:<16} {used:>8,} of {available:,} ({share})", highlight=False)


def time_module(
    design: DesignArea,
    name: str,
    frequency: int | None,
    *,
    constraints: Path | None,
    paths: int,
    wave: Path | None,
    scope: str | None,
) -> Timing:
    """Time one module of a design; `top` is the outermost.

    Parameters
    ----------
    design, name:
        The design, and the module's name or kind.
    frequency, constraints, paths:
        As in `analyse`.
    wave, scope:
        A simulation of the design, and where the module stands in it.

    Raises
    ------
    PoblanoError
        If there is no such module, or it cannot be timed.
    """
    area = design.top if name == "top" else design.find(name)
    activity = None if wave is None else read_activity(wave, scope, design, area)
    return analyse(design, area, frequency, constraints=constraints, paths=paths, activity=activity)


def print_timings(timings: Sequence[Timing], console: Console) -> None:
    """Print clock, power and the worst paths of every timed module."""
    for timing in timings:
        console.print(
            f"\n{timing.module}: clock of {timing.period:g} ns, no slack at "
            f"{timing.shortest_period:.3f} ns; power {_power(timing.default_power)} at "
            f"{DEFAULT_ACTIVITY:g} transitions a cycle (assumed); {timing.tool}, before layout",
            highlight=False, soft_wrap=True,
        )  # fmt: skip
        if timing.measured_power is not None:
            console.print(
                f"  {_power(timing.measured_power)} at the activity of {timing.activity_source}",
                highlight=False, soft_wrap=True,
            )  # fmt: skip
        for path in timing.paths:
            console.print(
                f"  slack {path.slack:8.3f} ns  {path.start} -> {path.end}",
                highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip


def timings_json(timings: Sequence[Timing]) -> str:
    """Return timings as JSON: nanoseconds and watts, before layout."""
    rows = [{k: v for k, v in asdict(timing).items() if k != "report"} for timing in timings]
    for row, timing in zip(rows, timings, strict=True):
        row["shortest_period"] = timing.shortest_period
    return json.dumps({"stage": "before layout", "modules": rows}, indent=1) + "\n"


def _power(power: Power) -> str:
    return f"{power.total * 1e3:.4g} mW"
