"""A fair choice of one of several requests."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component

__all__ = ["RoundRobin"]


class RoundRobin(Component):
    """Grants one of the requests, in turn: the first behind the one that was taken last.

    Combinational from requests to grant. A request that stays is granted after at most `count - 1`
    others were taken.

    Parameters
    ----------
    count:
        Requests.

    Members
    -------
    requests:
        A bit each.
    grant:
        One of them, or none if there is none.
    taken:
        1 if the grant is used in this cycle; otherwise the order stays.

    Attributes
    ----------
    behind:
        Bit i is 1 if request i comes before those whose bit is 0.
    """

    def __init__(self, *, count: int) -> None:
        self.count = count
        self.behind = Signal(count)
        super().__init__({"requests": In(count), "grant": Out(count), "taken": In(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        if self.count == 1:
            m.d.comb += self.grant.eq(self.requests)
            return m
        behind = self.behind
        first = Signal(self.count)
        wanted = Signal(self.count)
        m.d.comb += [
            first.eq(self.requests & behind),
            wanted.eq(Mux(first.any(), first, self.requests)),
        ]
        earlier: Value = C(0, 1)
        for index in range(self.count):
            m.d.comb += self.grant[index].eq(wanted[index] & ~earlier)
            earlier = earlier | wanted[index]
        following = [self.grant[:index].any() if index else C(0, 1) for index in range(self.count)]
        with m.If(self.taken):
            m.d.sync += behind.eq(Cat(following))
        return m
