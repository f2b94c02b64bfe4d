"""Writes runs of bytes at any address into a memory of wide lines."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.l1.byte_shift import byte_shift_left
from poblano.l1.scratchpad import write_layout

__all__ = ["LineWriter", "write_run_layout"]


def write_run_layout(most: int) -> data.StructLayout:
    """Return the payload of a run: 1 to `most` bytes, byte 0 of `data` for `address`."""
    return data.StructLayout(
        {"address": ADDRESS_WIDTH, "length": range(most + 1), "data": 8 * most}
    )


class LineWriter(Component):
    """Writes each run with one line write for every line that it touches, one a cycle.

    The first line is written in the cycle in which the run is offered, and the run is accepted
    with its last line: `poblano.l1.timing.lines_touched` cycles a run, and those in which the
    memory makes a write wait.

    Parameters
    ----------
    line:
        Bytes of a line.
    most:
        The longest run in bytes; at most a line.
    lines:
        Lines of the memory. A write at or past that raises `outside` and changes nothing.
    waits:
        Whether the memory may make writes wait.

    Members
    -------
    runs:
        Runs to write.
    memory:
        The memory's write port.
    outside, outside_address:
        1 for a cycle in which a line outside the memory would be written, and the line's address.

    Raises
    ------
    ValueError
        If `most` is not in 1..line.
    """

    def __init__(self, *, line: int, most: int, lines: int, waits: bool = False) -> None:
        if not 1 <= most <= line:
            raise ValueError(f"most must be in 1..{line}, not {most}")
        self.line = line
        self.most = most
        self.lines = lines
        index_width = max(1, (lines - 1).bit_length())
        super().__init__(
            {
                "runs": In(stream.Signature(write_run_layout(most))),
                "memory": Out(
                    stream.Signature(write_layout(line, index_width), always_ready=not waits)
                ),
                "outside": Out(1),
                "outside_address": Out(ADDRESS_WIDTH + 1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        offset_width = (self.line - 1).bit_length()
        run = self.runs.payload

        offset = run.address[:offset_width]
        end = Signal(ADDRESS_WIDTH + 1)
        strobes = Signal(self.most)
        m.d.comb += [
            end.eq(run.address + run.length - 1),
            strobes.eq(Cat(run.length > byte for byte in range(self.most))),
        ]
        first = Signal(ADDRESS_WIDTH + 1 - offset_width)
        m.d.comb += first.eq(run.address[offset_width:])
        straddles = Signal()
        m.d.comb += straddles.eq(end[offset_width:] != first)

        second, taken = Signal(), Signal()
        m.d.comb += taken.eq(self.memory.ready | self.outside)
        index = Signal.like(first)
        window = Signal(16 * self.line)
        window_strobes = Signal(2 * self.line)
        m.d.comb += [
            index.eq(first + second),
            window.eq(byte_shift_left(m, run.data, offset, 8, "data")),
            window_strobes.eq(byte_shift_left(m, strobes, offset, 1, "strobes")),
            self.runs.ready.eq((second | ~straddles) & taken),
            self.outside.eq(self.runs.valid & (index >= self.lines)),
            self.outside_address.eq(index << offset_width),
            self.memory.valid.eq(self.runs.valid & ~self.outside),
            self.memory.payload.address.eq(index),
            self.memory.payload.data.eq(window.word_select(second, 8 * self.line)),
            self.memory.payload.strobe.eq(window_strobes.word_select(second, self.line)),
        ]
        with m.If(self.runs.valid & taken):
            m.d.sync += second.eq(straddles & ~second)
        return m
