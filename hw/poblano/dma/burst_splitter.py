"""Cuts rows into AXI4 bursts."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.dma.job import burst_layout, row_layout
from poblano.dma.timing import burst_window

__all__ = ["BurstSplitter"]


class BurstSplitter(Component):
    """Emits the bursts of each row, one a cycle; the next row's follow without a gap.

    Bursts end at aligned windows of the smaller of 4 KiB and 256 beats, so that none is too long
    and none crosses a 4 KiB boundary.

    Parameters
    ----------
    width:
        Bytes of the data bus.

    Members
    -------
    rows:
        Rows.
    bursts:
        Their bursts, from the cycle after the row was accepted.
    """

    def __init__(self, *, width: int) -> None:
        self.window = burst_window(width)
        super().__init__(
            {
                "rows": In(stream.Signature(row_layout())),
                "bursts": Out(stream.Signature(burst_layout())),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        row = Signal(row_layout())
        busy = Signal()
        room = Signal(range(self.window + 1))
        last = Signal()
        burst = self.bursts.payload
        m.d.comb += [
            room.eq(self.window - row.hbm[: self.window.bit_length() - 1]),
            last.eq(row.length <= room),
            burst.hbm.eq(row.hbm),
            burst.l1.eq(row.l1),
            burst.bytes.eq(Mux(last, row.length, room)),
            burst.first.eq(row.first),
            burst.last.eq(row.last & last),
            self.bursts.valid.eq(busy),
            self.rows.ready.eq(~busy | (self.bursts.ready & last)),
        ]
        with m.If(self.bursts.valid & self.bursts.ready):
            m.d.sync += [
                row.hbm.eq(row.hbm + room),
                row.l1.eq(row.l1 + room),
                row.length.eq(row.length - room),
                row.first.eq(0),
            ]
        with m.If(self.rows.ready):
            m.d.sync += [busy.eq(self.rows.valid), row.eq(self.rows.payload)]
        return m
