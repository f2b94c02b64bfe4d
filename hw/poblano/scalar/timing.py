"""Cycles of the scalar engine: a published function of what a program executes; no Amaranth.

A run's first instruction, and every instruction that follows one of another block or a transfer,
costs what it takes to reach it; then it takes its own cycles. Whatever it waits for (L1, a queue,
a semaphore) comes on top, at one place: between `before` and `after`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from poblano.config import SliceConfiguration
from poblano.scalar.instructions import BLOCK_BYTES, Instruction, Kind

__all__ = [
    "BEGIN_CYCLES",
    "BLOCK_COST",
    "MULTIPLY_STEPS",
    "TRANSFER_CYCLES",
    "Cost",
    "Step",
    "cost",
    "run_cycles",
]

BEGIN_CYCLES = 1
"""Cycles in which a run's command is checked."""

TRANSFER_CYCLES = 1
"""Cycles to go to an instruction of the block at hand by a branch, jump, call or return."""

MULTIPLY_STEPS = 4
"""Steps of a product: 16 bits of the second factor each."""


@dataclass(frozen=True)
class Cost:
    """Cycles of an instruction or of reading a block of code.

    Parameters
    ----------
    before:
        Cycles from its first one to the one in which it asks for what it may wait for.
    after:
        Cycles from the one in which it gets that to the first one after it.
    """

    before: int
    after: int

    @property
    def total(self) -> int:
        """Cycles without a wait."""
        return self.before + self.after


BLOCK_COST = Cost(0, 3)
"""Of reading the block of the next instruction, in place of `TRANSFER_CYCLES`."""

_SIMPLE = Cost(0, 1)
_COSTS = {
    Kind.MULTIPLY: Cost(0, MULTIPLY_STEPS + 2),
    Kind.LOAD: Cost(1, 3),
    Kind.STORE: Cost(1, 1),
    Kind.WORD: Cost(1, 2),
}


def cost(kind: Kind) -> Cost:
    """Return the cycles of an instruction."""
    return _COSTS.get(kind, _SIMPLE)


@dataclass(frozen=True)
class Step:
    """An executed instruction.

    Parameters
    ----------
    pc:
        Its address.
    instruction:
        What it is.
    transfers:
        Whether it goes to another instruction than the next: a branch that is taken, a jump, a
        call, a return.
    waits:
        Cycles that it waited for L1, a queue or a semaphore, and that reading its block waited
        for L1.
    """

    pc: int
    instruction: Instruction
    transfers: bool = False
    waits: int = 0


def run_cycles(
    configuration: SliceConfiguration, values: Mapping[str, int], steps: Iterable[Step]
) -> int:
    """Return the cycles of a `scalar.run` from issue to `halt`.

    Parameters
    ----------
    configuration, values:
        The slice, and the command's fields; every configuration and every value has the same
        cycles.
    steps:
        What the program executes, in order.
    """
    del configuration, values
    cycles = BEGIN_CYCLES
    block, transferred = -1, False
    for step in steps:
        if step.pc // BLOCK_BYTES != block:
            block = step.pc // BLOCK_BYTES
            cycles += BLOCK_COST.total
        elif transferred:
            cycles += TRANSFER_CYCLES
        transferred = step.transfers
        cycles += cost(step.instruction.kind).total + step.waits
    return cycles
