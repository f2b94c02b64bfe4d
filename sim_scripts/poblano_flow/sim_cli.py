"""`poblano test`, `poblano waves` and `poblano new bench`."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from poblano_flow.options import BlockOption
from poblano_flow.sim_options import SIMULATORS, check_simulator
from poblano_golden.errors import PoblanoError

if TYPE_CHECKING:
    from poblano_flow.regression import JobResult
    from poblano_flow.selection import BenchJob
    from poblano_flow.waves import View

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("test")(run_tests)
    app.command()(waves)
    new = typer.Typer(help="Write a file to start from.", no_args_is_help=True)
    new.command("bench")(new_bench)
    app.add_typer(new, name="new")


def run_tests(
    expression: Annotated[
        str, typer.Option("-k", metavar="EXPR", help="Words joined by and, or, not, ( ).")
    ] = "",
    sim: Annotated[
        str, typer.Option("--sim", metavar="NAME", help="verilator, icarus or all.")
    ] = "all",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of everything random.")] = 1,
    waves: Annotated[bool, typer.Option("--waves", help="A waveform of every run.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Simulations at a time.")
    ] = None,
    nightly: Annotated[bool, typer.Option("--nightly", help="The long variants too.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Testbenches can read every signal; slow.")
    ] = False,
    listing: Annotated[bool, typer.Option("--list", help="Name the tests; run none.")] = False,
    bench: Annotated[
        Path | None,
        typer.Option("--bench", metavar="FILE", help="A testbench of your own, for --block."),
    ] = None,
    block: BlockOption = None,
) -> None:
    """Run the benches of the blocks under Verilator and Icarus.

    A test is named BLOCK:VARIANT/SIMULATOR/TEST; a word of EXPR selects the names that contain
    it. A test that fails is run again with waves, and the message says where to look. All results
    go to build/test/results.xml. The exit status is 0 only if tests ran and every one passed.

    [bold]Examples[/bold]

      poblano test --sim verilator
      poblano test -k "fp32 and not million" --seed 7
      poblano test -k tensor_engine:tiny/verilator/random_products --waves
    """
    from poblano_flow.regression import Settings, results_path, run_all
    from poblano_flow.selection import plan, plan_file

    simulators = SIMULATORS if sim == "all" else (check_simulator(sim),)
    if (bench is None) != (block is None):
        raise PoblanoError("--bench and --block belong together; got one of them")
    if bench is not None and block is not None:
        selected = plan_file(bench, block, expression, simulators)
    else:
        selected = plan(expression, simulators, nightly=nightly)
    if listing:
        for job in selected:
            for name in job.tests:
                print(job.test_name(name))
        return
    at_a_time = min(jobs or os.cpu_count() or 1, len(selected))
    settings = Settings(seed, waves, at_a_time, debug)
    with _progress(len(selected)) as (started, finished):
        results = run_all(selected, settings, finished, started)
    for result in results:
        for report in result.reports:
            print(f"\n{report}")
    counts = Counter(case.status for result in results for case in result.cases)
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"\n{counts['passed']} passed, {counts['failed']} failed{skipped}: {results_path()}")
    if counts["failed"] or not counts["passed"]:
        raise typer.Exit(1)


@contextmanager
def _progress(
    total: int,
) -> Generator[tuple[Callable[[BenchJob], None], Callable[[JobResult], None]]]:
    """Show what runs on a terminal; print a line for every job that ended."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    running: list[str] = []
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def started(job: BenchJob) -> None:
            running.append(job.name)
            bar.update(task, description="  ".join(running))

        def finished(result: JobResult) -> None:
            running.remove(result.job.name)
            bar.update(task, advance=1, description="  ".join(running))
            word = "passed" if result.passed else "FAILED"
            line = f"{word}  {result.job.name}  {len(result.cases)} tests, {result.seconds:.1f} s"
            if console.is_terminal:
                bar.console.print(line, highlight=False, markup=False)
            else:
                print(line, flush=True)

        yield started, finished


def waves(
    file: Annotated[Path, typer.Argument(help="An FST or VCD file.")],
    around: Annotated[
        int | None, typer.Option("--around", metavar="CYCLE", help="Default: the end.")
    ] = None,
    span: Annotated[
        int, typer.Option("--span", min=0, metavar="N", help="Cycles before and after.")
    ] = 8,
    signals: Annotated[
        str | None,
        typer.Option("--signals", metavar="PATTERN", help="A part of the name, or with * and ?."),
    ] = None,
    clock: Annotated[
        str | None, typer.Option("--clock", metavar="NAME", help="Default: clk of the top.")
    ] = None,
) -> None:
    """Print values by clock cycle, and the transfers of the streams, decoded.

    A column holds what registers see at the rising edge that begins the cycle; '.' stands for no
    change. Streams are decoded by the manifest.json that a run leaves beside its waveform.

    [bold]Examples[/bold]

      poblano waves build/test/fp32_adder-two_stages/verilator/seed-1/waves.fst
      poblano waves waves.fst --around 120 --signals "*accumul*"
    """
    from poblano_flow.waves import view

    found = view(file, around=around, span=span, pattern=signals, clock=clock)
    width = shutil.get_terminal_size((100, 24)).columns
    for line in _table(found, width):
        print(line)


def _table(found: View, width: int) -> Iterator[str]:
    """Yield the lines of a view, in as many tables beside each other as the width asks for."""
    unit = "cycle" if found.clock is not None else "time"
    clock = f"of {found.clock}" if found.clock is not None else "(no clock)"
    first, last = found.columns[0], found.columns[-1]
    yield f"{found.wave.path}: {unit} {first} to {last} of 0 to {found.last} {clock}"
    names = [name.removeprefix(f"{found.wave.top}.") for name, _ in found.rows]
    label = max(len(unit), *map(len, names))
    cell = max(len(str(last)), *(len(text) for _, texts in found.rows for text in texts))
    step = max(1, (width - label) // (cell + 1))
    for start in range(0, len(found.columns), step):
        part = slice(start, start + step)
        yield ""
        yield f"{unit:{label}}" + "".join(f" {number:>{cell}}" for number in found.columns[part])
        for name, (_, texts) in zip(names, found.rows, strict=True):
            yield f"{name:{label}}" + "".join(f" {t:>{cell}}" for t in _marked(texts[part]))
    if found.transfers:
        yield ""
        stream = max(len(transfer.stream) for transfer in found.transfers)
        yield f"{'cycle':>8}  {'stream':{stream}}  payload"
        for transfer in sorted(found.transfers, key=lambda t: t.cycle):
            yield f"{transfer.cycle:8}  {transfer.stream:{stream}}  {transfer.text}"


def _marked(texts: Sequence[str]) -> list[str]:
    """Replace what repeats its left neighbour by a dot."""
    return [t if i == 0 or t != texts[i - 1] else "." for i, t in enumerate(texts)]


def new_bench(
    block: Annotated[str, typer.Argument(metavar="BLOCK", help="NAME[:VARIANT] of a block.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Default: BLOCK_bench.py."),
    ] = None,
) -> None:
    """Write a starter testbench for a block: drivers, scoreboard, seed and time limit.

    It runs as it is, and refuses to replace a file.

    [bold]Example[/bold]

      poblano new bench mx_quantiser -o quantiser_bench.py
    """
    from poblano_flow.new_bench import write_bench

    path = write_bench(block, output)
    print(f"{path}: run it with\n\n  poblano test --bench {path} --block {block}")
