"""Cells of a module after Yosys's `synth`, in its own gates: a measure without any library."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from poblano_golden.errors import PoblanoError

__all__ = ["generic_cells"]

_JOB = """
import sys
from pyosys import libyosys as ys
top = sys.argv[1]
design = ys.Design()
ys.Pass.call(design, "read_verilog -sv source.v")
ys.Pass.call(design, f"synth -flatten -top {top}")
ys.Pass.call(design, "delete t:$scopeinfo")
ys.Pass.call(design, "tee -q -o stat.json stat -json")
"""


def generic_cells(source: str, top: str) -> int:
    """Return the cells of a module with everything below it, flattened.

    Parameters
    ----------
    source:
        Verilog of the module and everything below it.
    top:
        The module's name.

    Raises
    ------
    PoblanoError
        If Yosys fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "source.v").write_text(source, "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", _JOB, top],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PoblanoError(f"Yosys must take module {top}; it said {done.stdout[-300:]}")
        modules = json.loads((folder / "stat.json").read_text("utf-8"))["modules"]
    return int(modules[f"\\{top}"]["num_cells"])
