"""`poblano optimise`: search for better arithmetic, with synthesis as the cost."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(optimise)


def optimise(
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="dot32_mxfp4.")],
    liberty: Annotated[
        list[Path] | None,
        typer.Option("--liberty", "-l", metavar="FILE", help="Cells, .lib or .lib.gz; repeatable."),
    ] = None,
    tech: Annotated[
        str | None,
        typer.Option("--tech", metavar="NAME", help="A technology of constraints/tech, or a file."),
    ] = None,
    delay: Annotated[
        int, typer.Option("--target-delay", metavar="PS", min=1, help="Not to be passed.")
    ] = 5000,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Structures to try.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Of the annealing.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Default: build/optimise/UNIT-PS-SEED."),
    ] = None,
) -> None:
    """Anneal the gates and adders of a unit for the least area at a delay.

    Every step changes the structure of the unit a little, emits it and maps it by the script of
    `poblano synth`. What is best is proved: a lane's gates by all inputs, compressors by weight
    and use of every bit, additions by SAT, the whole by a million vectors. A search that was ended
    goes on where it was; the same seed gives the same search. DIR gets state.json and UNIT.json,
    which in constraints/structures is what the generator uses.

    [bold]Example[/bold]

      poblano optimise dot32_mxfp4 --liberty mine.lib --target-delay 1000 --steps 500
    """
    from rich.console import Console
    from rich.progress import Progress

    from poblano_flow.build_cache import build_root
    from poblano_flow.optimise.search import (
        Question,
        State,
        search,
        structure_file,
    )
    from poblano_flow.synthesis.technology import select_library

    library, _ = select_library(liberty, tech)
    question = Question(unit, library.digest, delay, seed, steps)
    folder = output or build_root() / "optimise" / f"{unit}-{delay}-{seed}"
    console = Console()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(unit, total=steps)

        def report(state: State) -> None:
            point = state.best[1]
            text = f"{unit}: best {point.kge:.3f} kGE, {point.delay_ps:.0f} ps"
            progress.update(task, completed=state.step, description=text)

        state = search(question, library, folder, report)
    path = folder / f"{unit}.json"
    path.write_text(structure_file(question, state, library), encoding="utf-8")
    first, best = state.curve[0], state.best[1]
    console.print(
        f"{unit}, {library.name}, {delay} ps asked: {best.kge:.3f} kGE at {best.delay_ps:.0f} ps "
        f"after {state.step} steps (first {first.kge:.3f} kGE at {first.delay_ps:.0f} ps)",
        highlight=False,
        soft_wrap=True,
    )
    console.print(f"{path}", soft_wrap=True, highlight=False)
