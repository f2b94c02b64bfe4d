"""`poblano demo`: a layer of a real language model on the generated hardware."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from poblano_flow.options import (
    ConfigOption,
    OverrideOption,
    PresetOption,
    selected_configuration,
)

__all__ = ["PROMPT", "register"]

PROMPT = (
    "Poblano peppers are dark green and mild. They are grown in Mexico, where they are roasted, "
    "peeled, and stuffed with cheese or meat. When they are dried they are called anchos, and "
    "cooks grind them into a deep red powder for rich sauces and soups. The flavour of a fresh "
    "poblano is"
)
"""What the demonstration reads unless it is told otherwise."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(demo)


def demo(
    prompt: Annotated[str, typer.Option("--prompt", metavar="TEXT", help="What to read.")] = PROMPT,
    layer: Annotated[int, typer.Option("--layer", metavar="N", help="The layer to run.")] = 15,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME|FILE", help="Formats of every matrix.")
    ] = "mixed",
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where the report goes.")
    ] = Path("build", "demo"),
    waves: Annotated[
        bool, typer.Option("--waves/--no-waves", help="Keep a waveform of one product.")
    ] = True,
) -> None:
    """Run one layer of SmolLM2-135M on the generated hardware, and compare every bit.

    The real weights and the activations that really enter the layer, as prefill (the whole
    prompt) and as decode (one token); the preset is bench unless another machine is named.
    Writes DIR/report.html; the exit status is 1 if anything is not bit exact.

    [bold]Examples[/bold]

      poblano demo
      poblano demo --layer 3 --prompt "The capital of France is"
      poblano demo --preset small --policy mxfp8
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from poblano_flow.demo_backend import real_backend
    from poblano_flow.demo_report import terminal_table
    from poblano_flow.demo_run import Request, run_demo
    from poblano_sw.model.llama import load_gguf
    from poblano_sw.model.locate import find_model
    from poblano_sw.model.policy import load_policy

    chosen = preset if preset or config else "bench"
    configuration = selected_configuration(chosen, config, overrides)
    assert configuration is not None
    request = Request(
        prompt=prompt,
        layer=layer,
        policy=load_policy(policy),
        configuration=configuration,
        folder=out,
        command=shlex.join(["poblano", *sys.argv[1:]]),
        waves=waves,
    )
    model = load_gguf(find_model())
    console = Console()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        report = run_demo(request, model, real_backend(), progress)
    console.print(terminal_table(report))
    for line in report.summary():
        console.print(line)
    console.print(f"Report: {out / 'report.html'}", soft_wrap=True)
    if not report.passed:
        raise typer.Exit(1)
