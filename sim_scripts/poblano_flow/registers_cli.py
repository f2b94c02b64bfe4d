"""`poblano registers`: the register map of a configuration for software and documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poblano_flow.options import OverrideOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(registers)


def registers(
    source: Annotated[
        str, typer.Argument(metavar="PRESET|FILE", help="A preset's name or a YAML or JSON file.")
    ],
    overrides: OverrideOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Default: build/registers/NAME-HASH."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace DIR even if something else made it.")
    ] = False,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print a reference page instead (docs/registers.md)."),
    ] = False,
) -> None:
    """Write the registers that a host sees: SystemRDL, a C header and HTML pages.

    The folder appears whole or not at all, and the same configuration always gives the same
    bytes. An earlier export in DIR is replaced; anything else in it is left alone.

    [bold]Examples[/bold]

      poblano registers bench -o build/registers
      poblano registers tiny -P slice.hbm.ports=2
      poblano registers jalapeno --markdown > docs/registers.md
    """
    from poblano.config import load
    from poblano.host.reference import markdown as reference
    from poblano_flow.output import check_replaceable, write_folder

    configuration = load(source, overrides or ())
    if markdown:
        print(reference(configuration), end="")
        return
    label = f"{configuration.name}-{configuration.hash[:12]}"
    folder = output or Path("build", "registers", label)
    check_replaceable(folder, force=force)
    from poblano.host.registers import register_map
    from poblano_flow.registers_export import NAME, register_files

    count = len(register_map(configuration).words)
    write_folder(folder, register_files(configuration), force=force)
    print(f"{folder}: {count} words, {NAME}.rdl, {NAME}.h, html/index.html")
