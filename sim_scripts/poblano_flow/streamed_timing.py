"""Holds a streamed product's run to the timing contract, and says where its cycles went."""

from __future__ import annotations

from dataclasses import dataclass

from poblano.tensor.timing import Timeline
from poblano_flow.matmul_job import StreamedOutcome
from poblano_sw.streamed_matmul import StreamedMatmul

__all__ = ["CATEGORIES", "ContractCheck", "check_contract"]

CATEGORIES = {
    "multiply": "useful multiplications",
    "masked": "multiplications of masked lanes: results past the edge of the product",
    "memory": "array waits for a command whose operands are on their way from HBM",
    "fetch": "array waits for operands from L1",
    "add": "array waits for an addition to the same accumulators",
    "drain": "array waits for a bank of accumulators, and the last results leave for HBM",
}
"""Where a slice's cycles go, and what that means."""


@dataclass(frozen=True)
class ContractCheck:
    """What a run took, beside what it must take.

    Attributes
    ----------
    mismatches:
        Products of the tensor engine that were not done when the contract says.
    where:
        Name of CATEGORIES to cycles; sums to the run's cycles.
    """

    mismatches: int
    where: dict[str, float]


def check_contract(plan: StreamedMatmul, outcome: StreamedOutcome, useful: float) -> ContractCheck:
    """Compare the end of every product with the contract.

    The contract is told when each was issued; nothing that other engines do may change the rest.

    Parameters
    ----------
    plan, outcome:
        What ran, and what came of it.
    useful:
        Cycles that the useful multiply-accumulates take at the array's peak.
    """
    timeline = Timeline(plan.configuration)
    where = dict.fromkeys(CATEGORIES, 0.0)
    mismatches = beats = 0
    free = 0  # cycle after the array's last beat
    for chunk, (issued, done) in enumerate(outcome.spans["tensor"]):
        accepted = max(issued, timeline.ready)  # an earlier one breaks the contract
        phases = timeline.run(plan.matmul_values(chunk), accepted)
        mismatches += (accepted, accepted + 1 + phases.cycles) != (issued, done)
        begin = accepted + 1 + phases.fill
        memory = min(begin, accepted + 1) - free
        where["memory"] += max(0, memory)
        where["fetch"] += begin - max(free, accepted + 1) + phases.fetch_wait
        where["add"] += phases.add_wait
        where["drain"] += phases.drain_wait
        beats += phases.beats
        free = begin + phases.beats + phases.fetch_wait + phases.add_wait + phases.drain_wait
    where["multiply"] = useful
    where["masked"] = beats - useful
    where["drain"] += outcome.cycles + 1 - free
    where["memory"] -= 1  # cycle 0 follows the first issue
    return ContractCheck(mismatches, where)
