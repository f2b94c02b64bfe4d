"""Build a simulation of an emission, and run a cocotb module against it."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock

from poblano.config import Configuration
from poblano_flow import icarus, verilator, verilator_runtime
from poblano_flow.build_cache import build_root, cached, file_error
from poblano_flow.cocotb_runner import RunRequest, SupervisedRunner
from poblano_flow.emission import Emission
from poblano_flow.gtkw import write_gtkw
from poblano_flow.icarus import IcarusRunner
from poblano_flow.manifest import build_manifest, manifest_text
from poblano_flow.sidefiles import verilator_waivers
from poblano_flow.sim_options import STEPS_PER_NS, TIMESCALE, SimOptions, check_simulator
from poblano_flow.sim_results import Case, judge
from poblano_flow.verilator import VerilatorRunner
from poblano_flow.waivers import load_waivers
from poblano_flow.wave_file import wave_fault
from poblano_golden.errors import PoblanoError

__all__ = ["Build", "RunResult", "build", "build_root", "run"]

MANIFEST = "manifest.json"
_RTL = "rtl"
_OBJECTS = "obj"


@dataclass(frozen=True)
class Build:
    """A simulation that can be run.

    Attributes
    ----------
    simulator, options:
        What it was built with.
    top:
        Name of the outermost module.
    folder:
        Where it is; the Verilog is in `rtl`.
    fresh:
        Whether it was made just now; otherwise it was in the cache.
    seconds:
        Wall time of making it.
    """

    simulator: str
    options: SimOptions
    top: str
    folder: Path
    fresh: bool
    seconds: float

    @property
    def manifest(self) -> Path:
        """The manifest of the design."""
        return self.folder / MANIFEST


@dataclass(frozen=True)
class RunResult:
    """What a run left.

    Attributes
    ----------
    cases:
        Its tests, at least one.
    folder, log:
        Where it ran, and the simulator's output.
    seed:
        Its seed.
    waveform:
        The waveform, if one was asked for and can be read.
    wave_fault:
        Why there is none although one was asked for; else empty.
    seconds:
        Wall time.
    """

    cases: tuple[Case, ...]
    folder: Path
    log: Path
    seed: int
    waveform: Path | None
    wave_fault: str
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether tests ran and none failed."""
        return not any(case.status == "failed" for case in self.cases)

    @property
    def signals(self) -> Path | None:
        """The GTKWave save file of the waveform."""
        return None if self.waveform is None else self.waveform.with_suffix(".gtkw")


def build(
    emission: Emission,
    simulator: str = "verilator",
    *,
    options: SimOptions | None = None,
    configuration: Configuration | None = None,
    jobs: int = 1,
) -> Build:
    """Return a build of `emission`, from the cache if it is there whole.

    Parameters
    ----------
    emission:
        The design.
    simulator:
        `verilator` or `icarus`.
    options:
        Waves, threads and the like.
    configuration:
        For the manifest; by default the top component's own, if it has one.
    jobs:
        Compilers at a time.

    Raises
    ------
    ToolMissingError
        If the simulator or a compiler is not installed.
    BuildError
        If the simulator or a compiler reports an error.
    PoblanoError
        If the build folder cannot be written or the disk is full.
    """
    check_simulator(simulator)
    options = options or SimOptions()
    if configuration is None:
        found = emission.top.parameters.get("configuration")
        configuration = found if isinstance(found, Configuration) else None
    files = {f"{_RTL}/{module.name}.v": module.verilog for module in emission.modules}
    manifest = build_manifest(emission, configuration)
    files[MANIFEST] = manifest_text(manifest)
    if simulator == "verilator":
        files["control.vlt"] = verilator.control_file(emission, options)
        files["waivers.vlt"] = verilator_waivers(manifest, load_waivers())
        files["verilator_main.cpp"] = verilator.main_source().read_text("utf-8")
    recipe: dict[str, Any] = {
        "simulator": simulator,
        "tools": (verilator_runtime if simulator == "verilator" else icarus).toolchain(),
        "cocotb": metadata.version("cocotb"),
        "flags": verilator.FLAGS if simulator == "verilator" else [],
        "options": asdict(options),
        "files": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()},
    }
    top = emission.top.name
    label = top if configuration is None else f"{configuration.name}-{configuration.hash[:12]}"

    def make(folder: Path) -> list[Path]:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return [folder / MANIFEST, _make(simulator, options, folder, top, list(files), jobs)]

    entry = cached(simulator, label, recipe, make)
    return Build(simulator, options, top, entry.folder, entry.fresh, entry.seconds)


