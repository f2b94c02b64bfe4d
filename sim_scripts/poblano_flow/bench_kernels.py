"""Figures of kernels on the RTL, and of the simulator beside it."""

from __future__ import annotations

from typing import Any

from poblano.commands import MATMUL
from poblano.config import Configuration, load
from poblano.dma.timing import MEMORY_LATENCY
from poblano.tensor.timing import matmul_phases
from poblano_flow.kernel_run import KernelRun, OnRtl, run_on_rtl, run_on_simulator
from poblano_sw.kernels.catalogue import workload
from poblano_sw.kernels.workloads.workload import Workload

__all__ = ["figures"]

Figures = dict[str, dict[str, Any]]

_KERNELS = {
    "decode": ("attention_decode", {"tokens": 2048, "heads": 8, "chunk": 512, "sinks": 1}),
    "prefill": ("attention_prefill", {"tokens": 512, "heads": 2}),
    "moe": ("moe", {"hidden": 1440, "intermediate": 1440, "chosen": 2, "piece": 288}),
    "softmax": ("softmax", {"rows": 1, "cols": 1024, "times": 2}),
}


def figures() -> Figures:
    """Return the figures of attention, experts and softmax on the RTL, and of the simulator.

    Raises
    ------
    AssertionError
        If any byte of HBM differs between RTL, simulator and numpy model.
    """
    configuration = load("bench", [])
    runs = {
        key: run_on_simulator(workload(configuration, name, shape))
        for key, (name, shape) in _KERNELS.items()
    }
    for ran in runs.values():
        if ran.wrong:
            raise AssertionError("; ".join(ran.wrong))
    beside = dict(zip(runs, run_on_rtl(configuration, list(runs.values())), strict=True))
    for key, rtl in beside.items():
        if rtl.different:
            raise AssertionError(f"{key}: {rtl.different} bytes differ from the simulator's")
    return {
        "attention.decode_port_utilisation": _port(configuration, runs["decode"], beside["decode"]),
        "attention.prefill_tensor_busy": _busy(configuration, runs["prefill"], beside["prefill"]),
        "moe.expert_port_utilisation": _port(configuration, runs["moe"], beside["moe"]),
        "vector.softmax1024_passes": _passes(configuration, beside["softmax"]),
        **_simulator(beside),
    }


def _figure(value: float, how: str, unit: str = "1") -> dict[str, Any]:
    return {
        "value": value,
        "unit": unit,
        "preset": "bench",
        "peer": None,
        "peer_value": None,
        "how": how,
    }


def _cycles(rtl: OnRtl) -> int:
    """Return the cycles to the last byte written; a store is done with its response."""
    return rtl.outcome.cycles - MEMORY_LATENCY


def _port(configuration: Configuration, ran: KernelRun, rtl: OnRtl) -> dict[str, Any]:
    cycles, moved = _cycles(rtl), ran.work.port_bytes
    how = (
        f"RTL under Verilator, ideal memory: {moved} unpadded bytes in {cycles} cycles, everything "
        "counted, every byte of HBM as simulator and numpy model say"
    )
    return _figure(moved / (configuration.slice.hbm.width * cycles), how)


def _busy(configuration: Configuration, ran: KernelRun, rtl: OnRtl) -> dict[str, Any]:
    beats = _beats(configuration, ran.work)
    cycles = _cycles(rtl)
    how = (
        f"RTL under Verilator, ideal memory: causal attention of 512 tokens, two heads of 64; "
        f"{beats} cycles in which the array multiplies, of {cycles}"
    )
    return _figure(beats / cycles, how)


def _beats(configuration: Configuration, work: Workload) -> int:
    """Return the cycles in which the array multiplies."""
    return sum(
        matmul_phases(configuration.slice, MATMUL.decode(word)).beats
        for word in work.program.queues["tensor"]
    )


def _passes(configuration: Configuration, rtl: OnRtl) -> dict[str, Any]:
    spans = rtl.outcome.spans["vector"]
    second = spans[len(spans) // 2 :]
    cycles = second[-1][1] - second[0][0] - 1
    lanes = configuration.slice.vector.lanes
    how = (
        f"RTL under Verilator: softmax of 1,024 values in L1, from the first issue of its "
        f"{len(second)} commands to the last byte written {cycles} cycles; {lanes} lanes"
    )
    return _figure(cycles * lanes / 1024, how, "passes")


def _simulator(beside: dict[str, OnRtl]) -> Figures:
    real = [beside[key] for key in ("decode", "prefill", "moe")]
    speed = sum(rtl.outcome.wall_seconds for rtl in real)
    simulated = sum(rtl.outcome.wall_seconds / rtl.speed for rtl in real)
    error = max(abs(rtl.cycle_error) for rtl in real)
    told = ", ".join(
        f"{key} {rtl.speed:.1f} times, cycles {rtl.cycle_error:+.4f}" for key, rtl in beside.items()
    )
    return {
        "simulator.speed_vs_rtl": _figure(
            speed / simulated, f"wall time of the same programs, loading included for both: {told}"
        ),
        "simulator.kernel_cycle_error": _figure(error, f"the largest of the kernels: {told}"),
    }
