"""The router of the network on chip."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.noc.flit_buffer import FlitBuffer
from poblano.noc.link import flit_layout, link
from poblano.noc.output_channel import OutputChannel
from poblano.noc.parameters import NocParameters
from poblano.noc.round_robin import RoundRobin
from poblano.noc.routing import turns
from poblano.noc.timing import credit_cycles
from poblano.noc.topology import Port

__all__ = ["Router", "input_channels", "output_channels", "output_depth"]


def input_channels(parameters: NocParameters, port: Port) -> int:
    """Return the channels of an input: those of the links, without the local one's upper class."""
    return parameters.lanes if port is Port.LOCAL else parameters.channels


def output_channels(parameters: NocParameters, port: Port) -> int:
    """Return the channels of an output; what leaves the network shares one."""
    return 1 if port is Port.LOCAL else parameters.channels


def output_depth(parameters: NocParameters, port: Port) -> int:
    """Return the flits that the buffer behind an output's channel holds."""
    return credit_cycles(parameters) if port is Port.LOCAL else parameters.depth


class _Queue(NamedTuple):
    """A channel of an input: its buffer's outputs, and the ports that its head asks for."""

    port: Port
    channel: int
    head: Value
    pop: Signal
    wants: dict[Port, Signal]


class Router(Component):
    """Moves flits from five inputs to five outputs, one a cycle and output; wormhole, credits.

    A flit that came in one cycle leaves in the next, if its output is free: one cycle a hop, two
    with the output register. Nothing combinational leads from an input to an output. Every channel
    of an input has its own way to the outputs, so an output is idle only while none of the heads
    that ask for it may leave. A packet's flits leave one after the other on their channel; those
    of other channels may come between. Every output takes its channels in turn, and each of them
    the inputs in turn, packet by packet: nobody who asks is passed over for ever.

    Parameters
    ----------
    parameters_of:
        The network.

    Members
    -------
    x, y:
        Where the router stands; constants.
    north_in, east_in, south_in, west_in, local_in:
        Links from the neighbours; the local one comes from `Injector`.
    north_out, east_out, south_out, west_out, local_out:
        Links to them; the local one leads to `Ejector`, on one channel. Where there is no
        neighbour the link is left alone; a mesh routes nothing there.
    """

    def __init__(self, *, parameters_of: NocParameters) -> None:
        self.network = parameters_of
        position = flit_layout(parameters_of)["destination"].shape
        members = {"x": In(position["x"].shape), "y": In(position["y"].shape)}
        for port in Port:
            name = port.name.lower()
            inputs, outputs = (
                count(parameters_of, port) for count in (input_channels, output_channels)
            )
            members[f"{name}_in"] = In(link(parameters_of, inputs))
            members[f"{name}_out"] = Out(link(parameters_of, outputs))
        super().__init__(members)

    @property
    def latency(self) -> int:
        """Cycles of a hop."""
        return self.network.hop_cycles

    def link(self, port: Port, direction: str):
        """Return the link of a port; `direction` is `in` or `out`."""
        return getattr(self, f"{port.name.lower()}_{direction}")

    def elaborate(self, platform) -> Module:
        m = Module()
        queues = [
            self._queue(m, platform, port, channel)
            for port in Port
            for channel in range(input_channels(self.network, port))
        ]
        crosses = self._crosses(m)
        pops: dict[int, list[Value]] = {index: [] for index in range(len(queues))}
        for port in Port:
            self._output(m, platform, port, queues, crosses[port], pops)
        for queue, reasons in zip(queues, pops.values(), strict=True):
            m.d.comb += queue.pop.eq(Cat(reasons).any())
        return m

    def _crosses(self, m: Module) -> dict[Port, Value]:
        """Return for every output whether it leads around the ring of a torus."""
        network = self.network
        if network.classes == 1:
            return dict.fromkeys(Port, C(0, 1))
        return {
            Port.NORTH: self.y == network.height - 1,
            Port.EAST: self.x == network.width - 1,
            Port.SOUTH: self.y == 0,
            Port.WEST: self.x == 0,
            Port.LOCAL: C(0, 1),
        }

    def _queue(self, m: Module, platform, port: Port, channel: int) -> _Queue:
        """Add the buffer of an input's channel, and ask for the head's output."""
        name = f"{port.name.lower()}_{channel}"
        incoming = self.link(port, "in")
        pop = Signal(name=f"pop_{name}")
        buffer = FlitBuffer(parameters_of=self.network, depth=self.network.depth)
        m.submodules[f"buffer_{name}"] = once(buffer, platform)
        m.d.comb += [
            buffer.push.eq(incoming.valid[channel]),
            buffer.flit.eq(incoming.flit),
            buffer.pop.eq(pop),
            incoming.credit[channel].eq(pop),
        ]
        wants = {to: Signal(name=f"{name}_wants_{to.name.lower()}") for to in turns(port)}
        for to, condition in self._route(port, buffer.head.destination).items():
            m.d.comb += wants[to].eq(buffer.valid & condition)
        return _Queue(port, channel, buffer.head, pop, wants)

    def _route(self, entered: Port, to) -> dict[Port, Value]:
        """Return when a head leaves by which port.

        It never turns back, so who came along x goes on until the column is right, and along y
        until the row is: only those that start on a dimension compare which way is shorter.
        """
        away_x, away_y = to.x != self.x, to.y != self.y
        if not entered.is_x and entered is not Port.LOCAL:
            return {entered.opposite: away_y, Port.LOCAL: ~away_y}
        north = self._is_forth(self.y, to.y, self.network.height)
        found = {
            Port.NORTH: ~away_x & away_y & north,
            Port.SOUTH: ~away_x & away_y & ~north,
            Port.LOCAL: ~away_x & ~away_y,
        }
        if entered.is_x:
            return {**found, entered.opposite: away_x}
        east = self._is_forth(self.x, to.x, self.network.width)
        return {**found, Port.EAST: away_x & east, Port.WEST: away_x & ~east}

    def _is_forth(self, at, to, side: int) -> Value:
        """Return whether a flit that must move goes east or north."""
        if self.network.topology == "mesh":
            return to > at
        away = (to - at).as_signed()
        return Mux(to >= at, away <= side // 2, away <= side // 2 - side)

    def _output(self, m: Module, platform, port: Port, queues, crosses, pops) -> None:
        """Let every channel of an output choose a queue, the output a channel; join the flits."""
        network = self.network
        outgoing = self.link(port, "out")
        count = output_channels(network, port)
        name = port.name.lower()
        offers = Signal(count, name=f"{name}_offers")
        grant = Signal(count, name=f"{name}_grant")
        m.submodules[f"{name}_turn"] = turn = RoundRobin(count=count)
        m.d.comb += [
            turn.requests.eq(offers),
            turn.taken.eq(offers.any()),
            grant.eq(turn.grant),
        ]
        selected: list[list[Value]] = [[] for _ in queues]
        for channel in range(count):
            sources = [
                (index, asks)
                for index, queue in enumerate(queues)
                if (asks := self._asks(queue, port, channel, crosses)) is not None
            ]
            giver = OutputChannel(sources=len(sources), depth=output_depth(network, port))
            m.submodules[f"{name}_{channel}"] = once(giver, platform)
            m.d.comb += [
                giver.requests.eq(Cat(asks for _, asks in sources)),
                giver.last.eq(Cat(queues[index].head.last for index, _ in sources)),
                giver.credit.eq(outgoing.credit[channel]),
                giver.taken.eq(grant[channel]),
                offers[channel].eq(giver.offer),
            ]
            for bit, (index, _) in enumerate(sources):
                pops[index].append(giver.chosen[bit])
                selected[index].append(giver.chosen[bit])
        legs = [
            (Cat(bits).any(), queues[index].head.as_value())
            for index, bits in enumerate(selected)
            if bits
        ]
        flit = _join(legs)[1]
        if network.output_register:
            m.d.sync += outgoing.valid.eq(grant)
            with m.If(offers.any()):
                m.d.sync += outgoing.flit.eq(flit)
        else:
            m.d.comb += [outgoing.valid.eq(grant), outgoing.flit.eq(flit)]

    def _asks(self, queue: _Queue, port: Port, channel: int, crosses) -> Value | None:
        """Return when a queue's head asks for a channel of an output; None if it never does."""
        network = self.network
        if port not in queue.wants:
            return None
        wants = queue.wants[port]
        if port is Port.LOCAL or network.classes == 1:
            return wants if port is Port.LOCAL or queue.channel == channel else None
        if queue.channel % network.lanes != channel % network.lanes:
            return None
        is_upper = channel >= network.lanes
        if queue.port is port.opposite and queue.channel >= network.lanes:
            return wants if is_upper else None
        return wants & (crosses if is_upper else ~crosses)


def _join(legs: list[tuple[Value, Value]]) -> tuple[Value, Value]:
    """Return the one of several values that is selected, and whether one of them is; any if none.

    A tree of two-way multiplexers: one fewer than there are values.
    """
    if len(legs) == 1:
        return legs[0]
    half = len(legs) // 2
    (is_low, low), (is_high, high) = _join(legs[:half]), _join(legs[half:])
    return is_low | is_high, Mux(is_high, high, low)
