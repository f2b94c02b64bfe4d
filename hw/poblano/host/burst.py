"""Bursts of an AXI4 slave, beat by beat."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.axi import Burst
from poblano.component import Component

__all__ = ["BurstBeats", "beat_layout", "burst_layout"]


def burst_layout(address_width: int, id_width: int) -> data.StructLayout:
    """Return the payload of a burst, as an address channel carries it."""
    return data.StructLayout(
        {"id": id_width, "address": address_width, "len": 8, "size": 3, "burst": 2}
    )


def beat_layout(address_width: int, id_width: int) -> data.StructLayout:
    """Return the payload of a beat: where it lies, and whether its whole burst is refused.

    `address` is in the beat, as far from its start as the burst's first byte is from the start of
    the first beat.
    """
    return data.StructLayout({"id": id_width, "address": address_width, "last": 1, "refused": 1})


class BurstBeats(Component):
    """Turns bursts into the addresses of their beats, one beat a cycle, bursts without a gap.

    A burst's first beat is offered two cycles after the burst was accepted. A burst is refused if
    it is not an INCR burst, if its beats are wider than the bus, or if any byte of it lies past
    the memory; it has all its beats none the less.

    Parameters
    ----------
    width:
        Bytes of the data bus, a power of two.
    size:
        Bytes of the memory, a multiple of the width.
    address_width, id_width:
        Bits of an address and of an identifier.

    Members
    -------
    bursts:
        Bursts; `ready` depends on registers alone.
    beats:
        The beats of the bursts, in order.

    Raises
    ------
    ValueError
        If the width is not a power of two, or the size not a multiple of it.
    """

    def __init__(self, *, width: int, size: int, address_width: int, id_width: int) -> None:
        if width < 1 or width & (width - 1):
            raise ValueError(f"width must be a power of two, not {width}")
        if size < 1 or size % width:
            raise ValueError(f"size must be a multiple of width, {width}, not {size}")
        self.width = width
        self.size = size
        self.address_width = address_width
        super().__init__(
            {
                "bursts": In(stream.Signature(burst_layout(address_width, id_width))),
                "beats": Out(stream.Signature(beat_layout(address_width, id_width))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        waiting = Signal(self.bursts.payload.shape())
        has_waiting = Signal()
        busy = self.beats.valid
        beat = self.beats.payload
        size = Signal(3)
        left = Signal(8)

        ends = Signal()
        starts = Signal()
        m.d.comb += [
            ends.eq(busy & self.beats.ready & beat.last),
            starts.eq(has_waiting & (~busy | ends)),
            self.bursts.ready.eq(~has_waiting),
            beat.last.eq(left == 0),
        ]
        with m.If(starts):
            m.d.sync += has_waiting.eq(0)
        with m.If(self.bursts.valid & self.bursts.ready):
            m.d.sync += [has_waiting.eq(1), waiting.eq(self.bursts.payload)]

        # Somewhere in the last beat, and the memory ends with a whole beat.
        last = Signal(self.address_width + 1)
        m.d.comb += last.eq(waiting.address + (waiting.len << waiting.size))
        with m.If(ends):
            m.d.sync += busy.eq(0)
        with m.If(starts):
            m.d.sync += [
                busy.eq(1),
                beat.id.eq(waiting.id),
                beat.address.eq(waiting.address),
                beat.refused.eq(
                    (waiting.burst != Burst.INCR)
                    | (waiting.size > (self.width - 1).bit_length())
                    | (last >= self.size)
                ),
                size.eq(waiting.size),
                left.eq(waiting.len),
            ]
        with m.Elif(busy & self.beats.ready):
            m.d.sync += [
                beat.address.eq(beat.address + (1 << size)),
                left.eq(left - 1),
            ]
        return m
