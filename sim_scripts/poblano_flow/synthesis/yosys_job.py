"""One module mapped by Yosys and ABC, in a process of its own: `python yosys_job.py FOLDER`.

FOLDER holds `job.json` (fields of `poblano_flow.synthesis.mapping.Job`) and what it names; the
results are `result.json` and `netlist.v`. An error of Yosys ends the process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyosys import libyosys as ys  # pyright: ignore[reportAttributeAccessIssue]

_PARAMETERS = {"depth": "SIZE", "width": "WIDTH", "reads": "RD_PORTS", "writes": "WR_PORTS"}


def _macros(design: Any, least_bits: int) -> list[dict[str, Any]]:
    """Put black boxes in the place of large memories; return what each is."""
    run = ys.Pass.call
    found: list[dict[str, Any]] = []
    for cell in list(design.top_module().cells_.values()):
        if cell.type.str() != "$mem_v2":
            continue
        size = {
            name: cell.getParam(ys.IdString(f"\\{parameter}")).as_int()
            for name, parameter in _PARAMETERS.items()
        }
        if not size["writes"] or size["depth"] * size["width"] < least_bits:
            continue  # what is never written is a table, and made of cells
        kind = f"poblano_memory_{len(found)}"
        name = cell.name.str().removeprefix("\\")
        found.append({"kind": kind, "name": name, **size})
        widths = {port.str()[1:]: signal.size() for port, signal in cell.connections_.items()}
        ports = [
            f"{'output' if port == 'RD_DATA' else 'input'} [{width - 1}:0] {port}"
            for port, width in widths.items()
            if width
        ]
        stub = Path(f"{kind}.v")
        stub.write_text(f"(* blackbox *)\nmodule {kind}({', '.join(ports)});\nendmodule\n")
        run(design, f"read_verilog -lib {stub}")
        for parameter in list(cell.parameters.keys()):
            cell.unsetParam(parameter)
        cell.type = ys.IdString(f"\\{kind}")
    return found


def _plain_names(module: Any) -> None:
    """Turn the backslash that `rename -wire` leaves between wire and cell type into `_`."""
    for cell in list(module.cells_.values()):
        name = cell.name.str()
        if "\\" in name[1:]:
            module.rename(cell, ys.IdString("\\" + name[1:].replace("\\", "_")))


def main() -> None:
    """Do the job of the folder that the command line names, which is the current one."""
    job: dict[str, Any] = json.loads(Path("job.json").read_text(encoding="utf-8"))
    top = job["top"]
    library = f"-liberty {job['liberty']}"
    design = ys.Design()

    def run(command: str) -> None:
        ys.Pass.call(design, command)

    run(f"{job['reader']} {job['source']}")
    if job["stubs"]:
        run(f"read_verilog -lib {job['stubs']}")
    run(f"hierarchy -check -top {top}")
    run("proc")
    run("flatten")
    if job["prepare"]:
        run(job["prepare"])
    run(f"synth -top {top} -flatten -run begin:fine")
    macros = [] if job["macro_bits"] is None else _macros(design, job["macro_bits"])
    run(f"synth -top {top} -flatten -run fine:")
    run(f"dfflibmap {library}")
    run(f"abc {library} -script {job['script']}")
    run("opt_clean -purge")
    run(f"tee -q -o stat.json stat -json {library}")
    run(f"read_liberty -lib -overwrite -ignore_miss_func -ignore_miss_dir {job['liberty']}")
    run("rename -wire")
    _plain_names(design.top_module())
    run("write_verilog -noattr -noexpr -nodec netlist.v")
    modules: dict[str, Any] = json.loads(Path("stat.json").read_text(encoding="utf-8"))["modules"]
    found = modules[f"\\{top}"]
    result = {
        "area": float(found.get("area", 0)),
        "sequential_area": float(found.get("sequential_area", 0)),
        "cells": found["num_cells_by_type"],
        "macros": macros,
    }
    Path("result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
