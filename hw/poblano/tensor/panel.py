"""Two panels of one operand: one is filled while the other is multiplied."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.tensor.geometry import Side

__all__ = ["OperandPanel"]


class OperandPanel(Component):
    """Holds codes and scales of one k-block of a tile, twice.

    Chunks fill a panel in ascending order. A read delivers one sub-tile, one cycle later: a
    block of codes and a scale for every row of units, held until the next read.

    Parameters
    ----------
    side:
        The side of the array that the panel feeds.

    Members
    -------
    chunk, write_panel, codes_valid, codes_first, scales_valid:
        A chunk of codes, or the scales of the whole tile, and the panel that they belong to;
        `codes_first` marks the first chunk of a run.
    read, read_panel, tile, wide:
        Reads sub-tile `tile`; `wide` tells 32-byte from 16-byte blocks.
    codes, scales:
        What was read; a 16-byte block has zeros above it.
    """

    def __init__(self, *, side: Side) -> None:
        self.side = side
        super().__init__(
            {
                "chunk": In(8 * max(side.chunk, side.tile)),
                "write_panel": In(1),
                "codes_valid": In(1),
                "codes_first": In(1),
                "scales_valid": In(1),
                "read": In(1),
                "read_panel": In(1),
                "tile": In(range(max(2, side.tiles))),
                "wide": In(1),
                "codes": Out(data.ArrayLayout(8 * side.block_bytes, side.rows)),
                "scales": Out(data.ArrayLayout(8, side.rows)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        side = self.side
        slots = side.entry // side.chunk
        depth = 1 << (side.tiles - 1).bit_length()

        # codes: `depth` entries a panel, each of `slots` chunks
        m.submodules.entries = entries = Memory(shape=8 * side.entry, depth=2 * depth, init=[])
        write = entries.write_port(granularity=8 * side.chunk)
        read = entries.read_port()
        slot = Signal(range(max(2, slots)))
        counted_slot = Signal.like(slot)
        entry = Signal(range(max(2, side.tiles)))
        counted_entry = Signal.like(entry)
        m.d.comb += [
            slot.eq(Mux(self.codes_first, 0, counted_slot)),
            entry.eq(Mux(self.codes_first, 0, counted_entry)),
            write.addr.eq(Cat(entry[: depth.bit_length() - 1], self.write_panel)),
            write.data.eq(self.chunk[: 8 * side.chunk].replicate(slots)),
            write.en.eq(Mux(self.codes_valid, 1 << slot, 0)),
        ]
        with m.If(self.codes_valid):
            with m.If(slot == slots - 1):
                m.d.sync += [counted_slot.eq(0), counted_entry.eq(entry + 1)]
            with m.Else():
                m.d.sync += [counted_slot.eq(slot + 1), counted_entry.eq(entry)]

        # a wide entry is one sub-tile; a narrow one holds two where wide formats exist
        pairs = side.wide
        half = Signal()
        was_wide = Signal()
        index = Mux(self.wide, self.tile, self.tile >> 1) if pairs else self.tile
        m.d.comb += [
            read.en.eq(self.read),
            read.addr.eq(Cat(index[: depth.bit_length() - 1], self.read_panel)),
        ]
        with m.If(self.read):
            m.d.sync += [half.eq(self.tile[0]), was_wide.eq(self.wide)]
        narrow = Signal(4 * side.entry)
        m.d.comb += narrow.eq(Mux(half, read.data[4 * side.entry :], read.data))
        for row in range(side.rows):
            block = read.data.word_select(row, 8 * side.block_bytes)
            short = narrow.word_select(row, 128)
            m.d.comb += self.codes[row].eq(Mux(was_wide, block, short) if pairs else block)

        # scales: one register a panel
        panels = [
            Signal(data.ArrayLayout(8 * side.rows, side.tiles), name=f"scales_{p}")
            for p in range(2)
        ]
        for number, panel in enumerate(panels):
            with m.If(self.scales_valid & (self.write_panel == number)):
                m.d.sync += panel.eq(self.chunk)
        with m.If(self.read):
            m.d.sync += self.scales.eq(
                Mux(self.read_panel, panels[1][self.tile], panels[0][self.tile])
            )
        return m
