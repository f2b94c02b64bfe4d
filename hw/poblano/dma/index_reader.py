"""Reads a list of indices out of L1, a line at a time."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.dma.timing import INDEX_BYTES, INDEX_SHIFT

__all__ = ["IndexReader"]


class IndexReader(Component):
    """Gives one uint32 a cycle from a list in L1; a new line takes two cycles more.

    Parameters
    ----------
    line, lines:
        Bytes of a line, and lines of L1.

    Members
    -------
    start, address:
        Begins a list, at a multiple of four bytes.
    wanted:
        The list is not over; while 0 nothing is read.
    index, valid, taken:
        The next index, whether it is there, and 1 for a cycle in which it is taken.
    memory, memory_data:
        L1's read port: a line index, and the line one cycle after its acceptance.
    outside:
        The next index lies outside L1; it is not read.
    place:
        The address of the next index.
    """

    def __init__(self, *, line: int, lines: int) -> None:
        self.line = line
        self.lines = lines
        super().__init__(
            {
                "start": In(1),
                "address": In(ADDRESS_WIDTH),
                "wanted": In(1),
                "index": Out(8 * INDEX_BYTES),
                "valid": Out(1),
                "taken": In(1),
                "memory": Out(stream.Signature(max(1, (lines - 1).bit_length()))),
                "memory_data": In(8 * line),
                "outside": Out(1),
                "place": Out(ADDRESS_WIDTH + 1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        offset_width = (self.line - 1).bit_length()
        in_line = offset_width - INDEX_SHIFT
        position = Signal(ADDRESS_WIDTH + 1 - INDEX_SHIFT)
        held = Signal(8 * self.line)
        held_valid = Signal()
        arriving = Signal()
        line = position[in_line:]
        m.d.comb += [
            self.place.eq(position << INDEX_SHIFT),
            self.index.eq(held.word_select(position[:in_line], 8 * INDEX_BYTES)),
            self.valid.eq(self.wanted & held_valid),
            self.outside.eq(self.wanted & ~held_valid & ~arriving & (line >= self.lines)),
            self.memory.payload.eq(line),
            self.memory.valid.eq(self.wanted & ~held_valid & ~arriving & ~self.outside),
        ]
        m.d.sync += arriving.eq(self.memory.valid & self.memory.ready)
        with m.If(arriving):
            m.d.sync += [held.eq(self.memory_data), held_valid.eq(1)]
        with m.If(self.taken):
            m.d.sync += position.eq(position + 1)
            with m.If(position[:in_line].all()):
                m.d.sync += held_valid.eq(0)
        with m.If(self.start):
            m.d.sync += [position.eq(self.address[INDEX_SHIFT:]), held_valid.eq(0)]
        return m
