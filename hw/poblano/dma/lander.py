"""Puts the beats of read bursts together to lines of L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.axi_limits import BOUNDARY
from poblano.commands import ADDRESS_WIDTH, HBM_ADDRESS_WIDTH
from poblano.component import Component
from poblano.dma.job import burst_layout
from poblano.dma.lanes import lane_mask
from poblano.l1.byte_shift import byte_shift_left
from poblano.l1.scratchpad import write_layout

__all__ = ["Lander", "beat_layout"]


def beat_layout(width: int) -> data.StructLayout:
    """Return the layout of a read beat; with `error` its bytes are not written."""
    return data.StructLayout({"data": 8 * width, "error": 1})


class Lander(Component):
    """Writes the bytes of a beat a cycle to L1, whole lines where they come so.

    Beats are rotated to their place in a line, and merged there until a beat for another line
    comes, the command ends, or `flush` is 1. A row takes a cycle more if its first beat lies in
    two lines, the first of which is not the one being put together. A beat's last byte is written
    two cycles after its acceptance at the earliest.

    Parameters
    ----------
    width, line:
        Bytes of a beat and of a line.
    index_width:
        Bits of a line index.

    Members
    -------
    bursts:
        The bursts that the beats belong to.
    beats:
        Beats in the bursts' order.
    flush:
        Writes what was put together; no beats follow.
    write:
        L1's write port.
    over:
        1 for a cycle in which the last beat of a burst is accepted.
    ends:
        So it is, and with it a command's.
    address:
        HBM address of the oldest burst.
    landed:
        1 for a cycle in which a command's last line is accepted by L1.
    busy:
        Bytes are on their way to L1.
    """

    def __init__(self, *, width: int, line: int, index_width: int) -> None:
        self.width = width
        self.line = line
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout())),
                "beats": In(stream.Signature(beat_layout(width))),
                "flush": In(1),
                "write": Out(stream.Signature(write_layout(line, index_width))),
                "over": Out(1),
                "ends": Out(1),
                "address": Out(HBM_ADDRESS_WIDTH),
                "landed": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        lane_width = (self.width - 1).bit_length()
        offset_width = (self.line - 1).bit_length()
        index_width = ADDRESS_WIDTH - offset_width

        # The burst at the head: byte i of the next beat goes to `place` + i, if `low` <= i < `end`.
        burst_valid, last_burst = Signal(), Signal()
        place = Signal(ADDRESS_WIDTH)
        low = Signal(lane_width)
        end = Signal(range(BOUNDARY + 1))
        last, accepted = Signal(), Signal()
        new = self.bursts.payload
        lane = Signal(lane_width)
        m.d.comb += [
            lane.eq(new.hbm[:lane_width]),
            last.eq(end <= self.width),
            accepted.eq(self.beats.valid & self.beats.ready),
            self.over.eq(accepted & last),
            self.ends.eq(self.over & last_burst),
            self.bursts.ready.eq(~burst_valid | self.over),
        ]
        with m.If(accepted):
            m.d.sync += [place.eq(place + self.width), low.eq(0), end.eq(end - self.width)]
        with m.If(self.bursts.ready):
            m.d.sync += [
                burst_valid.eq(self.bursts.valid),
                last_burst.eq(new.last),
                place.eq(new.l1 - lane),
                low.eq(lane),
                end.eq(new.bytes + lane),
                self.address.eq(new.hbm),
            ]

        # The beat, rotated: its bytes for line `index` under `strobe`, those for the next one
        # under `rest`.
        piece = data.StructLayout(
            {
                "data": 8 * self.line,
                "strobe": self.line,
                "rest": self.line,
                "index": index_width,
                "splits": 1,
                "last": 1,
            }
        )
        beat = Signal(piece)
        beat_valid, beat_ready = Signal(), Signal()
        m.d.comb += self.beats.ready.eq(burst_valid & beat_ready)
        with m.If(beat_ready):
            m.d.sync += beat_valid.eq(accepted)
        with m.If(accepted):
            self._rotate(m, beat, place, low, end)
            m.d.sync += beat.last.eq(last & last_burst)
        self._merge(m, beat, beat_valid, beat_ready)
        return m

    def _rotate(self, m, beat, place, low, end) -> None:
        offset_width = (self.line - 1).bit_length()
        offset = place[:offset_width]
        top = Signal(range(self.width))
        lanes = Signal(self.width)
        m.d.comb += [
            top.eq(Mux(end <= self.width, end, self.width) - 1),
            lanes.eq(lane_mask(low, top, self.width)),
        ]
        bits = byte_shift_left(m, self.beats.payload.data, offset, 8, "data")
        strobes = byte_shift_left(m, lanes, offset, 1, "strobes")
        first, second = strobes[: self.line], strobes[self.line :]
        good = ~self.beats.payload.error.replicate(self.line)
        in_first = Signal()
        m.d.comb += in_first.eq(first.any())
        m.d.sync += [
            beat.data.eq(bits[: 8 * self.line] | bits[8 * self.line :]),
            beat.strobe.eq(Mux(in_first, first, second) & good),
            beat.rest.eq(Mux(in_first, second, 0) & good),
            beat.index.eq(place[offset_width:] + ~in_first),
            beat.splits.eq(in_first & second.any()),
        ]

    def _merge(self, m, beat, beat_valid, beat_ready) -> None:
        """One write a cycle: the line put together so far, with the beat's bytes if they join."""
        held = Signal(
            data.StructLayout(
                {
                    "data": 8 * self.line,
                    "strobe": self.line,
                    "index": len(beat.index),
                    "last": 1,
                }
            )
        )
        held_valid = Signal()
        joins, joins_written, writes, moves, taken = (
            Signal(name=name) for name in ("joins", "joins_written", "writes", "moves", "taken")
        )
        mask = Signal(self.line)
        write = self.write.payload
        m.d.comb += [
            joins.eq(~held_valid | ((held.index == beat.index) & ~held.last)),
            writes.eq(Mux(beat_valid, ~joins | beat.splits, held_valid & (held.last | self.flush))),
            moves.eq(beat_valid & (~writes | self.write.ready)),
            taken.eq(moves & (joins | ~beat.splits)),
            beat_ready.eq(~beat_valid | taken),
            joins_written.eq(beat_valid & joins),
            mask.eq(Mux(joins_written, beat.strobe, 0)),
            self.write.valid.eq(writes),
            write.address.eq(Mux(joins_written, beat.index, held.index)),
            write.strobe.eq(held.strobe | mask),
            self.busy.eq(beat_valid | held_valid),
            self.landed.eq(writes & self.write.ready & held_valid & held.last),
        ]
        for byte in range(self.line):
            bits = slice(8 * byte, 8 * byte + 8)
            m.d.comb += write.data[bits].eq(Mux(mask[byte], beat.data[bits], held.data[bits]))
            with m.If(moves & (beat.strobe[byte] | beat.rest[byte])):
                m.d.sync += held.data[bits].eq(beat.data[bits])
        with m.If(moves):
            m.d.sync += [
                held_valid.eq(1),
                held.index.eq(beat.index),
                held.last.eq(beat.last & taken),
                held.strobe.eq(beat.strobe | Mux(joins, held.strobe, 0)),
            ]
            with m.If(joins & beat.splits):
                m.d.sync += [held.index.eq(beat.index + 1), held.strobe.eq(beat.rest)]
        with m.Elif(writes & self.write.ready):
            m.d.sync += [held_valid.eq(0), held.strobe.eq(0)]
