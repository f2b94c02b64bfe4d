"""A queue of flits in registers, whose head is a register too."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.noc.link import flit_layout
from poblano.noc.parameters import NocParameters

__all__ = ["FlitBuffer"]


class FlitBuffer(Component):
    """Holds up to `depth` flits, oldest in front; a flit can leave the cycle after it came.

    There is no backpressure: credits keep the sender from filling a full buffer, and nothing is
    taken that is not there.

    Parameters
    ----------
    parameters_of:
        The network.
    depth:
        Flits.

    Members
    -------
    push, flit:
        1 to put a flit behind the others.
    pop:
        1 to take the head away.
    valid, head:
        Whether there is a flit, and the oldest.

    Attributes
    ----------
    used:
        Bit i is 1 if place i holds a flit; place 0 is the head.
    places:
        The flits.
    """

    def __init__(self, *, parameters_of: NocParameters, depth: int) -> None:
        self.depth = depth
        layout = flit_layout(parameters_of)
        self.used = Signal(depth)
        self.places = [Signal(layout, name=f"place_{i}", reset_less=True) for i in range(depth)]
        super().__init__(
            {
                "push": In(1),
                "flit": In(layout),
                "pop": In(1),
                "valid": Out(1),
                "head": Out(layout),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        # Flits move forward as the head leaves, so that the head needs no multiplexer.
        used, places = self.used, self.places
        with m.If(self.push & ~self.pop):
            m.d.sync += used.eq(Cat(C(1, 1), used))
        with m.If(~self.push & self.pop):
            m.d.sync += used.eq(used[1:])
        for index, place in enumerate(places):
            filled_behind = used[index + 1] if index + 1 < self.depth else C(0, 1)
            in_front = used[index - 1] if index else C(1, 1)
            # What is pushed lands here if this is the first free place once the head has left. It
            # could land in all free places; that would only cost power.
            lands = Signal(name=f"lands_{index}")
            m.d.comb += lands.eq(
                Mux(self.pop, ~filled_behind & (used[index] | C(index == 0)), ~used[index])
                & in_front
            )
            if index + 1 < self.depth:
                with m.If(self.pop & filled_behind):
                    m.d.sync += place.eq(places[index + 1])
                with m.Elif(self.push & lands):
                    m.d.sync += place.eq(self.flit)
            else:
                with m.If(self.push & lands):
                    m.d.sync += place.eq(self.flit)
        m.d.comb += [self.valid.eq(used[0]), self.head.eq(places[0])]
        return m
