"""Which lanes of the data bus a beat uses."""

from __future__ import annotations

from amaranth.hdl import *

__all__ = ["lane_mask"]


def lane_mask(low: Value, top: Value, width: int) -> Value:
    """Return one bit for each of `width` lanes: 1 from lane `low` to lane `top`."""
    from_low = Cat(low <= lane for lane in range(width - 1))
    to_top = Cat(top >= lane for lane in range(1, width))
    return Cat(from_low, C(1)) & Cat(C(1), to_top)
