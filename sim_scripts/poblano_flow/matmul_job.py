"""What a simulated slice is asked to multiply, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor

__all__ = ["MatmulJob", "MatmulOutcome"]


@dataclass(frozen=True, eq=False)
class MatmulJob:
    """One `tensor.matmul`: D = A times B transposed.

    Parameters
    ----------
    name:
        For messages and file names.
    a, b:
        The operands, [M, K] and [N, K].
    result:
        The format of D: `fp32`, `bf16` or an MX format's name.
    rule, axis:
        Scale rule and axis of the blocks of an MX result.
    """

    name: str
    a: MxTensor
    b: MxTensor
    result: str = "fp32"
    rule: str = "floor"
    axis: Literal["n", "m"] = "n"


@dataclass(frozen=True, eq=False)
class MatmulOutcome:
    """What the hardware did with one job.

    Attributes
    ----------
    d:
        The results as read back: float32 for the wide formats, or the blocks.
    cycles:
        From the command's issue to the last byte written.
    load_cycles:
        Cycles in which operands were written to L1 and results read back.
    wall_seconds:
        Time that the simulator took for both.
    waveform:
        The waveform, where one was asked for.
    """

    d: F32 | MxTensor
    cycles: int
    load_cycles: int
    wall_seconds: float
    waveform: Path | None = None
