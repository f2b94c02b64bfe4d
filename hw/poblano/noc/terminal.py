"""The two ends of the network at a node: streams outside, links with credits inside."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.noc.flit_buffer import FlitBuffer
from poblano.noc.link import flit_layout, link
from poblano.noc.parameters import NocParameters

__all__ = ["Ejector", "Injector"]


class Injector(Component):
    """Sends a stream's flits into a router, each on the lane of its destination.

    A flit that is accepted is in the router's buffer in the next cycle. The stream is ready if the
    router has room in the lane of the flit that is offered. All flits of a packet have one
    destination. A flit whose destination does not exist is taken, reported and goes nowhere.

    Parameters
    ----------
    parameters_of:
        The network.

    Members
    -------
    i:
        Flits; the fields are those of `poblano.noc.flit`.
    o:
        The router's local input.
    outside:
        1 for a cycle in which a flit is taken whose destination does not exist.
    """

    def __init__(self, *, parameters_of: NocParameters) -> None:
        self.network = parameters_of
        super().__init__(
            {
                "i": In(stream.Signature(flit_layout(parameters_of))),
                "o": Out(link(parameters_of, parameters_of.lanes)),
                "outside": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        network = self.network
        to = self.i.payload.destination
        exists = Signal()
        lane = Signal(range(max(2, network.lanes)))
        room = Signal(network.lanes)
        # no comparison where every value of the field is a node
        limits = ((to.x, network.width), (to.y, network.height))
        is_inside = [C(1, 1)] + [at < side for at, side in limits if side != 1 << len(at)]
        m.d.comb += [
            exists.eq(Cat(is_inside).all()),
            lane.eq((to.x + to.y) % network.lanes),
            self.i.ready.eq(~exists | room.bit_select(lane, 1)),
            self.outside.eq(self.i.valid & ~exists),
            self.o.flit.eq(self.i.payload),
        ]
        for index in range(network.lanes):
            left = Signal(range(network.depth + 1), init=network.depth, name=f"credits_{index}")
            sends = Signal(name=f"sends_{index}")
            m.d.comb += [
                room[index].eq(left.any()),
                sends.eq(self.i.valid & exists & room[index] & (lane == index)),
                self.o.valid[index].eq(sends),
            ]
            m.d.sync += left.eq(left - sends + self.o.credit[index])
        return m


class Ejector(Component):
    """Takes flits from a router and offers them as a stream.

    A flit is offered in the cycle after it came, and waits in a buffer of `depth` flits.

    Parameters
    ----------
    parameters_of:
        The network.
    depth:
        Flits, as many as the router has credits for.

    Members
    -------
    i:
        The router's local output.
    o:
        Flits; those of a packet follow each other.
    """

    def __init__(self, *, parameters_of: NocParameters, depth: int) -> None:
        self.network = parameters_of
        self.depth = depth
        super().__init__(
            {
                "i": In(link(parameters_of, 1)),
                "o": Out(stream.Signature(flit_layout(parameters_of))),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.buffer = buffer = FlitBuffer(parameters_of=self.network, depth=self.depth)
        m.d.comb += [
            buffer.push.eq(self.i.valid),
            buffer.flit.eq(self.i.flit),
            buffer.pop.eq(buffer.valid & self.o.ready),
            self.i.credit.eq(buffer.pop),
            self.o.valid.eq(buffer.valid),
            self.o.payload.eq(buffer.head),
        ]
        return m
