"""What the runners of both simulators share: programs under a time limit, and what they say."""

from __future__ import annotations

import contextlib
import logging
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO
from xml.etree.ElementTree import ParseError

from cocotb_tools.runner import PathLike, Runner

from poblano_flow.build_cache import BuildError
from poblano_flow.process import ProcessResult, supervise

__all__ = ["BUILD_LIMIT", "RunRequest", "SupervisedRunner"]

BUILD_LIMIT = 3600.0
"""Seconds that one command of a build may take."""

_LAST_LINES = 25
_NOT_INHERITED = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VERILATOR_ROOT")


@dataclass(frozen=True)
class RunRequest:
    """One run of a cocotb module against a build.

    Attributes
    ----------
    top, bench:
        Names of the Verilog top and of the Python module.
    folder:
        Where to run; `results.xml` and `log.txt` are written there.
    seed, test_filter:
        Passed to cocotb: the seed, and a regular expression of full test names.
    environment:
        Variables of the testbench.
    waveform, wave_window:
        The file to write, and the first and last simulation step in it.
    limit:
        Wall seconds.
    cancelled:
        Ends the run when set.
    """

    top: str
    bench: str
    folder: Path
    seed: int
    test_filter: str | None
    environment: Mapping[str, str]
    waveform: Path | None
    wave_window: tuple[int, int] | None
    limit: float
    cancelled: threading.Event | None


class SupervisedRunner(Runner):
    """A runner of cocotb whose commands end in a result, and within their limit."""

    request: RunRequest | None = None
    result: ProcessResult | None = None
    build_output: str = ""

    @abstractmethod
    def product_name(self, top: str) -> str:
        """Return the name of the one file of a build that a run needs."""

    def simulate(self, request: RunRequest, build: Path) -> ProcessResult:
        """Run a simulation against the build in a folder."""
        self.request = request
        self.log.setLevel(logging.CRITICAL)
        # Under pytest the runner judges the results and exits; `sim_results` judges them here.
        with contextlib.suppress(SystemExit, ParseError):
            self.test(
                request.bench,
                request.top,
                hdl_toplevel_lang="verilog",
                build_dir=build,
                test_dir=request.folder,
                results_xml=str(request.folder / "results.xml"),
                seed=request.seed,
                test_filter=request.test_filter,
                extra_env=request.environment,
            )
        assert self.result is not None
        return self.result

    def _execute_cmds(
        self,
        cmds: Sequence[list[str]],
        cwd: PathLike,
        stdout: TextIO | None = None,  # noqa: ARG002 (this class keeps its own logs)
    ) -> None:
        for command in cmds:
            if self.request is None:
                self.build_step(command, Path(cwd))
                continue
            self.result = supervise(
                command,
                folder=Path(cwd),
                environment=self._environment(),
                limit=self.request.limit,
                log=self.request.folder / "log.txt",
                cancelled=self.request.cancelled,
            )

    def build_step(self, command: Sequence[str], folder: Path) -> None:
        """Run one command of a build.

        Raises
        ------
        BuildError
            If it fails; the message ends with the last lines that it said.
        """
        result = supervise(
            command, folder=folder, environment=self._environment(), limit=BUILD_LIMIT
        )
        self.build_output += result.output
        if result.status != 0:
            raise BuildError(_failure(command, result))

    def _environment(self) -> dict[str, str]:
        return {name: text for name, text in self.env.items() if name not in _NOT_INHERITED}


def _failure(command: Sequence[str], result: ProcessResult) -> str:
    name = Path(command[0]).name
    lines = [line for line in result.output.splitlines() if line.strip()][-_LAST_LINES:]
    ending = f"ran longer than {BUILD_LIMIT:.0f} s" if result.timed_out else f"got {result.status}"
    said = "".join(f"\n  {line}" for line in lines)
    return f"{name}: a build must end with exit status 0; {ending}{said}"
