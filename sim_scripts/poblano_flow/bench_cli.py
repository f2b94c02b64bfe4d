"""`poblano bench`: measure the published figures."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(bench)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Figures to measure; all quick ones by default.")
    ] = None,
    slow: Annotated[bool, typer.Option("--all", help="The slow ones too.")] = False,
) -> None:
    """Measure figures and keep them in build/bench/results.json.

    A figure whose library or tool is absent is kept without a value, with the reason.
    Cell libraries are looked for where POBLANO_LIBERTY_DIR says.

    [bold]Example[/bold]

      poblano bench tensor.prefill_utilisation
    """
    from rich.console import Console
    from rich.table import Table

    from poblano_flow.bench import Figure, measure, results_path, save, selected

    console = Console()
    figures: dict[str, Figure] = {}
    for measurement in selected(names or [], slow=slow):
        with console.status(f"measuring {', '.join(measurement.names)}"):
            found = measure(measurement)
        save(found)
        figures |= found
        for name, figure in found.items():
            console.print(f"{name} = {_number(figure.value)} {figure.unit}", highlight=False)
    table = Table("figure", "value", "unit", "peer", "how", box=None, pad_edge=False)
    for name, figure in figures.items():
        peer = "" if figure.peer is None else f"{figure.peer}: {_number(figure.peer_value)}"
        table.add_row(name, _number(figure.value), figure.unit, peer, figure.how)
    console.print(table)
    console.print(f"kept in {results_path()}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
