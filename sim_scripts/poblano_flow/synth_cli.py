"""`poblano synth`: area, timing and power of a design in a cell library, before layout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from poblano_flow.options import BlockOption, ConfigOption, OverrideOption, PresetOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(synth)


def synth(
    name: Annotated[str | None, typer.Argument(metavar="[PRESET]", help="A preset.")] = None,
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    block: BlockOption = None,
    liberty: Annotated[
        list[Path] | None,
        typer.Option("--liberty", "-l", metavar="FILE", help="Cells, .lib or .lib.gz; repeatable."),
    ] = None,
    tech: Annotated[
        str | None,
        typer.Option("--tech", metavar="NAME", help="A technology of constraints/tech, or a file."),
    ] = None,
    delay: Annotated[
        int, typer.Option("--delay", metavar="PS", min=1, help="Delay asked of ABC.")
    ] = 5000,
    macro_bits: Annotated[
        int,
        typer.Option("--macro-bits", metavar="BITS", min=1, help="Memories from here are macros."),
    ] = 4096,
    timing: Annotated[
        list[str] | None,
        typer.Option("--timing", "-t", metavar="MODULE", help="Time it by OpenSTA; repeatable."),
    ] = None,
    sdc: Annotated[
        Path | None,
        typer.Option("--sdc", metavar="FILE", help="In place of the emitted constraints."),
    ] = None,
    paths: Annotated[int, typer.Option("--paths", min=1, help="Worst paths to show.")] = 5,
    activity: Annotated[
        Path | None,
        typer.Option("--activity", metavar="WAVE", help="FST or VCD: power of a simulation."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option("--scope", help="Where the timed module stands in WAVE; default: outermost."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="FPGA", help="ecp5 or ice40, not a library.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Modules in the table.")] = 25,
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Default: build/synth/NAME-HASH."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace DIR even if something else made it.")
    ] = False,
) -> None:
    """Map a design to a cell library and say where its area is.

    Every distinct module is mapped once and counted as often as it occurs; memories of at least
    --macro-bits are SRAM macros. The library is --liberty, else --tech, else the PDK at $PDK_ROOT,
    else Debian's osu018. DIR gets area.json, area.csv, treemap.svg and the mapped netlists.

    --timing names modules (`top` for the outermost) that OpenSTA times with everything below them,
    by the emitted constraints and the technology's wires. Power is at a default activity, and with
    --activity at that of a simulation too.

    --target places and routes the design on an FPGA instead: cells used, and frequency.

    [bold]Examples[/bold]

      poblano synth tiny
      poblano synth jalapeno --tech nangate45
      poblano synth --block fp32_adder --liberty mine.lib
      poblano synth tiny --timing TensorUnit --timing OperandFetch
      poblano synth --block fp32_adder --target ecp5
      poblano synth --block fp32_adder -t top --activity waves.fst --scope top.adder
    """
    from rich.console import Console

    from poblano_flow.design import select
    from poblano_flow.synthesis.run import (
        print_area,
        print_fit,
        print_timings,
        synthesise_design,
        time_module,
        timings_json,
        write_results,
    )
    from poblano_golden.errors import PoblanoError

    if name is not None and preset is not None:
        raise PoblanoError(f"give one of PRESET and --preset; got {name} and {preset}")
    if (sdc or activity or scope) and len(timing or ()) != 1:
        raise PoblanoError(
            f"--sdc, --activity and --scope must go with one --timing; got {len(timing or ())}"
        )
    console = Console()
    design = select(name or preset, config, overrides, block)
    if target is not None:
        print_fit(design, target, console)
        return
    area = synthesise_design(
        design, console, liberty=liberty, tech=tech, delay_ps=delay, macro_bits=macro_bits
    )
    print_area(area, design.label, console, rows)
    frequency = None if design.configuration is None else design.configuration.frequency
    timings = [
        time_module(area, name, frequency, constraints=sdc, paths=paths, wave=activity, scope=scope)
        for name in timing or ()
    ]
    print_timings(timings, console)
    reports = {f"timing/{found.module}.rpt": found.report for found in timings}
    if timings:
        reports["timing.json"] = timings_json(timings)
    folder = write_results(area, design.label, output, force=force, extra=reports)
    console.print(f"{folder}: area.json, area.csv, treemap.svg, netlist/*.v", soft_wrap=True)
