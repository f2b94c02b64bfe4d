"""`poblano lint`: four tools read the emitted Verilog."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poblano_flow.options import BlockOption, ConfigOption, OverrideOption, PresetOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from poblano_flow.emission import Emission
    from poblano_flow.lint import LintResult

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(lint)


def lint(
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    block: BlockOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every preset and every block of the registry.")
    ] = False,
    tools: Annotated[
        str, typer.Option("--tools", metavar="NAME,NAME", help="Which tools read.")
    ] = "verilator,icarus,yosys,slang",
) -> None:
    """Let Verilator -Wall, Icarus, Yosys and slang read every distinct module of a design.

    Modules are read one by one over empty stubs of the modules inside, so that a design of
    thousands of units takes as long as its few kinds of unit. Findings that are none are listed
    by name, with the reason, in constraints/lint_waivers.yaml. The exit status is 1 if anything
    else is found, or if --all found a waiver that covers nothing.

    [bold]Examples[/bold]

      poblano lint --preset tiny
      poblano lint --block fp32_adder --tools verilator,slang
      poblano lint --all
    """
    from poblano_flow.design import every_design, select
    from poblano_flow.lint import lint as lint_emissions
    from poblano_flow.waivers import load_waivers

    names = chosen_tools(tools)
    designs = every_design() if everything else [select(preset, config, overrides, block)]
    waivers = load_waivers()

    def emissions() -> Iterator[Emission]:
        for design in designs:
            _progress(f"emitting {design.label}")
            yield design.emit()

    folder = Path("build", "lint", "all" if everything else designs[0].label)
    result = lint_emissions(emissions(), names, waivers, folder, _progress)
    _progress("")
    for finding in result.findings:
        print(finding)
    _print_table(result, names)
    unused = [waiver for waiver, count in result.waived.items() if count == 0]
    if everything:
        for waiver in unused:
            print(f"waiver covers nothing: {waiver.tool} {waiver.rule} {waiver.message}")
    if result.findings or (everything and unused):
        raise typer.Exit(1)


def chosen_tools(text: str) -> list[str]:
    """Return the tools that a list with commas names.

    Raises
    ------
    PoblanoError
        If it names an unknown tool, or none.
    """
    from poblano_flow.lint_tools import CHECKERS
    from poblano_golden.errors import PoblanoError

    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in CHECKERS]
    if unknown or not names:
        raise PoblanoError(
            f"--tools must name some of {', '.join(CHECKERS)}; got {', '.join(unknown) or 'none'}"
        )
    return list(dict.fromkeys(names))


def _print_table(result: LintResult, tools: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("tool", "modules", "findings", "waived", "result"):
        table.add_column(heading, justify="left" if heading in ("tool", "result") else "right")
    for tool in tools:
        findings = sum(finding.tool == tool for finding in result.findings)
        waived = sum(count for waiver, count in result.waived.items() if waiver.tool == tool)
        state = "[red]fails[/red]" if findings else "[green]clean[/green]"
        table.add_row(tool, str(result.modules), str(findings), str(waived), state)
    Console().print(table)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
