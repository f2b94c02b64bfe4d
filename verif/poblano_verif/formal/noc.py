# pyright: reportGeneralTypeIssues=false, reportAttributeAccessIssue=false, reportIndexIssue=false
# pyright: reportMissingParameterType=false, reportArgumentType=false
# (Amaranth's idioms)
"""Proofs of the network on chip: its buffer, its credits, its turns, and one whole router.

Each specification is a circuit with the block inside, symbolic inputs, assumptions on them, and
assertions. What a symbolic constant stands for holds for every value of it.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assert, Assume, C, Cat, Const, Cover, Module, Mux, Signal, Value
from amaranth.lib.wiring import Component

from poblano.noc.flit_buffer import FlitBuffer
from poblano.noc.link import flit_layout
from poblano.noc.output_channel import OutputChannel
from poblano.noc.parameters import NocParameters
from poblano.noc.round_robin import RoundRobin
from poblano.noc.router import Router, output_depth
from poblano.noc.topology import Port
from poblano_verif.formal.symbolic import any_constant, any_value, new_module

__all__ = ["BufferOrder", "CreditSum", "FairTurns", "RouterDelivers"]


def _ones(bits: Value) -> Value:
    total: Value = C(0, 1)
    for bit in bits:
        total = total + bit
    return total


class BufferOrder(Component):
    """A buffer gives back what was put in, in order: a marked flit leaves unchanged in its turn.

    Nothing is pushed into a full buffer, or popped from an empty one.
    """

    def __init__(self, *, depth: int) -> None:
        self.depth = depth
        self.network = NocParameters(payload_width=4, kind_width=1)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Follow a flit that is pushed at a time of the solver's choice."""
        m = new_module()
        m.submodules.buffer = buffer = FlitBuffer(parameters_of=self.network, depth=self.depth)
        m.d.comb += [
            buffer.push.eq(any_value(m, 1, "push")),
            buffer.pop.eq(any_value(m, 1, "pop")),
            Value.cast(buffer.flit).eq(any_value(m, len(Value.cast(buffer.flit)), "flit")),
        ]
        count = Signal(range(self.depth + 1))
        m.d.sync += count.eq(count + buffer.push - buffer.pop)
        m.d.comb += [
            Assume(~(buffer.push & ~buffer.pop & (count == self.depth))),
            Assume(~(buffer.pop & (count == 0))),
            Assert(buffer.valid == (count != 0)),
            # for the induction: the places in use are the first ones
            Assert(_ones(buffer.used) == count),
            Assert((buffer.used & (buffer.used + 1)) == 0),
        ]
        marked = any_constant(m, len(Value.cast(buffer.flit)), "marked")
        mark = any_value(m, 1, "mark")
        follows, ahead = Signal(), Signal(range(self.depth + 1))
        with m.If(follows):
            with m.If(buffer.pop):
                m.d.sync += ahead.eq(ahead - 1)
                with m.If(ahead == 0):
                    m.d.comb += Assert(Value.cast(buffer.head) == marked)
                    m.d.sync += follows.eq(0)
            m.d.comb += [
                Assert(ahead < count),
                Assert(
                    Cat(
                        (ahead != i) | (Value.cast(place) == marked)
                        for i, place in enumerate(buffer.places)
                    ).all()
                ),
            ]
        with m.Elif(mark & buffer.push):
            m.d.comb += Assume(Value.cast(buffer.flit) == marked)
            m.d.sync += [follows.eq(1), ahead.eq(count - buffer.pop)]
        m.d.comb += Cover(follows & buffer.pop & (ahead == 0) & (count == self.depth))
        return m


