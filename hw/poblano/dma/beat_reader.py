"""Reads lines of L1 and cuts them into the beats of write bursts."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from poblano.axi_limits import BOUNDARY
from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.dma.job import burst_layout
from poblano.dma.lanes import lane_mask
from poblano.dma.timing import BEAT_QUEUE_DEPTH
from poblano.l1.byte_shift import byte_shift_right

__all__ = ["BeatReader", "write_beat_layout"]


def write_beat_layout(width: int) -> data.StructLayout:
    """Return the layout of a beat on the write data channel."""
    return data.StructLayout({"data": 8 * width, "strobe": width, "last": 1})


class BeatReader(Component):
    """Turns bursts into beats, one a cycle, reading at most one line for each.

    A burst takes a cycle more if its first beat lies in two lines, the first of which was not
    read last; within a row it was. A beat appears two cycles after the cycle that read its last
    line. No line is read whose beat would find no place in the queue.

    Parameters
    ----------
    width, line:
        Bytes of a beat and of a line.
    index_width:
        Bits of a line index.

    Members
    -------
    bursts:
        Bursts; the first of a command reads its lines anew.
    memory, memory_data:
        L1's read port: a line index, and the line one cycle after its acceptance.
    beats:
        The beats; bytes outside the strobe are undefined.
    busy:
        A beat is left.
    """

    def __init__(self, *, width: int, line: int, index_width: int) -> None:
        self.width = width
        self.line = line
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout())),
                "memory": Out(stream.Signature(index_width)),
                "memory_data": In(8 * line),
                "beats": Out(stream.Signature(write_beat_layout(width))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        lane_width = (self.width - 1).bit_length()
        offset_width = (self.line - 1).bit_length()

        # The burst at the head: byte i of the next beat comes from `place` + i, if
        # `low` <= i < `end`.
        burst_valid = Signal()
        place = Signal(ADDRESS_WIDTH)
        low = Signal(lane_width)
        end = Signal(range(BOUNDARY + 1))
        new = self.bursts.payload
        lane = Signal(lane_width)
        last = Signal()
        top = Signal(range(self.width))
        m.d.comb += [
            lane.eq(new.hbm[:lane_width]),
            last.eq(end <= self.width),
            top.eq(Mux(last, end, self.width) - 1),
        ]

        # The lines of its first and last byte; `held` is the one that was read last.
        held = Signal(ADDRESS_WIDTH - offset_width)
        held_valid = Signal()
        bottom_byte, top_byte = Signal(ADDRESS_WIDTH), Signal(ADDRESS_WIDTH)
        has_first, one_line, reads, emits, room, done = (
            Signal(name=name)
            for name in ("has_first", "one_line", "reads", "emits", "room", "done")
        )
        first_line, last_line = bottom_byte[offset_width:], top_byte[offset_width:]
        line = Signal.like(held)
        m.d.comb += [
            bottom_byte.eq(place + low),
            top_byte.eq(place + top),
            has_first.eq(held_valid & (held == first_line)),
            one_line.eq(first_line == last_line),
            line.eq(Mux(has_first, last_line, first_line)),
            self.memory.payload.eq(line),
            self.memory.valid.eq(burst_valid & room & ~(has_first & one_line)),
            reads.eq(self.memory.valid & self.memory.ready),
            emits.eq(burst_valid & room & (has_first | one_line) & (reads | ~self.memory.valid)),
            done.eq(emits & last),
            self.bursts.ready.eq(~burst_valid | done),
        ]
        with m.If(reads):
            m.d.sync += [held.eq(line), held_valid.eq(1)]
        with m.If(emits):
            m.d.sync += [place.eq(place + self.width), low.eq(0), end.eq(end - self.width)]
        with m.If(self.bursts.ready):
            m.d.sync += [
                burst_valid.eq(self.bursts.valid),
                place.eq(new.l1 - lane),
                low.eq(lane),
                end.eq(new.bytes + lane),
            ]
            with m.If(self.bursts.valid & new.first):
                m.d.sync += held_valid.eq(0)

        stage = Signal(
            data.StructLayout(
                {
                    "offset": offset_width,
                    "low": lane_width,
                    "top": len(top),
                    "joins": 1,
                    "reads": 1,
                    "emits": 1,
                    "last": 1,
                }
            )
        )
        m.d.sync += [
            stage.offset.eq(place[:offset_width]),
            stage.low.eq(low),
            stage.top.eq(top),
            stage.joins.eq(has_first),
            stage.reads.eq(reads),
            stage.emits.eq(emits),
            stage.last.eq(last),
        ]
        self._queue(m, stage, emits, room)
        m.d.comb += self.busy.eq(burst_valid | stage.emits | self.beats.valid)
        return m

    def _queue(self, m, stage, emits, room) -> None:
        """One cycle later the line is there: join it to the held one, rotate, queue."""
        held_data = Signal(8 * self.line)
        with m.If(stage.reads):
            m.d.sync += held_data.eq(self.memory_data)
        window = Signal(16 * self.line)
        m.d.comb += window.eq(
            Cat(
                Mux(stage.joins, held_data, self.memory_data),
                Mux(stage.reads, self.memory_data, held_data),
            )
        )
        shifted = byte_shift_right(m, window, stage.offset, "shifted")

        layout = write_beat_layout(self.width)
        m.submodules.queue = queue = SyncFIFO(width=layout.size, depth=BEAT_QUEUE_DEPTH)
        beat = Signal(layout)
        m.d.comb += [
            beat.data.eq(shifted),
            beat.strobe.eq(lane_mask(stage.low, stage.top, self.width)),
            beat.last.eq(stage.last),
            queue.w_data.eq(beat),
            queue.w_en.eq(stage.emits),
            self.beats.payload.eq(queue.r_data),
            self.beats.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.beats.ready),
        ]
        used = Signal(range(BEAT_QUEUE_DEPTH + 1))
        leaves = Signal()
        m.d.comb += [
            leaves.eq(self.beats.valid & self.beats.ready),
            room.eq(used != BEAT_QUEUE_DEPTH),
        ]
        m.d.sync += used.eq(used + emits - leaves)
