"""The command `poblano`: its frame, and what becomes of an error.

Every command group is a module with a function `register(app)`; the modules import what their
commands need inside the commands, so that `poblano --help` answers at once.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import typer

from poblano_golden.errors import PoblanoError

__all__ = ["build_app", "main"]

COMMAND_MODULES = (
    "poblano_flow.config_cli",
    "poblano_flow.emit_cli",
    "poblano_flow.lint_cli",
    "poblano_flow.sim_cli",
    "poblano_flow.synth_cli",
    "poblano_flow.sweep_cli",
    "poblano_flow.optimise_cli",
    "poblano_flow.demo_cli",
    "poblano_flow.commands_cli",
    "poblano_flow.registers_cli",
    "poblano_flow.program_cli",
    "poblano_flow.kernel_cli",
    "poblano_flow.noc_cli",
    "poblano_flow.formal_cli",
    "poblano_flow.bench_cli",
    "poblano_flow.doctor_cli",
)
"""In the order of the help page."""

_HELP = """
Generate, check and simulate an accelerator for language-model inference.

[bold]A first walk[/bold]

  poblano doctor                              is everything installed?
  poblano config show bench                   a preset and its figures
  poblano emit --preset bench -o build/bench  Verilog and what flows need
  poblano lint --preset tiny                  four tools read it

A configuration is a preset's name or a YAML file; [bold]-P slice.tensor.rows=8[/bold] overrides
one value of it. Exit status: 0 done, 1 a check or a run failed, 2 the input cannot be taken.
POBLANO_DEBUG=1 shows the traceback behind an error.
"""


def build_app() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        name="poblano",
        help=_HELP,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    app.callback()(_root)
    for name in COMMAND_MODULES:
        importlib.import_module(name).register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"poblano {metadata.version('poblano')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; ends the process with the exit status that the help page lays down."""
    try:
        build_app()(args=None if arguments is None else list(arguments), prog_name="poblano")
    except PoblanoError as error:
        _fail(str(error), 2)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"poblano: {place}{(error.strerror or str(error)).lower()}", 1)
    except Exception as error:
        kind = type(error).__name__
        _fail(f"poblano: internal error, please report it: {kind}: {error}", 1)


def _fail(message: str, status: int) -> None:
    if os.environ.get("POBLANO_DEBUG") == "1":
        traceback.print_exc()
    print(message, file=sys.stderr)
    sys.exit(status)
