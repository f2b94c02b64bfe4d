"""The published figures: what each is, how it is measured, and the file that keeps them."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from poblano.config import Configuration, load
from poblano_flow.build_cache import build_root
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXFP4
from poblano_golden.matmul import matmul, result

__all__ = ["MEASUREMENTS", "Figure", "Measurement", "measure", "results_path", "save", "selected"]


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    value:
        None where it could not be measured; `how` then says why.
    unit, preset:
        Of the value; the configuration that it was measured on.
    peer, peer_value:
        The best comparable thing, and its figure.
    how:
        How it was measured.
    """

    value: float | None
    unit: str
    preset: str
    peer: str | None
    peer_value: float | None
    how: str


@dataclass(frozen=True)
class Measurement:
    """Something that measures one figure or several together; `slow` ones run on request."""

    names: tuple[str, ...]
    run: Callable[[], dict[str, Figure]]
    slow: bool = False


def results_path() -> Path:
    """Return the file that the figures are kept in."""
    return build_root() / "bench" / "results.json"


def save(figures: dict[str, Figure]) -> Path:
    """Put figures into the results file, beside those that it holds already; return its path."""
    path = results_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known |= {name: asdict(figure) for name, figure in figures.items()}
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", "utf-8")
    scratch.replace(path)
    return path


def measure(measurement: Measurement) -> dict[str, Figure]:
    """Run a measurement; a fault that a user can cause becomes a figure without a value."""
    try:
        return measurement.run()
    except (PoblanoError, OSError) as error:
        return {
            name: Figure(None, "", "", None, None, f"not measured: {error}")
            for name in measurement.names
        }


def _prefill_utilisation() -> dict[str, Figure]:
    """64x576 by 576x1536 in MXFP4 on a simulated engine, checked against the numpy model."""
    from poblano_flow.matmul_job import MatmulJob
    from poblano_flow.run_matmuls import run_matmuls

    configuration = load("bench", [])
    numbers = np.random.default_rng(1)
    a, b = (
        quantise(numbers.standard_normal((rows, 576), dtype=np.float32), MXFP4, "even")
        for rows in (64, 1536)
    )
    [outcome] = run_matmuls(configuration, [MatmulJob("prefill", a, b, "mxfp4", "even")])
    wanted, found = result(matmul(a, b), MXFP4, "even"), outcome.d
    assert isinstance(wanted, MxTensor)
    assert isinstance(found, MxTensor)
    if not (
        np.array_equal(found.codes, wanted.codes) and np.array_equal(found.scales, wanted.scales)
    ):
        raise AssertionError("the simulated slice must agree with the numpy model")
    macs = 64 * 576 * 1536
    value = macs / (_peak_macs(configuration) * outcome.cycles)
    how = (
        f"RTL under Verilator, 64x576 by 576x1536, MXFP4xMXFP4 to MXFP4, operands and results in "
        f"L1, {outcome.cycles} cycles from issue to last byte, results bit exact"
    )
    return {"tensor.prefill_utilisation": Figure(value, "1", "bench", None, None, how)}


def _peak_macs(configuration: Configuration) -> int:
    tensor = configuration.slice.tensor
    return tensor.rows * tensor.cols * 32


_EMIT = """
import sys
from poblano.config import load
from poblano.tensor.engine import TensorEngine
from poblano_flow.emission import emit
size = sys.argv[1]
chip = load("bench", [f"slice.tensor.rows={size}", f"slice.tensor.cols={size}"])
emit(TensorEngine(configuration=chip.slice))
"""


def _emit_array(size: int) -> Callable[[], dict[str, Figure]]:
    def run() -> dict[str, Figure]:
        times: list[float] = []
        for _ in range(3):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-W", "ignore", "-c", _EMIT, str(size)], check=True)
            times.append(time.perf_counter() - began)
        how = (
            "wall time of a new Python process that emits the tensor engine, imports included, "
            "nothing cached; median of 3"
        )
        figure = Figure(
            statistics.median(times), "s", f"bench, {size}x{size} units", None, None, how
        )
        return {f"emit.array{size}_s": figure}

    return run


def _utilisations() -> dict[str, Figure]:
    from poblano_flow.bench_slice import utilisations

    return {name: Figure(**fields) for name, fields in utilisations().items()}


def _kernels() -> dict[str, Figure]:
    from poblano_flow.bench_kernels import figures

    return {name: Figure(**fields) for name, fields in figures().items()}


