"""A decoded matrix product, as the parts of the tensor engine receive it."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, enum

from poblano.arith.lanes import LanePlan
from poblano.arith.modes import operand_formats
from poblano.commands import ADDRESS_WIDTH
from poblano.config import SliceConfiguration

__all__ = ["ResultKind", "job_layout", "place_layout"]


class ResultKind(enum.Enum, shape=2):
    """How results leave the engine."""

    FP32 = 0
    BF16 = 1
    MX = 2


def place_layout() -> data.StructLayout:
    """Return the place of an operand or result in L1, and whether its elements take 8 bits."""
    return data.StructLayout(
        {
            "codes": ADDRESS_WIDTH,
            "code_stride": ADDRESS_WIDTH,
            "scales": ADDRESS_WIDTH,
            "scale_stride": ADDRESS_WIDTH,
            "wide": 1,
        }
    )


def job_layout(configuration: SliceConfiguration) -> data.StructLayout:
    """Return the layout of a job: the command with axis m resolved by exchanging A and B.

    `last_block` is the number of k-blocks less one, `tail` the elements of the last k-block.
    """
    formats = configuration.tensor.formats
    return data.StructLayout(
        {
            "m": ADDRESS_WIDTH,
            "n": ADDRESS_WIDTH,
            "last_block": ADDRESS_WIDTH - 5,
            "tail": 6,
            "mode": LanePlan(formats).mode_width,
            "a": place_layout(),
            "b": place_layout(),
            "d": place_layout(),
            "result": ResultKind,
            "d_format": range(max(2, len(operand_formats(formats)))),
            "scale_rule": 2,
        }
    )
