"""`poblano asm`, `disasm` and `trace`: programs as text, as files, and on the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poblano_flow.options import ConfigOption, OverrideOption, PresetOption

if TYPE_CHECKING:
    from poblano.config import Configuration

__all__ = ["register"]

_Source = Annotated[Path, typer.Argument(metavar="FILE", help="The program.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("asm")(asm)
    app.command("disasm")(disasm)
    app.command("trace")(trace)


def asm(
    source: _Source,
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: FILE with the ending .bin.")
    ] = None,
) -> None:
    """Assemble a program into its binary form, which carries the configuration's hash.

    Checked before: fields against the command table, addresses against L1 and HBM, and that
    semaphores let every command be issued and end where they began.

    [bold]The text[/bold]

      .ring base=0xf000 words=16        where the rings of command words lie in L1
      .queue load_0                     the commands of a queue follow
      load.rows hbm=0 l1=0 length=4096 signal_a=1 signal_a_count=1
      .queue store_0
      store.rows hbm=8192 l1=0 length=4096 wait_a=1 wait_a_count=1   # a copy
    """
    from poblano_flow.output import write_file
    from poblano_sw.program_file import pack_program
    from poblano_sw.program_text import parse_program

    configuration = _configuration(preset, config, overrides)
    program = parse_program(configuration, source.read_text("utf-8"), source=str(source))
    target = output or source.with_suffix(".bin")
    data = pack_program(configuration, program)
    write_file(target, data)
    words = sum(map(len, program.queues.values()))
    print(f"{target}: {words} commands in {len(program.queues)} queues, {len(data)} bytes")


def disasm(
    source: _Source,
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
) -> None:
    """Print the text of a binary program."""
    from poblano_sw.program_file import unpack_program
    from poblano_sw.program_text import format_program

    configuration = _configuration(preset, config, overrides)
    program = unpack_program(configuration, source.read_bytes(), source=str(source))
    print(format_program(program), end="")


def trace(
    source: _Source,
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    load: Annotated[
        list[str] | None,
        typer.Option("--load", metavar="ADDRESS=FILE", help="Bytes for HBM port 0; repeatable."),
    ] = None,
    dump: Annotated[
        list[str] | None,
        typer.Option(
            "--dump", metavar="ADDRESS:LENGTH=FILE", help="Bytes of HBM port 0 at the end."
        ),
    ] = None,
    memory: Annotated[int, typer.Option(help="Bytes of each HBM port's memory.")] = 4 << 20,
    perfetto: Annotated[
        Path | None, typer.Option("--perfetto", help="Write a Chrome/Perfetto trace (JSON).")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--png", help="Draw a Gantt chart of the engines.")
    ] = None,
) -> None:
    """Run a binary program on the simulator and print when each command ran.

    Results are bit exact; cycles are the timing contract's with an ideal memory.
    """
    from poblano_flow.output import write_file
    from poblano_flow.program_trace import picture_bytes, read_memory, table, trace_json, write_back
    from poblano_sw.program_file import unpack_program
    from poblano_sw.simulator import Memories, simulate

    configuration = _configuration(preset, config, overrides)
    program = unpack_program(configuration, source.read_bytes(), source=str(source))
    memories = Memories(configuration.slice, memory)
    for text in load or ():
        read_memory(memories.hbm[0], text)
    ran = simulate(configuration, program, memories)
    for text in dump or ():
        write_back(memories.hbm[0], text)
    if perfetto is not None:
        write_file(perfetto, trace_json(ran, configuration).encode())
    if picture is not None:
        write_file(picture, picture_bytes(ran))
    from rich.console import Console

    Console().print(table(ran))


def _configuration(
    preset: str | None, config: Path | None, overrides: list[str] | None
) -> Configuration:
    from poblano_flow.options import selected_configuration
    from poblano_golden.errors import PoblanoError

    found = selected_configuration(preset, config, overrides)
    if found is None:
        raise PoblanoError("give --preset or --config: a program is made for one configuration")
    return found
