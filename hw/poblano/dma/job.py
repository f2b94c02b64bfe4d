"""A move on its way through a DMA engine: the decoded command, its rows, its bursts."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

from poblano.axi_limits import BOUNDARY
from poblano.commands import ADDRESS_WIDTH, HBM_ADDRESS_WIDTH
from poblano.commands.dma import PLANES_WIDTH

__all__ = ["burst_layout", "job_layout", "last_beat", "row_layout"]


def job_layout() -> data.StructLayout:
    """Return the layout of a decoded command, named as in the command table.

    With `indexed`, the rows' places in HBM come from the indices and there is one plane.
    """
    return data.StructLayout(
        {
            "hbm": HBM_ADDRESS_WIDTH,
            "l1": ADDRESS_WIDTH,
            "length": ADDRESS_WIDTH,
            "rows": ADDRESS_WIDTH,
            "planes": PLANES_WIDTH,
            "hbm_row_stride": HBM_ADDRESS_WIDTH,
            "hbm_plane_stride": HBM_ADDRESS_WIDTH,
            "l1_row_stride": ADDRESS_WIDTH,
            "l1_plane_stride": ADDRESS_WIDTH,
            "indices": ADDRESS_WIDTH,
            "indexed": 1,
        }
    )


def row_layout() -> data.StructLayout:
    """Return the layout of a row: `length` bytes that lie together on both sides.

    `first` and `last` mark the first and the last row of a command.
    """
    return data.StructLayout(
        {
            "hbm": HBM_ADDRESS_WIDTH,
            "l1": ADDRESS_WIDTH,
            "length": ADDRESS_WIDTH,
            "first": 1,
            "last": 1,
        }
    )


def burst_layout() -> data.StructLayout:
    """Return the layout of a burst: `bytes` bytes of a row; `first` and `last` of a command."""
    return data.StructLayout(
        {
            "hbm": HBM_ADDRESS_WIDTH,
            "l1": ADDRESS_WIDTH,
            "bytes": range(BOUNDARY + 1),
            "first": 1,
            "last": 1,
        }
    )


def last_beat(burst: data.View, width: int) -> Value:
    """Return AxLEN of a burst on a bus of `width` bytes: its beats less one."""
    lane_width = (width - 1).bit_length()
    return (burst.hbm[:lane_width] + burst.bytes - 1)[lane_width:]
