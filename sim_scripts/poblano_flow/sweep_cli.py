"""`poblano sweep`: evaluate many configurations and show which are best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(sweep)


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="What to vary and to ask.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Points at a time.")] = 2,
    again: Annotated[
        int | None,
        typer.Option("--repeat", metavar="N", min=1, help="Evaluate N points a second time."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Default: build/sweep/NAME.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace DIR even if something else made it.")
    ] = False,
) -> None:
    """Evaluate the points of a sweep file; write tables, a Pareto plot and an HTML report.

    Points are kept by content: a sweep that was ended goes on where it was, and a second one with
    the same points is done at once. A point that fails is recorded with its reason. DIR gets
    results.csv, results.parquet (with pyarrow), pareto.svg and report.html. --repeat evaluates the
    first N points again with nothing kept, and fails if a figure differs.

    [bold]Example[/bold]

      poblano sweep constraints/sweeps/tensor.yaml --jobs 2
    """
    import json

    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from poblano_flow.build_cache import build_root
    from poblano_flow.output import MANIFEST, check_replaceable, digests, write_folder
    from poblano_flow.sweep.evaluate import Outcome
    from poblano_flow.sweep.report import (
        html_report,
        pareto_front,
        pareto_svg,
        parquet_bytes,
        results_csv,
    )
    from poblano_flow.sweep.run import repeat, run_sweep
    from poblano_flow.sweep.spec import load_sweep

    wanted = load_sweep(file)
    folder = output or build_root() / "sweep" / wanted.name
    check_replaceable(folder, force=force)
    console = Console()
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(wanted.name, total=None)

        def report(_: Outcome, total: int) -> None:
            progress.update(task, advance=1, total=total)

        outcomes = run_sweep(wanted, jobs=jobs, progress=report)
    files: dict[str, str | bytes] = {
        "results.csv": results_csv(outcomes),
        "pareto.svg": pareto_svg(wanted, outcomes),
        "report.html": html_report(wanted, outcomes, file.read_text(encoding="utf-8")),
    }
    table = parquet_bytes(outcomes)
    if table is not None:
        files["results.parquet"] = table
    files[MANIFEST] = json.dumps({"sweep": wanted.name, "files": digests(files)}, indent=1) + "\n"
    write_folder(folder, files, force=force)
    failed = [outcome for outcome in outcomes if outcome.error]
    kept = sum(outcome.cached for outcome in outcomes)
    front = pareto_front(wanted, outcomes)
    console.print(
        f"{wanted.name}: {len(outcomes)} points, {kept} kept from before, {len(failed)} failed, "
        f"{len(front)} on the Pareto front",
        highlight=False,
    )
    for outcome in failed[:5]:
        console.print(f"  failed {outcome.point}: {outcome.error}", markup=False, highlight=False)
    if table is None:
        console.print(
            "no results.parquet: pip install 'poblano[sweep]' brings pyarrow", markup=False
        )
    console.print(f"{folder}: {', '.join(files)}", soft_wrap=True, highlight=False)
    if again is not None:
        chosen = outcomes[:again]
        different = repeat(wanted, chosen, jobs=jobs)
        for old, new in different:
            console.print(f"  differs {old.point}: {old.figures} then {new.figures}", markup=False)
        console.print(f"{len(chosen)} points evaluated again, {len(different)} differ")
        if different:
            raise typer.Exit(1)
