"""The steps of `poblano synth`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from poblano_flow.build_cache import build_root
from poblano_flow.design import Design
from poblano_flow.output import MANIFEST, check_replaceable, digests, write_folder
from poblano_flow.synthesis.hierarchy import DesignArea, synthesise
from poblano_flow.synthesis.report import area_csv, area_json, area_table, header_lines
from poblano_flow.synthesis.technology import select_library
from poblano_flow.synthesis.treemap import treemap_svg

__all__ = ["print_area", "synthesise_design", "write_results"]


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
