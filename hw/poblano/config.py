"""Configuration of a chip: one validated, typed, immutable object, and its hash.

Imports no Amaranth: software, verification and flows share this module with the hardware.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PipelineConfiguration(_Section):
    """Pipeline registers of a tensor unit, after each part of its datapath."""

    multiply: int = 1
    sum: int = 1
    round: int = 1
    add: int = 2


class TensorConfiguration(_Section):
    """A tensor engine: `rows x cols` units of one 32-element block dot product a cycle."""

    rows: int
    cols: int
    tile_rows: int = 4
    tile_cols: int = 4
    formats: tuple[str, ...] = (
        "mxfp4*mxfp4",
        "mxfp8_e4m3*mxfp4",
        "mxfp8_e4m3*mxfp8_e4m3",
        "mxint8*mxfp4",
        "mxint8*mxint8",
    )
    pipeline: PipelineConfiguration = PipelineConfiguration()


class L1Configuration(_Section):
    """The banked scratchpad of a slice; sizes in bytes."""

    size: int
    line: int
    banks: int = 4
