"""Verilator builds that are lean: few public signals, shared code, a runtime compiled once.

cocotb's own runner makes every signal public, which forbids most optimisations. Here a generated
control file makes public only

- the ports of the top, for the testbench;
- the input ports of modules that occur several times, together with `no_inline`. Verilator then
  keeps such a module's logic in functions of its own, finds them equal for all instances, and
  emits them once. Without that, compile time grows with the number of instances.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TextIO

from cocotb_tools.runner import PathLike, Verilator

from poblano_flow.build_cache import cached
from poblano_flow.cocotb_runner import SupervisedRunner
from poblano_flow.emission import Emission, Module
from poblano_flow.sim_options import SimOptions
from poblano_flow.tools import program

__all__ = ["FLAGS", "VerilatorRunner", "control_file", "main_source", "toolchain"]

_VERILATE = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "-fno-dfg", "-fno-table")
_MAKE = ("OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-Os", "CFG_CXXFLAGS_PCH_I=-include")
"""The last is an option of `verilated.mk` that the packaged Verilator leaves empty."""

_STYLE_RULES = ("CASEINCOMPLETE", "INITIALDLY", "WIDTHEXPAND", "WIDTHTRUNC")
"""Warnings that Amaranth's way of writing Verilog raises; `poblano lint` judges them."""

FLAGS = (*_VERILATE, *_MAKE)
"""The options of every build, which belong to what its key is made of."""


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


def main_source() -> Path:
    """Return the C++ source of the program around the model."""
    return Path(str(files("poblano_flow") / "verilator_main.cpp"))


def control_file(emission: Emission, options: SimOptions) -> str:
    """Return Verilator's control file: what is public, and which modules share code or are apart.

    Parameters
    ----------
    emission:
        The design.
    options:
        `hierarchical` selects modules by kind.
    """
    lines = ["`verilator_config", *(f"lint_off -rule {rule}" for rule in _STYLE_RULES)]
    for port in emission.top.ports:
        access = "rw" if port.direction == "input" else "rd"
        lines.append(f'public_flat_{access} -module "{emission.top.name}" -var "{port.name}"')
    lines += [
        f'tracing_off -file "*/{module.name}.v"'
        for module in emission.modules
        if module.kind in options.untraced
    ]
    for module in _repeated(emission):
        if module.kind in options.hierarchical:
            lines.append(f'hier_block -module "{module.name}"')
        else:
            lines.append(f'no_inline -module "{module.name}"')
            lines += [
                f'public_flat_rd -module "{module.name}" -var "{port.name}"'
                for port in module.ports
                if port.direction == "input"
            ]
    return "\n".join(lines) + "\n"


def _repeated(emission: Emission) -> list[Module]:
    """Return the modules that occur several times, the top apart."""
    counts = emission.instance_counts()
    return [module for module in emission.modules[:-1] if counts[module.name] > 1]


class VerilatorRunner(SupervisedRunner, Verilator):
    """cocotb's runner for Verilator with another command line and another main program.

    Parameters
    ----------
    options:
        What to build.
    jobs:
        Compilers at a time.
    """

    def __init__(self, options: SimOptions, jobs: int = 1) -> None:
        super().__init__()
        self._options = options
        self._jobs = jobs

    def _simulator_in_path_build_only(self) -> None:
        self.executable = str(program("verilator"))

    def _build_command(self) -> list[list[str]]:
        options = self._options
        self.waves = False  # whatever $WAVES says; the trace is asked for here
        verilate, _ = super()._build_command()
        if not options.debug:
            verilate.remove("--public-flat-rw")
        stock = next(i for i, word in enumerate(verilate) if word.endswith("verilator.cpp"))
        verilate[stock] = str(main_source())
        verilate += _VERILATE
        if options.waves:
            verilate += ["--trace-fst" if options.wave_format == "fst" else "--trace-vcd"]
        if options.threads > 1:
            verilate += ["--threads", str(options.threads)]
        if options.hierarchical:
            # a path through a block and back looks like a loop from outside
            verilate += ["--hierarchical", "-Wno-UNOPTFLAT"]
        return [verilate, self._make()]

    def _make(self, *targets: str) -> list[str]:
        compiler = [f"CXX={os.environ['CXX']}"] if "CXX" in os.environ else []
        command = ["make", "-j", str(self._jobs), "-C", str(self.build_dir), "-f", "Vtop.mk"]
        return [*command, *_MAKE, *compiler, *targets]

    def _execute_cmds(
        self, cmds: Sequence[list[str]], cwd: PathLike, stdout: TextIO | None = None
    ) -> None:
        if self.request is None:
            super()._execute_cmds(cmds[:1], cwd, stdout)
            self._lend_runtime()
            cmds = cmds[1:]
        super()._execute_cmds(cmds, cwd, stdout)

    def _lend_runtime(self) -> None:
        """Put the objects of Verilator's own sources into the build, compiled once for all."""
        classes = (self.build_dir / "Vtop_classes.mk").read_text("utf-8")
        section = classes.partition("VM_GLOBAL_FAST +=")[2].partition("\n\n")[0]
        objects = [f"{name}.o" for name in re.findall(r"\w+", section)]
        shown = subprocess.run(
            [*self._make("verilated.o"), "-n", "-B"], capture_output=True, text=True, check=True
        )
        recipe = {"tools": toolchain(), "objects": objects, "command": shown.stdout.splitlines()}
        recipe["command"] = [line for line in recipe["command"] if "verilated.o" in line]

        def make(folder: Path) -> list[Path]:
            super(VerilatorRunner, self)._execute_cmds([self._make(*objects)], self.build_dir)
            return [Path(shutil.copyfile(self.build_dir / o, folder / o)) for o in objects]

        runtime = cached("verilator", "runtime", recipe, make)
        if not runtime.fresh:
            for name in objects:
                shutil.copyfile(runtime.folder / name, self.build_dir / name)

    def _test_command(self) -> list[list[str]]:
        assert self.request is not None
        command = [str(self.build_dir / self.request.top)]
        if self.request.waveform is not None:
            command += ["--trace", str(self.request.waveform)]
            if self.request.wave_window is not None:
                start, stop = self.request.wave_window
                command += ["--trace-from", str(start), "--trace-to", str(stop)]
        return [command]

    def product_name(self, top: str) -> str:
        """Return the name of the program that a build makes."""
        return top
