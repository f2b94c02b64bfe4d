"""Fit and frequency of a block on an FPGA: Yosys maps, nextpnr places and routes."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from poblano_flow.build_cache import BuildError, cached
from poblano_flow.emission import Emission
from poblano_flow.process import supervise
from poblano_flow.tools import ToolMissingError

__all__ = ["TARGETS", "FpgaFit", "fit"]

LIMIT = 3600.0
"""Seconds that mapping, and placement with routing, may take each."""


@dataclass(frozen=True)
class _Target:
    device: str
    options: tuple[str, ...]


TARGETS = {
    "ecp5": _Target("LFE5U-85F", ("--85k", "--package", "CABGA756", "--out-of-context")),
    "ice40": _Target("iCE40 HX8K", ("--hx8k", "--package", "ct256")),
}
"""Devices by `--target`. On ECP5 ports take no pins; on iCE40 every port bit takes one."""

_YOSYS = """
import sys
from pyosys import libyosys as ys
target, top = sys.argv[1:]
design = ys.Design()
ys.Pass.call(design, "read_verilog -sv -D SYNTHESIS source.v")
ys.Pass.call(design, f"synth_{target} -top {top} -json netlist.json")
"""


@dataclass(frozen=True)
class FpgaFit:
    """A block on a device, placed and routed.

    Attributes
    ----------
    device, tool:
        The device, and the versions of nextpnr and Yosys.
    megahertz:
        Highest frequency of the clock; None for a block without registers.
    used:
        Kind of cell to how many are used and how many there are.
    """

    device: str
    tool: str
    megahertz: float | None
    used: dict[str, tuple[int, int]]


def fit(emission: Emission, target: str) -> FpgaFit:
    """Place and route a design, or return what an earlier call found for the same text.

    Raises
    ------
    ToolMissingError
        If nextpnr for the target is not installed.
    BuildError
        If Yosys or nextpnr fails, as when the design does not fit.
    """
    package = f"yowasp-nextpnr-{target}"
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise ToolMissingError(
            f"--target {target} must have nextpnr: pip install {package}; got no such package"
        ) from None
    device = TARGETS[target]
    text = "\n".join(module.verilog for module in emission.modules)
    tool = f"nextpnr {version}, pyosys {metadata.version('pyosys')}"
    recipe = {"text": text, "tool": tool, "options": device.options}

    def make(folder: Path) -> list[Path]:
        (folder / "source.v").write_text(text, encoding="utf-8")
        _run(folder, ["-c", _YOSYS, target, emission.top.name])
        options = ["--json", "netlist.json", "--report", "report.json", "--seed", "1", "--quiet"]
        program = Path(sys.executable).with_name(package)
        _run(folder, [str(program), *device.options, *options, "--timing-allow-fail"])
        return [folder / "report.json"]

    entry = cached("fpga", f"{emission.top.name}-{target}", recipe, make)
    report: dict[str, Any] = json.loads((entry.folder / "report.json").read_text("utf-8"))
    speeds = [float(clock["achieved"]) for clock in report.get("fmax", {}).values()]
    return FpgaFit(
        device=device.device,
        tool=tool,
        megahertz=min(speeds, default=None),
        used={
            kind: (int(count["used"]), int(count["available"]))
            for kind, count in report["utilization"].items()
            if count["used"]
        },
    )


def _run(folder: Path, arguments: list[str]) -> None:
    """Run a Python program; its own errors are the message."""
    command = [sys.executable, *arguments]
    environment = {**os.environ, "YOSYS_MAX_THREADS": "1"}
    done = supervise(command, folder=folder, environment=environment, limit=LIMIT)
    if done.status != 0 or done.timed_out:
        errors = re.findall(r"^ERROR: (.*)$", done.output, re.MULTILINE)
        why = f"nothing within {LIMIT:.0f} s" if done.timed_out else (errors or ["none said"])[0]
        raise BuildError(f"a design must fit the FPGA; got {why}")
