"""How long the synthesis of a full slice takes."""

from __future__ import annotations

import time
from typing import Any

from poblano.config import load
from poblano_flow.build_cache import empty_build_folder
from poblano_flow.design import of_configuration
from poblano_flow.synthesis.hierarchy import WORKERS, synthesise
from poblano_flow.synthesis.technology import select_library

__all__ = ["slice_time"]


def slice_time() -> dict[str, dict[str, Any]]:
    """Return the seconds that the area of the full slice takes, fields as in `Figure`."""
    with empty_build_folder():
        began = time.perf_counter()
        library, technology = select_library(None, "nangate45")
        emission = of_configuration(load("jalapeno")).emit()
        area = synthesise(emission, library, technology)
        seconds = time.perf_counter() - began
    how = (
        f"emission and hierarchical area in Nangate 45, nothing kept, {WORKERS} modules at a time: "
        f"{len(area.modules)} distinct modules, {area.cells / 1e6:.1f} M cells, "
        f"{area.top.logic / library.gate / 1e6:.2f} MGE of logic and "
        f"{area.top.memory / 1e6:.2f} mm2 of SRAM macros, before layout"
    )
    return {
        "synth.jalapeno_slice_s": {
            "value": seconds,
            "unit": "s",
            "preset": "jalapeno",
            "peer": None,
            "peer_value": None,
            "how": how,
        }
    }
