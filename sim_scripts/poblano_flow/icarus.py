"""Icarus Verilog builds and runs."""

from __future__ import annotations

import subprocess

from cocotb_tools.runner import Icarus

from poblano_flow.cocotb_runner import SupervisedRunner
from poblano_flow.sim_options import SimOptions
from poblano_flow.tools import program

__all__ = ["IcarusRunner", "toolchain"]


def toolchain() -> dict[str, str]:
    """Return the versions that a build depends on.

    Raises
    ------
    ToolMissingError
        If Icarus Verilog is not installed.
    """
    program("vvp")
    said = subprocess.run([program("iverilog"), "-V"], capture_output=True, text=True, check=False)
    return {"icarus": said.stdout.partition("\n")[0]}


class IcarusRunner(SupervisedRunner, Icarus):
    """cocotb's runner for Icarus; `vvp -n` ends at SIGINT, and closes its waveform.

    Parameters
    ----------
    options:
        What to build.
    """

    def __init__(self, options: SimOptions) -> None:
        super().__init__()
        self._options = options

    def _simulator_in_path(self) -> None:
        program("iverilog")

    def _build_command(self) -> list[list[str]]:
        self.waves = self._options.waves  # whatever $WAVES says
        return super()._build_command()

    def _test_command(self) -> list[list[str]]:
        assert self.request is not None
        self.waves = self.request.waveform is not None
        if self.request.waveform is not None:
            self.plusargs = [f"+dumpfile_path={self.request.waveform}"]
        self.test_args = ["-n"]
        return super()._test_command()

    def product_name(self, top: str) -> str:  # noqa: ARG002 (it is the same for all)
        """Return the name of the file that a build makes."""
        return self.sim_file.name
