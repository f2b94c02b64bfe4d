"""Figures of a whole slice on the RTL: operands and results in an ideal HBM."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from poblano.config import Configuration, load
from poblano.dma.timing import MEMORY_LATENCY
from poblano_flow.build_cache import build_root
from poblano_flow.matmul_job import MatmulJob
from poblano_flow.run_programs import build_system
from poblano_flow.run_streamed import plan_job, program_of, run_streamed
from poblano_flow.simulate import run
from poblano_flow.streamed_timing import check_contract
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXFP4
from poblano_golden.matmul import matmul, result
from poblano_sw.simulator import Memories, simulate

__all__ = ["contract", "utilisations"]

N, K = 1536, 576
PREFILL = 64

Figures = dict[str, dict[str, Any]]


def _figure(value: float, preset: str, how: str) -> dict[str, Any]:
    return {
        "value": value,
        "unit": "1",
        "preset": preset,
        "peer": None,
        "peer_value": None,
        "how": how,
    }


def _job(name: str, m: int) -> MatmulJob:
    numbers = np.random.default_rng(m)
    a, b = (
        quantise(numbers.standard_normal((rows, K), dtype=np.float32), MXFP4, "even")
        for rows in (m, N)
    )
    return MatmulJob(name, a, b, "mxfp4", "even")


def utilisations() -> Figures:
    """Return the utilisation of the HBM port in decode, and of the larger bound in prefill.

    And how far the simulator's cycles are from the RTL's.

    Raises
    ------
    AssertionError
        If the slice does not agree with the numpy model bit for bit.
    """
    configuration = load("bench", [])
    tensor, width = configuration.slice.tensor, configuration.slice.hbm.width
    jobs = [_job("decode", 1), _job("prefill", PREFILL)]
    used: list[tuple[float, float, str]] = []
    errors: list[float] = []
    for job, outcome in zip(jobs, run_streamed(configuration, jobs), strict=True):
        wanted, found = result(matmul(job.a, job.b), MXFP4, "even"), outcome.d
        assert isinstance(wanted, MxTensor)
        assert isinstance(found, MxTensor)
        if not (
            np.array_equal(found.codes, wanted.codes)
            and np.array_equal(found.scales, wanted.scales)
        ):
            raise AssertionError("the simulated slice must agree with the numpy model")
        # a store is done with its response; its last byte was written the memory's latency before
        cycles = outcome.cycles - MEMORY_LATENCY
        port = plan_job(configuration, job).product.moved_bytes / (width * cycles)
        macs = job.a.rows * N * K / (tensor.rows * tensor.cols * 32 * cycles)
        how = (
            f"RTL under Verilator, ideal memory, {job.a.rows}x{K} by {K}x{N}, MXFP4xMXFP4 to "
            f"MXFP4, {cycles} cycles from the first issue to the last byte written "
            f"({outcome.cycles} to the last response), {sum(outcome.beats)} beats, bit exact"
        )
        used.append((port, macs, how))
        errors.append(abs(_simulated(configuration, job) / outcome.cycles - 1))
    (decode, _, decode_how), (port, macs, prefill_how) = used
    return {
        "tensor.decode_port_utilisation": _figure(decode, "bench", decode_how),
        "tensor.prefill_from_hbm_utilisation": _figure(
            max(port, macs), "bench", f"{prefill_how}; of the tensor engine, the larger bound"
        ),
        "simulator.cycle_error": _figure(
            max(errors),
            "bench",
            "the simulator's cycles against the RTL's, the larger difference of the two streamed "
            "matrices, contention for L1 and for the memory's bus included in the RTL's",
        ),
    }


def _simulated(configuration: Configuration, job: MatmulJob) -> int:
    """Return the cycles of a job in the simulator, whose results must be the golden ones.

    Raises
    ------
    AssertionError
        If a byte differs.
    """
    plan = plan_job(configuration, job)
    memories = Memories(configuration.slice, plan.hbm_end)
    for address, data in plan.images(job.a, job.b):
        memories.hbm[0][address : address + len(data)] = data
    trace = simulate(configuration, program_of(configuration, plan), memories)
    if not np.array_equal(memories.hbm[0][plan.hbm_d :], plan.golden_bytes(job.a, job.b)):
        raise AssertionError("the simulator must agree with the numpy model")
    return trace.cycles


def contract() -> Figures:
    """Return how many of many random commands did not take what the timing contract says.

    And what a load of short rows costs.

    Raises
    ------
    PoblanoError
        If the bench does not report.
    """
    configuration = load("bench", [])
    folder = build_root() / "bench" / "contract"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "contract.json"
    path.unlink(missing_ok=True)
    ended = run(
        build_system(configuration),
        "poblano_verif.benches.contract",
        folder / "run",
        seed=1,
        environment={"POBLANO_CONTRACT_FILE": str(path)},
        limit=1200.0,
    )
    if not path.is_file():
        raise PoblanoError(f"the contract bench must report; it said {ended.cases[0].message}")
    report: dict[str, Any] = json.loads(path.read_text("utf-8"))
    counts: dict[str, dict[str, int]] = report["commands"]
    jobs = [_job("decode", 1), _job("prefill", PREFILL)]
    outcomes = run_streamed(configuration, jobs)
    streamed = sum(
        check_contract(plan_job(configuration, job), outcome, 0).mismatches
        for job, outcome in zip(jobs, outcomes, strict=True)
    )
    commands = sum(len(outcome.spans["tensor"]) for outcome in outcomes)
    alone = ", ".join(f"{entry['commands']} {name}" for name, entry in counts.items())
    how = (
        f"RTL under Verilator, ideal memory; random commands alone: {alone}; and the {commands} "
        "overlapping products of the two streamed matrices, beside loads and stores"
    )
    value = streamed + sum(entry["mismatches"] for entry in counts.values())
    one_run, short_rows = report["one_run"], report["short_rows"]
    rows_how = (
        f"RTL under Verilator, ideal memory: 1,024 rows of 90 bytes, one behind the other, loaded "
        f"row by row in {short_rows} cycles, against {one_run} as one run"
    )
    return {
        "timing.contract_mismatches": {**_figure(value, "bench", how), "unit": "commands"},
        "dma.unaligned_efficiency": _figure(one_run / short_rows, "bench", rows_how),
    }
