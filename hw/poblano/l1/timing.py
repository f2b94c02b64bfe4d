"""Cycles of accesses to byte runs in L1; imports no Amaranth."""

from __future__ import annotations

__all__ = ["LINE_READER_LATENCY", "lines_touched", "run_cycles"]

LINE_READER_LATENCY = 2
"""Cycles from the one that emits a chunk to the one in which the chunk is at the output."""


def lines_touched(address: int, length: int, line: int) -> int:
    """Return how many lines of `line` bytes hold the `length` bytes at `address`."""
    return (address + length - 1) // line - address // line + 1


def run_cycles(address: int, length: int, line: int, chunk: int) -> int:
    """Return how many cycles a `LineReader` takes for a run, in chunks of `chunk` bytes."""
    straddles = address % line + min(chunk, length) > line
    return -(-length // chunk) + int(straddles)
