"""Reads runs of bytes at any address out of a memory of wide lines."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.l1.byte_shift import byte_shift_right

__all__ = ["LineReader", "run_layout"]


def run_layout(num_kinds: int) -> data.StructLayout:
    """Return the payload of a request: a run of `length` >= 1 bytes, cut by the kind's chunk."""
    return data.StructLayout(
        {
            "address": ADDRESS_WIDTH,
            "length": ADDRESS_WIDTH,
            "kind": range(num_kinds) if num_kinds > 1 else 1,
        }
    )


class LineReader(Component):
    """Turns runs of bytes into chunks, each shifted so that its first byte is byte 0.

    Each cycle emits one chunk, reading at most one line; only a first chunk that straddles two
    lines takes a cycle more. `poblano.l1.timing.run_cycles` is that count. A run's next request
    is accepted in the last cycle of the one before, so runs follow without a gap. A chunk leaves
    two cycles after the cycle that emitted it. Bytes of the last chunk past the run's end are
    undefined. There is no backpressure: the sink takes every chunk.

    Parameters
    ----------
    line:
        Bytes of a line.
    chunks:
        Bytes of a chunk, for each kind of run; none exceeds the line.
    lines:
        Lines of the memory. A read at or past that raises `outside` and returns any data.

    Members
    -------
    request:
        Runs to read.
    memory, memory_data:
        The memory's read port: a line index, and the line one cycle later.
    chunk_valid, chunk, chunk_kind, chunk_first, chunk_last:
        A chunk, the kind of its run, and whether it is the run's first or last.
    outside, outside_address:
        1 for a cycle in which a line outside the memory is asked for, and the line's address.

    Raises
    ------
    ValueError
        If a chunk is empty or longer than a line.
    """

    def __init__(self, *, line: int, chunks: tuple[int, ...], lines: int) -> None:
        if not chunks or not all(1 <= chunk <= line for chunk in chunks):
            raise ValueError(f"chunks must have 1 to {line} bytes, not {chunks}")
        self.line = line
        self.chunks = chunks
        self.lines = lines
        layout = run_layout(len(chunks))
        super().__init__(
            {
                "request": In(stream.Signature(layout)),
                "memory": Out(
                    stream.Signature(max(1, (lines - 1).bit_length()), always_ready=True)
                ),
                "memory_data": In(8 * line),
                "chunk_valid": Out(1),
                "chunk": Out(8 * max(chunks)),
                "chunk_kind": Out(layout["kind"].shape),
                "chunk_first": Out(1),
                "chunk_last": Out(1),
                "outside": Out(1),
                "outside_address": Out(ADDRESS_WIDTH + 1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        offset_width = (self.line - 1).bit_length()
        index_width = ADDRESS_WIDTH + 1 - offset_width

        # A chunk covers bytes [start, end) of lines [first, last]; `held` is the line that was
        # read last. A chunk is emitted in the cycle in which its last line is asked for.
        busy = Signal()
        start = Signal(ADDRESS_WIDTH + 1)
        left = Signal(ADDRESS_WIDTH)
        kind = Signal.like(self.request.payload.kind)
        is_first = Signal()
        held = Signal(index_width)
        held_valid = Signal()

        chunk = Signal(range(self.line + 1))
        m.d.comb += chunk.eq(Array(self.chunks)[kind])
        is_last = Signal()
        length = Signal(range(self.line + 1))
        end = Signal(ADDRESS_WIDTH + 1)
        m.d.comb += [
            is_last.eq(left <= chunk),
            length.eq(Mux(is_last, left, chunk)),
            end.eq(start + length - 1),
        ]
        first = start[offset_width:]
        last = end[offset_width:]
        has_first = Signal()
        line = Signal(index_width)
        reads = Signal()
        emits = Signal()
        m.d.comb += [
            has_first.eq(held_valid & (held == first)),
            line.eq(Mux(has_first, last, first)),
            reads.eq(busy & ~(has_first & (last == first))),
            emits.eq(busy & (has_first | (last == first))),
            self.request.ready.eq(~busy | (emits & is_last)),
            self.outside.eq(reads & (line >= self.lines)),
            self.outside_address.eq(line << offset_width),
            self.memory.valid.eq(reads & ~self.outside),
            self.memory.payload.eq(line),
        ]
        with m.If(reads):
            m.d.sync += [held.eq(line), held_valid.eq(1)]
        with m.If(emits):
            m.d.sync += [start.eq(start + chunk), left.eq(left - chunk), is_first.eq(0)]
            with m.If(is_last):
                m.d.sync += busy.eq(0)
        with m.If(self.request.valid & self.request.ready):
            m.d.sync += [
                busy.eq(1),
                start.eq(self.request.payload.address),
                left.eq(self.request.payload.length),
                kind.eq(self.request.payload.kind),
                is_first.eq(1),
                held_valid.eq(0),
            ]
        self._align(m, start[:offset_width], has_first, reads, emits, kind, is_first, is_last)
        return m

    def _align(self, m, offset, has_first, reads, emits, kind, is_first, is_last) -> None:
        """One cycle later the line is there: join it to the held one, shift, register."""
        at_data = data.StructLayout(
            {
                "offset": len(offset),
                "joins": 1,
                "reads": 1,
                "emits": 1,
                "kind": len(kind),
                "first": 1,
                "last": 1,
            }
        )
        stage = Signal(at_data)
        m.d.sync += [
            stage.offset.eq(offset),
            stage.joins.eq(has_first),
            stage.reads.eq(reads),
            stage.emits.eq(emits),
            stage.kind.eq(kind),
            stage.first.eq(is_first),
            stage.last.eq(is_last),
        ]
        held_data = Signal(8 * self.line)
        with m.If(stage.reads):
            m.d.sync += held_data.eq(self.memory_data)
        window = Signal(16 * self.line)
        m.d.comb += window.eq(Cat(Mux(stage.joins, held_data, self.memory_data), self.memory_data))
        shifted = byte_shift_right(m, window, stage.offset, "shifted")
        m.d.sync += [
            self.chunk_valid.eq(stage.emits),
            self.chunk_kind.eq(stage.kind),
            self.chunk_first.eq(stage.first),
            self.chunk_last.eq(stage.last),
        ]
        with m.If(stage.emits):
            m.d.sync += self.chunk.eq(shifted)