def _runner(simulator: str, options: SimOptions, jobs: int = 1) -> SupervisedRunner:
    if simulator == "verilator":
        return VerilatorRunner(options, jobs)
    return IcarusRunner(options)


def _make(
    simulator: str, options: SimOptions, folder: Path, top: str, files: list[str], jobs: int
) -> Path:
    """Compile; return the one file that a run needs."""
    runner = _runner(simulator, options, jobs)
    objects = folder / _OBJECTS
    runner.build(
        sources=[folder / name for name in files if name.endswith((".v", ".vlt"))],
        hdl_toplevel=top,
        build_dir=objects,
        timescale=TIMESCALE,
    )
    (folder / "build.log").write_text(runner.build_output, encoding="utf-8")
    product = objects / runner.product_name(top)
    kept = folder / product.name
    product.rename(kept)
    shutil.rmtree(objects)
    return kept


def run(
    build: Build,
    bench: str,
    folder: Path,
    *,
    seed: int,
    test_filter: str | None = None,
    waves: bool = False,
    wave_window: tuple[int, int] | None = None,
    environment: Mapping[str, str] | None = None,
    limit: float = 600.0,
    cancelled: threading.Event | None = None,
) -> RunResult:
    """Run a cocotb module against a build. A failing test is a result, not an error.

    The module finds the manifest's path in `POBLANO_MANIFEST` and the seed in
    `cocotb.RANDOM_SEED`.

    Parameters
    ----------
    build:
        The simulation.
    bench:
        Name of the Python module; it must be importable.
    folder:
        Where to run. Results of an earlier run there are replaced.
    seed:
        Of everything random.
    test_filter:
        Regular expression of the full names (`module.function`) of the tests to run.
    waves:
        Write `waves.fst` (or `.vcd`), and `waves.gtkw` beside it.
    wave_window:
        First and last simulation step in the waveform (Verilator only).
    environment:
        More variables for the testbench.
    limit:
        Wall seconds; a run that takes longer failed.
    cancelled:
        Ends the run when set.

    Raises
    ------
    PoblanoError
        If waves are asked of a build without, or the folder cannot be written.
    """
    if waves and not build.options.waves:
        raise PoblanoError("a run with waves needs a build with waves; got one without")
    folder = folder.resolve()
    suffix = build.options.wave_format if build.simulator == "verilator" else "fst"
    waveform = folder / f"waves.{suffix}" if waves else None
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            for stale in folder.iterdir():
                if stale.is_file():
                    stale.unlink()
            shutil.copyfile(build.manifest, folder / MANIFEST)
            request = RunRequest(
                top=build.top,
                bench=bench,
                folder=folder,
                seed=seed,
                test_filter=test_filter,
                environment={"POBLANO_MANIFEST": str(build.manifest), **(environment or {})},
                waveform=waveform,
                wave_window=wave_window,
                limit=limit,
                cancelled=cancelled,
            )
            process = _runner(build.simulator, build.options).simulate(request, build.folder)
            cases = judge(folder / "results.xml", bench, process)
            fault = "" if waveform is None else wave_fault(waveform)
            if waveform is not None and not fault:
                write_gtkw(waveform, json.loads(build.manifest.read_text("utf-8")), _marker(cases))
    except OSError as error:
        raise file_error(folder, error) from None
    return RunResult(
        cases=cases,
        folder=folder,
        log=folder / "log.txt",
        seed=seed,
        waveform=None if fault else waveform,
        wave_fault=fault,
        seconds=process.seconds,
    )


def _marker(cases: tuple[Case, ...]) -> int | None:
    """Return the simulation step at which the first failed case ended."""
    ends = [c.end_ns for c in cases if c.status == "failed" and c.end_ns is not None]
    return round(ends[0] * STEPS_PER_NS) if ends else None
