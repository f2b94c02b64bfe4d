"""What travels with a beat of elements through the vector engine."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

__all__ = ["beat_layout", "present_lanes"]


def beat_layout(lanes: int) -> data.StructLayout:
    """Return the layout of a beat's marks.

    valid:
        There is a beat.
    first, last:
        It is the first, the last of its row.
    end:
        It is the last of its command.
    count:
        Elements, the first in lane 0.
    """
    return data.StructLayout(
        {"valid": 1, "first": 1, "last": 1, "end": 1, "count": range(lanes + 1)}
    )


def present_lanes(beat: data.View, lanes: int) -> Value:
    """Return a bit a lane: it holds an element of the beat."""
    return Cat(beat.count > lane for lane in range(lanes))
