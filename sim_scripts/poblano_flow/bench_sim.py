"""Our simulation build against that of cocotb's own runner: same Verilog, same testbench."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocotb_tools.runner import Verilator

from poblano.config import Configuration
from poblano_flow.build_cache import build_root
from poblano_flow.emission import Emission, emit
from poblano_flow.sim_options import TIMESCALE, SimOptions
from poblano_flow.simulate import build, run
from poblano_flow.tools import program
from poblano_golden.errors import PoblanoError
from poblano_verif.tensor_on_l1 import TensorOnL1

__all__ = ["Comparison", "Speed", "compare", "figures"]

BENCH = "poblano_verif.benches.sim_speed"


@dataclass(frozen=True)
class Speed:
    """A build and how fast it runs.

    Attributes
    ----------
    build_seconds:
        Wall time of the build, with nothing in any cache.
    build_processor_seconds:
        Processor time of all its programs.
    cycles_per_second:
        Simulated cycles in a second of processor time, while the testbench waits.
    """

    build_seconds: float
    build_processor_seconds: float
    cycles_per_second: float


@dataclass(frozen=True)
class Comparison:
    """One design, built and run in both ways."""

    ours: Speed
    stock: Speed


def compare(
    emission: Emission,
    configuration: Configuration,
    *,
    bench: str = BENCH,
    options: SimOptions | None = None,
) -> Comparison:
    """Measure our build and that of cocotb's own runner, one after the other.

    Parameters
    ----------
    emission, configuration:
        The design.
    bench:
        A cocotb module that writes what `poblano_verif.benches.sim_speed` writes.
    options:
        Of our build.

    Raises
    ------
    PoblanoError
        If a build or a run fails.
    """
    folder = build_root() / "bench" / "sim"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compilers = os.cpu_count() or 1
    with _environment(POBLANO_BUILD_DIR=str(folder / "ours")):
        clock = _Stopwatch()
        made = build(
            emission, options=options or SimOptions(), configuration=configuration, jobs=compilers
        )
        ours = clock.read()
        report = folder / "ours.json"
        result = run(
            made,
            bench,
            folder / "ours" / "run",
            seed=1,
            environment={"POBLANO_SPEED_FILE": str(report)},
        )
        if not result.passed:
            raise PoblanoError(f"the speed bench must pass; got {result.cases[0].message}")
    sources = [made.folder / "rtl" / f"{module.name}.v" for module in emission.modules]
    stock = _stock(sources, made.top, made.manifest, bench, folder)
    return Comparison(Speed(*ours, _rate(report)), stock)


def _stock(sources: list[Path], top: str, manifest: Path, bench: str, folder: Path) -> Speed:
    """Build and run with cocotb's own runner and nothing that it does not do by itself.

    Two options it needs to work at all: warnings must not end the build, and the packaged
    Verilator's make file leaves the name of the precompiled header's option empty.
    """
    report = folder / "stock.json"
    verilator = program("verilator").parent
    with _environment(
        PATH=f"{verilator}{os.pathsep}{os.environ['PATH']}",
        MAKEFLAGS="CFG_CXXFLAGS_PCH_I=-include",
        VERILATOR_ROOT=None,
        PYTEST_CURRENT_TEST=None,
    ):
        runner = Verilator()
        clock = _Stopwatch()
        try:
            runner.build(
                sources=sources,
                hdl_toplevel=top,
                build_dir=folder / "stock",
                build_args=["-Wno-fatal"],
                timescale=TIMESCALE,
                log_file=folder / "stock-build.log",
            )
            taken = clock.read()
            runner.test(
                bench,
                top,
                hdl_toplevel_lang="verilog",
                build_dir=folder / "stock",
                test_dir=folder / "stock",
                seed=1,
                extra_env={"POBLANO_MANIFEST": str(manifest), "POBLANO_SPEED_FILE": str(report)},
                log_file=folder / "stock-run.log",
            )
        except (RuntimeError, SystemExit) as error:
            raise PoblanoError(f"cocotb's own runner must succeed; got {error}") from None
    return Speed(*taken, _rate(report))


class _Stopwatch:
    """Wall time and processor time of child processes since it was made."""

    def __init__(self) -> None:
        self._began = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        times = os.times()
        return time.perf_counter(), times.children_user + times.children_system

    def read(self) -> tuple[float, float]:
        wall, processor = self._now()
        return wall - self._began[0], processor - self._began[1]


def _rate(report: Path) -> float:
    if not report.is_file():
        raise PoblanoError(f"{report}: the speed bench must write its figures; got no file")
    content: dict[str, Any] = json.loads(report.read_text("utf-8"))
    return float(content["cycles"]) / float(content["seconds"])


@contextlib.contextmanager
def _environment(**changes: str | None) -> Generator[None]:
    """Change environment variables, None removing one, and restore them."""
    before = {name: os.environ.get(name) for name in changes}
    for name, value in changes.items():
        _set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def figures(configuration: Configuration) -> dict[str, dict[str, Any]]:
    """Return the published figures of the simulation flow, for a slice of `configuration`.

    Each has `value`, `unit`, `preset`, `peer`, `peer_value` and `how`.
    """
    found = compare(emit(TensorOnL1(configuration=configuration)), configuration)
    ours, stock = found.ours, found.stock
    peer = "cocotb's own Verilator runner, same Verilog and testbench"
    common = {"unit": "1", "preset": configuration.name, "peer": peer}
    return {
        "sim.speed_vs_stock_runner": {
            **common,
            "value": ours.cycles_per_second / stock.cycles_per_second,
            "peer_value": 1.0,
            "how": (
                f"one slice, a 64x192x576 product while the testbench waits: "
                f"{ours.cycles_per_second:.0f} against {stock.cycles_per_second:.0f} cycles a "
                "second of processor time, one thread each"
            ),
        },
        "sim.build_vs_stock_runner": {
            **common,
            "value": stock.build_seconds / ours.build_seconds,
            "peer_value": 1.0,
            "how": (
                f"the same builds, nothing cached, {os.cpu_count()} compilers at a time: "
                f"{ours.build_seconds:.0f} against {stock.build_seconds:.0f} s wall "
                f"({ours.build_processor_seconds:.0f} against "
                f"{stock.build_processor_seconds:.0f} s of processor time)"
            ),
        },
    }
