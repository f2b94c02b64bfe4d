"""What a simulated slice is asked to multiply, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor

__all__ = ["MatmulJob", "MatmulOutcome", "StreamedOutcome"]


@dataclass(frozen=True, eq=False)
class MatmulJob:
    """One product: D = A times B transposed.

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
    """What the tensor engine did with one job whose operands lay in L1.

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
    """

    d: F32 | MxTensor
    cycles: int
    load_cycles: int
    wall_seconds: float


@dataclass(frozen=True, eq=False)
class StreamedOutcome:
    """What a slice did with one job whose operands lay in HBM.

    Attributes
    ----------
    d:
        The results as HBM holds them: float32 for the wide formats, or the blocks.
    cycles:
        From the first issue to the last write response.
    spans:
        For each queue the cycles in which each of its commands was issued and was done, counted
        from the first issue.
    beats:
        Beats that the HBM port read and wrote.
    wall_seconds:
        Time that the simulator took.
    waveform:
        The waveform, where one was asked for.
    """

    d: F32 | MxTensor
    cycles: int
    spans: Mapping[str, list[tuple[int, int]]]
    beats: tuple[int, int]
    wall_seconds: float
    waveform: Path | None = None
