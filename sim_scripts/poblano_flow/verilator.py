"""Verilator builds that are lean: few public signals, shared code, a runtime compiled once.

cocotb's own runner makes every signal public, which forbids most optimisations. Here a generated
control file makes public only

- the ports of the top, for the testbench;
- the input ports of modules that occur several times, together with `no_inline`. Verilator then
  keeps such a module's logic in functions of its own, finds them equal for all instances, and
  emits them once. Without that, compile time grows with the number of instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import TextIO

from cocotb_tools.runner import PathLike, Verilator

from poblano_flow.cocotb_runner import SupervisedRunner
from poblano_flow.emission import Emission, Module
from poblano_flow.sim_options import SimOptions
from poblano_flow.tools import program
from poblano_flow.verilator_runtime import (
    MAKE_VARIABLES,
    lend,
    make_command,
    runtime,
    runtime_options,
)

__all__ = ["FLAGS", "VerilatorRunner", "control_file", "main_source"]

_OPTIMISE = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "-fno-dfg", "-fno-table")
_SPLIT = ("--output-split", "5000")
_STYLE_RULES = ("CASEINCOMPLETE", "INITIALDLY", "WIDTHEXPAND", "WIDTHTRUNC")
"""Warnings that Amaranth's way of writing Verilog raises; `poblano lint` judges them."""

FLAGS = (*_OPTIMISE, *_SPLIT, *MAKE_VARIABLES)
"""The options of every build, which belong to what its key is made of."""


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
        verilate += (*_OPTIMISE, *_SPLIT)
        verilate += runtime_options(options)
        if options.hierarchical:
            # a path through a block and back looks like a loop from outside
            verilate += ["--hierarchical", "-Wno-UNOPTFLAT"]
        make = make_command(self.build_dir, self._jobs)
        return [verilate, make]

    def _execute_cmds(
        self, cmds: Sequence[list[str]], cwd: PathLike, stdout: TextIO | None = None
    ) -> None:
        if self.request is not None:
            super()._execute_cmds(cmds, cwd, stdout)
            return
        verilate, make = cmds
        with ThreadPoolExecutor(1) as beside:
            made = beside.submit(runtime, self._options, self._jobs, self.build_step)
            self.build_step(verilate, Path(cwd))
            lend(made.result(), self.build_dir)
        self.build_step(make, Path(cwd))

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
