"""Lets several clients that seldom read use one read port of L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component

__all__ = ["SharedReader"]


class SharedReader(Component):
    """Passes one client's read on in each cycle: the one with the lowest number that asks.

    The line comes to all clients, one cycle after a read was accepted; the one whose read it was
    takes it. Combinational.

    Parameters
    ----------
    clients:
        Clients.
    address_width:
        Bits of a line index.

    Members
    -------
    client_I:
        Line indices that client I reads.
    read:
        The read that goes to L1.
    """

    def __init__(self, *, clients: int, address_width: int) -> None:
        self.clients = clients
        port = stream.Signature(address_width)
        super().__init__(
            {"read": Out(port), **{f"client_{index}": In(port) for index in range(clients)}}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        clients = [getattr(self, f"client_{index}") for index in range(self.clients)]
        m.d.comb += self.read.valid.eq(Cat(client.valid for client in clients).any())
        for index, client in reversed(list(enumerate(clients))):
            earlier = Cat(other.valid for other in clients[:index])
            m.d.comb += client.ready.eq(self.read.ready & ~earlier.any())
            with m.If(client.valid):
                m.d.comb += self.read.payload.eq(client.payload)
        return m
