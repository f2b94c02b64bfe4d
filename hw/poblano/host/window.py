"""The host's AXI4 window on L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, fifo, stream
from amaranth.lib.wiring import In, Out

from poblano.axi import Response, axi4
from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.host.burst import BurstBeats
from poblano.l1.scratchpad import write_layout

__all__ = ["ID_WIDTH", "HostWindow"]

ID_WIDTH = 4
"""Bits of the window's transaction identifiers."""

_READ_DEPTH = 4
"""Beats that may be asked for and not yet taken: what keeps a read at one beat a cycle."""


class HostWindow(Component):
    """An AXI4 slave whose addresses are L1 byte addresses; a client of L1.

    INCR bursts of any length, beat size and start; they move one beat a cycle where L1 and the
    master do not wait, one burst after the other; only writes of a single beat take two cycles.
    With an idle L1 the first read beat is offered four cycles after its address was accepted.
    Reads and writes do not wait for each other, and each answers in the order of its requests; a
    write is answered when L1 has taken its last beat. No output to the master depends on its
    inputs of the same cycle.

    A FIXED or WRAP burst, one of beats wider than the bus, and one of which any byte lies outside
    L1 are answered with SLVERR and neither read nor write; they have all their beats. WLAST is
    not looked at.

    Parameters
    ----------
    configuration:
        The slice; `host.width` is the bus, `l1` the memory.

    Members
    -------
    axi:
        The bus, whose master is outside.
    read, read_data:
        Indices of the lines to read, and the line one cycle after its index was accepted.
    write:
        Line writes.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.width = configuration.host.width
        self.size = configuration.l1.size
        self.line = configuration.l1.line
        index_width = max(1, (self.size // self.line - 1).bit_length())
        super().__init__(
            {
                "axi": In(axi4(width=self.width, address_width=ADDRESS_WIDTH, id_width=ID_WIDTH)),
                "read": Out(stream.Signature(index_width)),
                "read_data": In(8 * self.line),
                "write": Out(stream.Signature(write_layout(self.line, index_width))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        self._serve_writes(m, self._beats(m, "aw", platform))
        self._serve_reads(m, self._beats(m, "ar", platform))
        return m

    def _beats(self, m: Module, channel: str, platform):
        """Return the stream of the beats that an address channel asks for."""
        part = BurstBeats(
            width=self.width, size=self.size, address_width=ADDRESS_WIDTH, id_width=ID_WIDTH
        )
        m.submodules[f"{channel}_beats"] = once(part, platform)
        names = {"id": "id", "address": "addr", "len": "len", "size": "size", "burst": "burst"}
        for name, wire in names.items():
            m.d.comb += part.bursts.payload[name].eq(getattr(self.axi, f"{channel}{wire}"))
        m.d.comb += [
            part.bursts.valid.eq(getattr(self.axi, f"{channel}valid")),
            getattr(self.axi, f"{channel}ready").eq(part.bursts.ready),
        ]
        return part.beats

    def _place(self, address: Value) -> tuple[Value, Value]:
        """Return the line of an address, and which of the line's bus words it is in."""
        word, line = ((part - 1).bit_length() for part in (self.width, self.line))
        return address[line:], address[word:line]

    def _serve_writes(self, m: Module, beats) -> None:
        axi = self.axi
        held = Signal(
            data.StructLayout(
                {"beat": beats.payload.shape(), "data": 8 * self.width, "strobe": self.width}
            )
        )
        has_held = Signal()
        waits = Signal()  # the response of an earlier burst has not been taken
        leaves = Signal()
        line, word = self._place(held.beat.address)
        words = self.line // self.width
        m.d.comb += [
            waits.eq(held.beat.last & axi.bvalid),
            self.write.valid.eq(has_held & ~held.beat.refused & ~waits),
            self.write.payload.address.eq(line),
            self.write.payload.data.eq(held.data.replicate(words)),
            self.write.payload.strobe.eq(
                Cat(Mux(word == index, held.strobe, 0) for index in range(words))
            ),
            leaves.eq(has_held & ~waits & (held.beat.refused | self.write.ready)),
        ]
        takes = Signal()
        m.d.comb += [
            takes.eq(beats.valid & (~has_held | leaves)),
            axi.wready.eq(takes),
            beats.ready.eq(axi.wvalid & (~has_held | leaves)),
        ]
        with m.If(leaves):
            m.d.sync += has_held.eq(0)
        with m.If(takes & axi.wvalid):
            m.d.sync += [
                has_held.eq(1),
                held.beat.eq(beats.payload),
                held.data.eq(axi.wdata),
                held.strobe.eq(axi.wstrb),
            ]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(leaves & held.beat.last):
            m.d.sync += [
                axi.bvalid.eq(1),
                axi.bid.eq(held.beat.id),
                axi.bresp.eq(Mux(held.beat.refused, Response.SLVERR, Response.OKAY)),
            ]

    def _serve_reads(self, m: Module, beats) -> None:
        axi = self.axi
        answer_layout = data.StructLayout(
            {"id": ID_WIDTH, "last": 1, "refused": 1, "data": 8 * self.width}
        )
        m.submodules.answers = answers = fifo.SyncFIFO(width=answer_layout.size, depth=_READ_DEPTH)
        beat = beats.payload
        line, word = self._place(beat.address)

        # `asked` counts beats from the request to L1 to the master, so that there is room for
        # every line that comes back.
        asked = Signal(range(_READ_DEPTH + 1))
        has_room = Signal()
        asks = Signal()
        taken = Signal()
        m.d.comb += [
            has_room.eq(asked != _READ_DEPTH),
            self.read.valid.eq(beats.valid & ~beat.refused & has_room),
            self.read.payload.eq(line),
            beats.ready.eq(has_room & (beat.refused | self.read.ready)),
            asks.eq(beats.valid & beats.ready),
            taken.eq(axi.rvalid & axi.rready),
        ]
        m.d.sync += asked.eq(asked + asks - taken)

        comes = Signal()
        coming = Signal(beats.payload.shape())
        coming_word = Signal(len(word))
        answer = Signal(answer_layout)
        m.d.sync += [comes.eq(asks), coming.eq(beat), coming_word.eq(word)]
        m.d.comb += [
            answer.id.eq(coming.id),
            answer.last.eq(coming.last),
            answer.refused.eq(coming.refused),
            answer.data.eq(
                Mux(
                    coming.refused,
                    0,
                    self.read_data.word_select(coming_word, 8 * self.width),
                )
            ),
            answers.w_data.eq(answer),
            answers.w_en.eq(comes),
        ]
        front = Signal(answer_layout)
        m.d.comb += [
            front.eq(answers.r_data),
            answers.r_en.eq(axi.rready),
            axi.rvalid.eq(answers.r_rdy),
            axi.rid.eq(front.id),
            axi.rdata.eq(front.data),
            axi.rlast.eq(front.last),
            axi.rresp.eq(Mux(front.refused, Response.SLVERR, Response.OKAY)),
        ]
