"""One virtual channel of a router's output: who may use it, and whether there is room."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.noc.round_robin import RoundRobin

__all__ = ["OutputChannel"]


class OutputChannel(Component):
    """Gives a channel to one source after the other, packet by packet, while credits last.

    Combinational from requests to offer and choice.

    Parameters
    ----------
    sources:
        Queues whose heads may ask for the channel.
    depth:
        Flits that the buffer at the other end holds: the credits at the start.

    Members
    -------
    requests, last:
        For each source whether its head asks, and whether that is the last flit of its packet.
    credit:
        A credit comes back; each cycle in which it is 1 is one.
    offer:
        There is a flit that may go.
    taken:
        The offer goes in this cycle.
    chosen:
        The source whose head goes; none if the offer is not taken.

    Attributes
    ----------
    room:
        The credits that are left.
    may:
        The sources that may ask: between packets all, within one only its own.
    """

    def __init__(self, *, sources: int, depth: int) -> None:
        self.sources = sources
        self.depth = depth
        self.room = Signal(range(depth + 1), init=depth)
        self.may = Signal(sources, init=-1)
        super().__init__(
            {
                "requests": In(sources),
                "last": In(sources),
                "credit": In(1),
                "offer": Out(1),
                "taken": In(1),
                "chosen": Out(sources),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        may, room = self.may, self.room
        m.submodules.turn = turn = RoundRobin(count=self.sources)
        asks = Signal(self.sources)
        m.d.comb += [
            asks.eq(self.requests & may),
            turn.requests.eq(asks),
            turn.taken.eq(self.taken),
            self.offer.eq(asks.any() & room.any()),
            self.chosen.eq(turn.grant & self.taken.replicate(self.sources)),
        ]
        with m.If(self.taken):
            is_last = (turn.grant & self.last).any()
            m.d.sync += may.eq(Mux(is_last, ~C(0, self.sources), turn.grant))
        with m.If(self.taken & ~self.credit):
            m.d.sync += room.eq(room - 1)
        with m.If(~self.taken & self.credit):
            m.d.sync += room.eq(room + 1)
        return m