def _contract() -> dict[str, Figure]:
    from poblano_flow.bench_slice import contract

    return {name: Figure(**fields) for name, fields in contract().items()}


def _areas() -> dict[str, Figure]:
    from poblano_flow.area_figures import figures

    return {name: Figure(**fields) for name, fields in figures().items()}


def _arithmetic() -> dict[str, Figure]:
    from poblano_flow.arith_figures import figures

    return {name: Figure(**fields) for name, fields in figures().items()}


def _plain_arithmetic() -> dict[str, Figure]:
    from poblano_flow.arith_figures import plain_figures

    return {name: Figure(**fields) for name, fields in plain_figures().items()}


def _synthesis() -> dict[str, Figure]:
    from poblano_flow.synthesis.figures import slice_time

    return {name: Figure(**fields) for name, fields in slice_time().items()}


def _sweep() -> dict[str, Figure]:
    from poblano_flow.sweep.figures import speedups

    return {name: Figure(**fields) for name, fields in speedups().items()}


def _simulation() -> dict[str, Figure]:
    from poblano_flow.bench_sim import figures

    return {name: Figure(**fields) for name, fields in figures(load("bench", [])).items()}


def _noc(name: str, *arguments: int) -> Callable[[], dict[str, Figure]]:
    def run() -> dict[str, Figure]:
        from poblano_flow import noc_figures

        found = getattr(noc_figures, name)(*arguments)
        return {figure: Figure(**fields) for figure, fields in found.items()}

    return run


MEASUREMENTS: tuple[Measurement, ...] = (
    Measurement(("tensor.prefill_utilisation",), _prefill_utilisation),
    Measurement(
        (
            "tensor.decode_port_utilisation",
            "tensor.prefill_from_hbm_utilisation",
            "simulator.cycle_error",
        ),
        _utilisations,
    ),
    Measurement(("timing.contract_mismatches", "dma.unaligned_efficiency"), _contract),
    Measurement(
        (
            "attention.decode_port_utilisation",
            "attention.prefill_tensor_busy",
            "moe.expert_port_utilisation",
            "vector.softmax1024_passes",
            "simulator.speed_vs_rtl",
            "simulator.kernel_cycle_error",
        ),
        _kernels,
    ),
    Measurement(("emit.array16_s",), _emit_array(16)),
    Measurement(("emit.array32_s",), _emit_array(32)),
    Measurement(("area.dot32_mxfp4_kge", "area.unit_all_formats_kge"), _areas),
    Measurement(
        (
            "arith.dot32_mxfp4_relaxed_kge",
            "arith.dot32_mxfp4_fast_kge",
            "arith.dot32_mxfp4_fast_ns",
            "arith.gain_fp4_dot_vs_peer",
        ),
        _arithmetic,
    ),
    Measurement(("sim.speed_vs_stock_runner", "sim.build_vs_stock_runner"), _simulation),
    Measurement(("noc.router_cells",), _noc("cells")),
    Measurement(("noc.cycles_per_hop", "noc.cycles_per_hop_registered"), _noc("hops")),
    Measurement(("noc.saturation_4x4_p1", "noc.saturation_4x4_p4"), _noc("saturation", 4)),
    Measurement(("noc.saturation_8x8_p1", "noc.saturation_8x8_p4"), _noc("saturation", 8)),
    Measurement(("noc.random_packets_lost",), _noc("lost"), slow=True),
    Measurement(("synth.jalapeno_slice_s",), _synthesis, slow=True),
    Measurement(("arith.gain_fp4_dot",), _plain_arithmetic, slow=True),
    Measurement(("sweep.cold_speedup", "sweep.warm_speedup"), _sweep, slow=True),
)
"""Every measurement, the quick ones first."""


def selected(names: Iterable[str], *, slow: bool) -> list[Measurement]:
    """Return the measurements of the named figures, or all quick ones, and with `slow` all."""
    wanted = set(names)
    known = {name for measurement in MEASUREMENTS for name in measurement.names}
    if unknown := sorted(wanted - known):
        raise PoblanoError(f"a figure must be one of {', '.join(sorted(known))}; got {unknown[0]}")
    if wanted:
        return [m for m in MEASUREMENTS if wanted & set(m.names)]
    return [m for m in MEASUREMENTS if slow or not m.slow]
