"""Limits of an AXI4 burst (AMBA AXI4, ARM IHI 0022); imports no Amaranth."""

from __future__ import annotations

__all__ = ["BOUNDARY", "MAX_BEATS"]

MAX_BEATS = 256
"""Beats of the longest INCR burst."""

BOUNDARY = 4096
"""Bytes of the aligned block that a burst must not leave."""