class CreditSum(Component):
    """Credits left, flits on the link and flits in the buffer behind it are always the depth.

    So the buffer never overflows, and a flit may go whenever there is room: an output channel,
    its output register if there is one, a buffer, and a receiver that pops when it likes.
    """

    def __init__(self, *, depth: int, registered: bool) -> None:
        self.depth, self.registered = depth, registered
        self.network = NocParameters(payload_width=1, kind_width=1)
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Join both ends of a link."""
        m = new_module()
        m.submodules.channel = channel = OutputChannel(sources=2, depth=self.depth)
        m.submodules.buffer = buffer = FlitBuffer(parameters_of=self.network, depth=self.depth)
        sent = Signal()
        if self.registered:
            m.d.sync += sent.eq(channel.taken)
        else:
            m.d.comb += sent.eq(channel.taken)
        m.d.comb += [
            channel.requests.eq(any_value(m, 2, "requests")),
            channel.last.eq(any_value(m, 2, "last")),
            channel.taken.eq(channel.offer & any_value(m, 1, "turn")),
            channel.credit.eq(buffer.pop),
            buffer.push.eq(sent),
            buffer.pop.eq(buffer.valid & any_value(m, 1, "accepts")),
        ]
        held = _ones(buffer.used)
        on_link = sent if self.registered else C(0, 1)
        m.d.comb += [
            Assert(channel.room + held + on_link == self.depth),
            Assert((buffer.used & (buffer.used + 1)) == 0),
            Assert(~(buffer.push & (held == self.depth)), "a full buffer is pushed into"),
            # exactly one source has the channel within a packet, and all may ask between packets
            Assert((channel.may == 3) | (channel.may == 1) | (channel.may == 2)),
            Cover((channel.room == 0) & channel.credit),
            Cover((channel.room == 0) & (held == self.depth)),
        ]
        return m


class FairTurns(Component):
    """One request at most is granted, one if there is any, and none waits for more than others."""

    def __init__(self, *, count: int) -> None:
        self.count = count
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Count what is taken while a request of the solver's choice waits."""
        m = new_module()
        count = self.count
        m.submodules.turn = turn = RoundRobin(count=count)
        m.d.comb += [
            turn.requests.eq(any_value(m, count, "requests")),
            turn.taken.eq(any_value(m, 1, "taken") & turn.requests.any()),
            Assert((turn.grant & ~turn.requests) == 0),
            Assert((turn.grant & (turn.grant - 1))[:count] == 0),
            Assert(turn.grant.any() == turn.requests.any()),
        ]
        mine = any_constant(m, range(count), "mine")
        m.d.comb += Assume(mine < count)
        waits = Signal(range(count + 1))
        asks, gets = turn.requests.bit_select(mine, 1), turn.grant.bit_select(mine, 1)
        with m.If(~asks | (turn.taken & gets)):
            m.d.sync += waits.eq(0)
        with m.Elif(turn.taken):
            m.d.sync += waits.eq(waits + 1)
        # for the induction: as many may still come before `mine` as lie between it and the first
        lowest = Signal(range(count))
        value: Value = C(0, 1)
        for index in reversed(range(count)):
            value = Mux(turn.behind[index], index, value)
        m.d.comb += lowest.eq(value)
        between = Mux(mine >= lowest, mine - lowest, mine + count - lowest)
        m.d.comb += [
            Assert(waits < count),
            Assert(waits + between[: len(mine)] < count),
            Assert(Cat(~(turn.behind[i] & ~turn.behind[i + 1]) for i in range(count - 1)).all()),
            Cover(waits == count - 1),
        ]
        return m


