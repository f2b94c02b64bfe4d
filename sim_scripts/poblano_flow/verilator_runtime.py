"""Verilator's own sources, compiled once for all builds with the same tools and options.

They take longer to compile than a small model. A model without content, built with the same
options, tells which of them a build needs, and its make file compiles them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from poblano_flow.build_cache import Entry, cached
from poblano_flow.sim_options import SimOptions
from poblano_flow.tools import program

__all__ = ["MAKE_VARIABLES", "lend", "make_command", "runtime", "runtime_options", "toolchain"]

MAKE_VARIABLES = ("OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-Os", "CFG_CXXFLAGS_PCH_I=-include")
"""The last is an option of `verilated.mk` that the packaged Verilator leaves empty."""

_EMPTY = "module empty; reg x /*verilator public_flat_rw*/; endmodule\n"

Step = Callable[[Sequence[str], Path], None]
"""Runs a command in a folder, or raises `BuildError`."""


def toolchain() -> dict[str, str]:
    """Return the versions that a build depends on.

    Raises
    ------
    ToolMissingError
        If Verilator, make or the C++ compiler is not installed.
    """
    program("make")
    return {
        "verilator": _version(program("verilator")),
        "compiler": _version(program(os.environ.get("CXX", "c++"))),
    }


def _version(path: Path) -> str:
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return said.stdout.partition("\n")[0].strip()


def runtime_options(options: SimOptions) -> list[str]:
    """Return the options of Verilator that decide what its own sources are compiled for."""
    found = ["--threads", str(options.threads)] if options.threads > 1 else []
    if options.waves:
        found.append("--trace-fst" if options.wave_format == "fst" else "--trace-vcd")
    return found


def make_command(folder: Path, jobs: int, *targets: str) -> list[str]:
    """Return the command that compiles a model, or some targets of its make file."""
    compiler = [f"CXX={os.environ['CXX']}"] if "CXX" in os.environ else []
    command = ["make", "-j", str(jobs), "-C", str(folder), "-f", "Vtop.mk"]
    return [*command, *MAKE_VARIABLES, *compiler, *targets]


def runtime(options: SimOptions, jobs: int, step: Step) -> Entry:
    """Return the folder with the objects, compiled now if they are not there whole.

    Parameters
    ----------
    options:
        Of the build that will be linked with them.
    jobs:
        Compilers at a time.
    step:
        Runs the commands.
    """
    flags = runtime_options(options)
    recipe = {"tools": toolchain(), "options": flags, "make": MAKE_VARIABLES}

    def make(folder: Path) -> list[Path]:
        model = folder / "model"
        model.mkdir()
        (model / "empty.v").write_text(_EMPTY, encoding="utf-8")
        verilator = str(program("verilator"))
        step(
            [verilator, "-cc", "-Mdir", ".", "--prefix", "Vtop", "--vpi", *flags, "empty.v"], model
        )
        classes = (model / "Vtop_classes.mk").read_text("utf-8")
        section = classes.partition("VM_GLOBAL_FAST +=")[2].partition("\n\n")[0]
        objects = [f"{name}.o" for name in re.findall(r"\w+", section)]
        step(make_command(model, jobs, *objects), model)
        kept = [(model / name).rename(folder / name) for name in objects]
        shutil.rmtree(model)
        return kept

    return cached("verilator", "runtime", recipe, make)


def lend(runtime: Entry, folder: Path) -> None:
    """Put the objects where the make file of a build looks for them, newer than all sources."""
    for path in runtime.folder.glob("*.o"):
        shutil.copyfile(path, folder / path.name)
