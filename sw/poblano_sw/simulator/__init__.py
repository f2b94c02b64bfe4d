"""The instruction-set simulator of a slice: the same words as the RTL, bit exact, with cycles."""

from __future__ import annotations

from poblano_sw.simulator.machine import Span, Trace, simulate
from poblano_sw.simulator.memories import Memories

__all__ = ["Memories", "Span", "Trace", "simulate"]