class RouterDelivers(Component):
    """A flit that enters a router leaves it once at most, unchanged, by the port of its way.

    And as many flits leave in a cycle as credits go back to the senders: what has not left keeps
    its place. Senders keep to their credits, receivers give back no more than they took; everything
    else is free: all inputs, packets of any length, and the router's place in a 3x3 mesh. The
    marked flit enters by `port` at a time of the solver's choice, and no other flit is like it.
    """

    def __init__(self, *, port: Port) -> None:
        self.port = port
        self.network = NocParameters(
            width=3,
            height=3,
            payload_width=2,
            kind_width=1,
            depth=2,
        )
        super().__init__({})

    def elaborate(self, platform: Any) -> Module:  # noqa: ARG002 (Amaranth's interface)
        """Surround a router with symbolic neighbours."""
        m = new_module()
        network = self.network
        m.submodules.router = router = Router(parameters_of=network)
        layout = flit_layout(network)
        position = {name: any_constant(m, 2, f"at_{name}") for name in "xy"}
        to = {name: any_constant(m, 2, f"to_{name}") for name in "xy"}
        for name in "xy":
            m.d.comb += [
                getattr(router, name).eq(position[name]),
                Assume(position[name] < 3),
                Assume(to[name] < 3),
            ]
        marked = any_constant(m, layout.size, "marked")
        fields = layout(marked)
        m.d.comb += [Assume(fields.destination[name] == to[name]) for name in "xy"]
        enters = Signal()
        for port in Port:
            self._sender(m, router, port, position, layout, marked, enters)
        leaves = {port: Signal(name=f"leaves_{port.name.lower()}") for port in Port}
        for port in Port:
            self._receiver(m, router, port, marked, leaves[port])

        inside, done = Signal(), Signal()
        any_leaves = Cat(leaves.values()).any()
        returned = [router.link(port, "in").credit for port in Port]
        gone = Signal(range(len(Port) + 1))
        m.d.comb += gone.eq(_ones(Cat(router.link(port, "out").valid for port in Port)))
        m.d.comb += [
            Assume(~(enters & (inside | done))),
            Assert(~any_leaves | inside, "a flit leaves that is not inside"),
            Assert(_ones(Cat(leaves.values())) <= 1, "a flit leaves twice"),
            Assert(gone == _ones(Cat(returned)), "a flit is lost"),
            Cover(any_leaves & (gone == 3)),
        ]
        with m.If(enters):
            m.d.sync += inside.eq(1)
        with m.If(any_leaves):
            m.d.sync += [inside.eq(0), done.eq(1)]
        right = self._way(position, to)
        for port in Port:
            m.d.comb += Assert(~leaves[port] | right[port], f"a flit is misrouted {port.name}")
        return m

    def _way(self, at: dict[str, Signal], to: dict[str, Signal]) -> dict[Port, Value]:
        same = to["x"] == at["x"]
        return {
            Port.EAST: to["x"] > at["x"],
            Port.WEST: to["x"] < at["x"],
            Port.NORTH: same & (to["y"] > at["y"]),
            Port.SOUTH: same & (to["y"] < at["y"]),
            Port.LOCAL: same & (to["y"] == at["y"]),
        }

    def _sender(self, m, router, port, position, layout, marked, enters) -> None:
        """Send what routing can bring here, as far as there are credits."""
        name = port.name.lower()
        incoming = router.link(port, "in")
        flit = any_value(m, layout.size, f"flit_{name}")
        sends = any_value(m, 1, f"sends_{name}")
        room = Signal(range(self.network.depth + 1), init=self.network.depth, name=f"room_{name}")
        m.d.comb += [
            incoming.valid.eq(sends & (room != 0)),
            Value.cast(incoming.flit).eq(flit),
            Assert((room != self.network.depth) | ~incoming.credit, "a credit too many"),
        ]
        m.d.sync += room.eq(room - incoming.valid + incoming.credit)
        to = layout(flit).destination
        reachable = {
            Port.NORTH: (to.x == position["x"]) & (to.y <= position["y"]),
            Port.SOUTH: (to.x == position["x"]) & (to.y >= position["y"]),
            Port.EAST: to.x <= position["x"],
            Port.WEST: to.x >= position["x"],
            Port.LOCAL: Const(1, 1),
        }[port]
        m.d.comb += [Assume(~incoming.valid | reachable)]
        m.d.comb += [Assume(~incoming.valid | ((to.x < 3) & (to.y < 3)))]
        is_marked = incoming.valid & (flit == marked)
        if port is self.port:
            m.d.comb += enters.eq(is_marked)
        else:
            m.d.comb += Assume(~is_marked)

    def _receiver(self, m, router, port, marked, leaves) -> None:
        """Give credits back for flits that came, at any time."""
        name = port.name.lower()
        outgoing = router.link(port, "out")
        depth = output_depth(self.network, port)
        held = Signal(range(depth + 1), name=f"held_{name}")
        gives = any_value(m, 1, f"gives_{name}")
        m.d.comb += [
            outgoing.credit.eq(gives & (held != 0)),
            Assert(~outgoing.valid | (held != depth), "more flits than credits"),
            leaves.eq(outgoing.valid & (Value.cast(outgoing.flit) == marked)),
        ]
        m.d.sync += held.eq(held + outgoing.valid - outgoing.credit)
