"""`poblano kernel`: kernels on the simulator and on the RTL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poblano_flow.options import ConfigOption, OverrideOption, PresetOption

if TYPE_CHECKING:
    from rich.console import Console

    from poblano_flow.kernel_run import KernelRun, OnRtl

__all__ = ["register"]

_LINES = 12
"""Source lines that the table shows."""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Kernels: layers of models as programs.")
    group.command("list")(list_kernels)
    group.command("run")(run_kernel)
    app.add_typer(group, name="kernel")


def list_kernels() -> None:
    """List the kernels with their sizes."""
    from poblano_sw.kernels.catalogue import CATALOGUE

    for name, entry in CATALOGUE.items():
        print(f"{name:18} {entry.summary}")
        print(f"{'':18} {' '.join(f'{key}={value}' for key, value in entry.shape.items())}")


def run_kernel(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A kernel of `poblano kernel list`.")],
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", "-s", metavar="NAME=N", help="A size; may be repeated."),
    ] = None,
    fmt: Annotated[
        str, typer.Option("--format", metavar="MX", help="Format of activations, keys and values.")
    ] = "mxint8",
    preset: PresetOption = None,
    config: ConfigOption = None,
    overrides: OverrideOption = None,
    seed: Annotated[int, typer.Option(help="Of the random numbers.")] = 1,
    rtl: Annotated[
        bool, typer.Option("--rtl", help="Run it on the RTL under Verilator too, and compare.")
    ] = False,
    perfetto: Annotated[
        Path | None, typer.Option("--perfetto", help="Write a Chrome/Perfetto trace (JSON).")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--png", help="Draw a Gantt chart of the engines.")
    ] = None,
) -> None:
    """Run a kernel with random numbers; say how long it took, where, and how exact it was.

    Every result is compared with the numpy model bit for bit, and with float64. The preset is
    bench unless another machine is named. Exit status 1 if a bit is wrong.

    [bold]Examples[/bold]

      poblano kernel run attention_decode --shape tokens=4096 --png decode.png
      poblano kernel run rms_norm -s rows=1 -s cols=2880 --rtl
    """
    from rich.console import Console

    from poblano_flow.kernel_run import parse_shape, run_on_rtl, run_on_simulator
    from poblano_flow.options import selected_configuration
    from poblano_flow.output import write_file
    from poblano_flow.program_trace import picture_bytes, trace_json
    from poblano_sw.kernels.catalogue import workload

    chosen = preset if preset or config else "bench"
    configuration = selected_configuration(chosen, config, overrides)
    assert configuration is not None
    work = workload(configuration, name, parse_shape(shape or []), fmt=fmt, seed=seed)
    ran = run_on_simulator(work)
    console = Console()
    _show(console, ran)
    if perfetto is not None:
        write_file(perfetto, trace_json(ran.trace, configuration).encode())
    if picture is not None:
        write_file(picture, picture_bytes(ran.trace))
    failed = bool(ran.wrong)
    if rtl:
        [beside] = run_on_rtl(configuration, [ran])
        _show_rtl(console, beside)
        failed = failed or beside.different > 0
    if failed:
        raise typer.Exit(1)


def _show(console: Console, ran: KernelRun) -> None:
    from rich import box
    from rich.table import Table

    work = ran.work
    configuration = work.builder.configuration
    microseconds = 1e6 * ran.trace.cycles / configuration.frequency
    console.print(
        f"{ran.trace.cycles:,} cycles on {configuration.name} ({microseconds:,.1f} us), "
        f"{sum(map(len, work.program.queues.values()))} commands, "
        f"{work.builder.l1_peak:,} bytes of L1"
    )
    console.print(
        f"HBM port: {work.port_bytes:,} bytes, {ran.port_utilisation:.3f} of its peak; "
        + ", ".join(f"{queue} busy {part:.3f}" for queue, part in ran.busy().items())
    )
    console.print(f"Against float64: relative error {ran.relative_error:.3g} (root mean square)")
    for line in ran.wrong:
        console.print(f"[red]wrong[/red] {line}")
    if not ran.wrong:
        console.print("Bit for bit as the numpy model says.")
    table = Table(box=box.SIMPLE, pad_edge=False)
    for title in ("line", "queue"):
        table.add_column(title)
    for title in ("commands", "cycles"):
        table.add_column(title, justify="right")
    for line, queue, count, cycles in ran.by_line()[:_LINES]:
        table.add_row(line, queue, f"{count:,}", f"{cycles:,}")
    console.print(table)


def _show_rtl(console: Console, beside: OnRtl) -> None:
    console.print(
        f"RTL: {beside.outcome.cycles:,} cycles, the simulator's differ by "
        f"{beside.cycle_error:+.2%}; {beside.different} bytes of HBM differ; the simulator was "
        f"{beside.speed:.1f} times as fast"
    )
