"""`poblano doctor`: what is installed, and how to get the rest."""

from __future__ import annotations

import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(doctor)


def doctor() -> None:
    """Check every tool and package; print the commands that install what is missing.

    Exit status 1 if something required is missing. Optional things make single commands richer.

    [bold]Example[/bold]

      poblano doctor
    """
    from rich.console import Console
    from rich.table import Table

    from poblano_flow.doctor import install_commands, survey

    checks = survey()
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "found", "needed", "state", "for"):
        table.add_column(heading, no_wrap=heading != "for")
    for check in checks:
        wrong = "missing" if check.found is None else "too old"
        bad = f"[red]{wrong}[/red]" if check.required else f"[yellow]{wrong}, optional[/yellow]"
        state = "[green]ok[/green]" if check.ok else bad
        table.add_row(check.name, check.found or "-", check.needed or "any", state, check.purpose)
    console = Console()
    console.print(table)
    required = [check for check in checks if check.required and not check.ok]
    optional = [check for check in checks if not check.required and not check.ok]
    for title, missing in (("required", required), ("optional", optional)):
        if missing:
            print(f"\nTo install what is missing ({title}):")
            for command in install_commands(missing):
                print(f"  {command}")
    if required:
        raise typer.Exit(1)
    print("\nEverything required is there.")
