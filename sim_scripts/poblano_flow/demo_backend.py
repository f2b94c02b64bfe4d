"""What the demonstration stands on: the simulated slice, the emitter, the area estimate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from poblano.config import Configuration
from poblano_flow.demo_report import AreaRow
from poblano_flow.demo_run import Backend
from poblano_flow.design import of_configuration
from poblano_flow.emit import emission_files
from poblano_flow.output import write_folder
from poblano_flow.run_streamed import run_streamed

__all__ = ["real_backend"]


def real_backend() -> Backend:
    """Return the real thing; nothing in it is a stand-in."""
    return Backend(run_streamed, _write_verilog, _estimate_area)


def _write_verilog(configuration: Configuration, folder: Path) -> None:
    design = of_configuration(configuration)
    write_folder(folder, emission_files(design.emit(), configuration), force=True)


def _estimate_area(configuration: Configuration) -> Sequence[AreaRow]:
    from poblano_flow.area_estimate import estimate

    return estimate(configuration)
