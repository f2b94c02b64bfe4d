"""`poblano emit`: write Verilog and its side files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from poblano_flow.options import BlockOption, ConfigOption, OverrideOption, PresetOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(emit)


def emit(
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    block: BlockOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Default: build/emit/NAME-HASH."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace DIR even if something else made it.")
    ] = False,
) -> None:
    """Write Verilog, file list, manifest, SDC, FuseSoC .core and Bender.yml.

    The folder appears whole or not at all, and the same configuration always gives the same
    bytes. An earlier emission in DIR is replaced; anything else in it is left alone.

    [bold]Examples[/bold]

      poblano emit --preset tiny -o build/tiny
      poblano emit --preset bench -P slice.tensor.rows=4 -o build/half
      poblano emit --config mine.yaml
      poblano emit --block fp32_adder -o build/adder
    """
    from poblano_flow.design import select
    from poblano_flow.emit import emission_files
    from poblano_flow.output import check_replaceable, write_folder

    started = time.monotonic()
    design = select(preset, config, overrides, block)
    folder = output or Path("build", "emit", design.label)
    check_replaceable(folder, force=force)
    emission = design.emit()
    files = emission_files(emission, design.configuration)
    write_folder(folder, files, force=force)
    instances = sum(emission.instance_counts().values())
    size = sum(len(text) for name, text in files.items() if name.endswith(".v"))
    print(
        f"{folder}: {emission.top.name}, {len(emission.modules)} modules for {instances} "
        f"instances, {size / 1e6:.1f} MB of Verilog, {time.monotonic() - started:.1f} s"
    )
