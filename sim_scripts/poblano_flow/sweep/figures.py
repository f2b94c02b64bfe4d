"""How much faster a sweep is than a script that is called for every point."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import Any

from poblano_flow.build_cache import empty_build_folder
from poblano_flow.sweep.evaluate import Outcome
from poblano_flow.sweep.run import run_sweep
from poblano_flow.sweep.search import feasible_grid
from poblano_flow.sweep.spec import Sweep

__all__ = ["speedups"]

POINTS = 200
SAMPLE = 10

_SWEEP = {
    "name": "speed",
    "base": "bench",
    "parameters": {
        "slice.tensor.rows": [2, 4, 6, 8],
        "slice.tensor.cols": [8, 16],
        "slice.tensor.tile_rows": [2, 3, 4],
        "slice.tensor.tile_cols": [4, 8],
        "slice.tensor.pipeline.multiply": [0, 1],
        "slice.tensor.pipeline.round": [0, 1],
        "slice.tensor.pipeline.add": [1, 2],
    },
    "objectives": {"area.kge": "minimise", "product.cycles": "minimise"},
    "synthesis": {"top": "unit", "tech": "nangate45"},
    "product": {"m": 32, "n": 128, "k": 256},
    "search": {"points": POINTS},
}

_SCRIPT = """
import json, sys
from poblano_flow.sweep.evaluate import evaluate, basis_of
from poblano_flow.sweep.spec import Sweep
sweep = Sweep.model_validate(json.loads(sys.argv[1]))
outcome = evaluate(sweep, json.loads(sys.argv[2]), basis_of(sweep))
sys.exit(outcome.error or 0)
"""


def speedups() -> dict[str, dict[str, Any]]:
    """Return the time of one script call a point over that of the sweep, fields as in `Figure`."""
    sweep = Sweep.model_validate(_SWEEP)
    points = list(feasible_grid(sweep))[:POINTS]
    single = 0.0
    for point in random.Random(1).sample(points, SAMPLE):
        with empty_build_folder():
            began = time.perf_counter()
            arguments = [json.dumps(_SWEEP), json.dumps(point)]
            subprocess.run([sys.executable, "-c", _SCRIPT, *arguments], check=True)
            single += (time.perf_counter() - began) / SAMPLE
    times: list[float] = []
    outcomes: list[Outcome] = []
    with empty_build_folder():
        for _ in range(2):
            began = time.perf_counter()
            outcomes = run_sweep(sweep, jobs=2)
            times.append(time.perf_counter() - began)
    failed = sum(bool(outcome.error) for outcome in outcomes)
    how = (
        f"{len(outcomes)} points of the tensor unit's area in Nangate 45 and a product's cycles, "
        f"{failed} failed, 2 processes; against one process a point with nothing kept, "
        f"{single:.1f} s each ({SAMPLE} points sampled, extrapolated)"
    )
    names = ("sweep.cold_speedup", "sweep.warm_speedup")
    return {
        name: {
            "value": single * len(outcomes) / seconds,
            "unit": "1",
            "preset": "bench",
            "peer": None,
            "peer_value": None,
            "how": f"{how}; the sweep took {seconds:.1f} s, {state}",
        }
        for name, seconds, state in zip(
            names, times, ("nothing kept", "everything kept"), strict=True
        )
    }
