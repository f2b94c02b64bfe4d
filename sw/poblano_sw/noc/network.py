"""The network, a cycle at a time, for all nodes at once in numpy; equal to the RTL flit for flit.

The state is that of the hardware's registers: queues, credits, who may use which channel, and whose
turn it is. Queue and channel numbers follow the order of the router's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poblano.noc.parameters import NocParameters
from poblano.noc.routing import check_no_deadlock, lane, next_class, next_port
from poblano.noc.timing import credit_cycles
from poblano.noc.topology import Link, Port
from poblano_golden.errors import PoblanoError

__all__ = ["Network", "Step"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NUM_LINKS = 4
"""Ports of a router that lead to neighbours."""


@dataclass(frozen=True)
class Step:
    """What happened in a cycle, an entry a node.

    Attributes
    ----------
    accepted:
        The flit that was offered went in.
    valid, flit:
        A flit was offered to the node, and which.
    """

    accepted: Bools
    valid: Bools
    flit: Ints


class _Tables:
    """What never changes: where each queue's flits go."""

    def __init__(self, parameters: NocParameters) -> None:
        topology, channels = parameters.shape, parameters.channels
        nodes = range(topology.num_nodes)
        self.queues = [(port, c) for port in Port for c in range(channels)][
            : _NUM_LINKS * channels + parameters.lanes
        ]
        self.ports = np.array(
            [[next_port(topology, node, to) for to in nodes] for node in nodes], np.int64
        )
        self.lanes = np.array([lane(parameters, to) for to in nodes], np.int64)
        # class of a queue's flits behind a port
        self.classes = np.zeros((len(nodes), len(self.queues), len(Port)), np.int64)
        # where an output's channel 0 leads: node, and queue
        self.to_node = np.full((len(nodes), _NUM_LINKS), -1, np.int64)
        self.to_queue = np.array(
            [port.opposite * channels for port in Port if port is not Port.LOCAL], np.int64
        )
        for link in topology.links():
            following = topology.neighbour(link.node, link.port)
            assert following is not None
            self.to_node[link.node, link.port] = following
        for node in nodes:
            for queue, (entered, channel) in enumerate(self.queues):
                for port in tuple(Port)[:_NUM_LINKS]:
                    self.classes[node, queue, port] = next_class(
                        parameters, Link(node, port), entered, channel // parameters.lanes
                    )


class Network:
    """The network after reset.

    A flit is a number: `number(tag, destination, last)`.

    Parameters
    ----------
    parameters:
        The network.

    Attributes
    ----------
    cycle:
        Cycles that were run.

    Raises
    ------
    PoblanoError
        If packets could wait for each other in a circle.
    """

    def __init__(self, parameters: NocParameters) -> None:
        check_no_deadlock(parameters)
        self.parameters = parameters
        self._tables = tables = _Tables(parameters)
        self.num_nodes = nodes = parameters.shape.num_nodes
        queues = len(tables.queues)
        self._local_channel = _NUM_LINKS * parameters.channels
        outputs = self._local_channel + 1
        self._eject_depth = credit_cycles(parameters)
        self._nodes = np.arange(nodes)
        self._queue_numbers = np.arange(queues)
        self.cycle = 0
        # one more node than there are takes what leaves on ports without a neighbour: nothing
        self._flits = np.zeros((nodes, queues, parameters.depth), np.int64)
        self._held = np.zeros((nodes, queues), np.int64)
        self._credits = np.full((nodes, outputs), parameters.depth, np.int64)
        self._credits[:, self._local_channel] = self._eject_depth
        self._may = np.ones((nodes, outputs, queues), np.bool_)
        self._turn = np.zeros((nodes, outputs), np.int64)
        self._port_turn = np.zeros((nodes, len(Port)), np.int64)
        self._inject_credits = np.full((nodes, parameters.lanes), parameters.depth, np.int64)
        self._eject = np.zeros((nodes, self._eject_depth), np.int64)
        self._eject_held = np.zeros(nodes, np.int64)
        self._registered: list[tuple[Ints, Ints, Ints]] = []

    def number(self, tag: Ints, destination: Ints, last: Bools) -> Ints:
        """Return flits: a tag of the caller's, the node to go to, and whether a packet ends."""
        return (tag * self.num_nodes + destination) * 2 + last

    def parts(self, flit: Ints) -> tuple[Ints, Ints, Bools]:
        """Return tag, destination and last of flits."""
        return flit // 2 // self.num_nodes, flit // 2 % self.num_nodes, flit % 2 == 1

    @property
    def num_held(self) -> int:
        """Flits that are inside."""
        on_way = sum(len(node) for node, _, _ in self._registered)
        return int(self._held.sum() + self._eject_held.sum()) + on_way

    def step(self, offered: Bools, flits: Ints, ready: Bools) -> Step:
        """Run one cycle.

        Parameters
        ----------
        offered, flits:
            For each node whether it offers a flit, and which.
        ready:
            For each node whether it accepts what it is offered.
        """
        if not len(offered) == len(flits) == len(ready) == self.num_nodes:
            raise PoblanoError(
                f"a cycle must have an entry a node, {self.num_nodes}; got {len(offered)}"
            )
        node, queue, flit, channel = self._choose()
        ejected = (self._eject_held > 0) & ready
        outcome_valid, outcome_flit = self._eject_held > 0, self._eject[:, 0].copy()
        accepted, lanes = self._inject(offered, flits)

        arrivals = self._sent(node, channel, flit)
        self._pop(node, queue)
        self._credits[ejected, self._local_channel] += 1
        self._eject[ejected] = np.roll(self._eject[ejected], -1, axis=1)
        self._eject_held -= ejected
        if self.parameters.output_register:
            arrivals, self._registered = self._registered, arrivals
        for to_node, to_queue, what in arrivals:
            self._arrive(to_node, to_queue, what)
        where = np.flatnonzero(accepted)
        self._arrive(where, self._local_channel + lanes[where], flits[where])
        self.cycle += 1
        return Step(accepted, outcome_valid, outcome_flit)

    def _choose(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return node, queue, flit and output channel of the flits that leave their queue."""
        tables, parameters = self._tables, self.parameters
        heads = self._flits[:, :, 0]
        destination = heads // 2 % self.num_nodes
        port = tables.ports[self._nodes[:, None], destination]
        is_local = port == Port.LOCAL
        at_class = tables.classes[self._nodes[:, None], self._queue_numbers, port]
        channel = np.where(
            is_local,
            self._local_channel,
            port * parameters.channels + at_class * parameters.lanes + tables.lanes[destination],
        )
        # each channel chooses a queue
        outputs = self._credits.shape[1]
        asks = np.zeros((self.num_nodes, outputs, len(self._queue_numbers)), np.bool_)
        node, queue = np.nonzero(self._held)
        asks[node, channel[node, queue], queue] = True
        asks &= self._may
        chosen = _in_turn(asks, self._turn)
        offers = asks.any(axis=2) & (self._credits > 0)
        # each output chooses a channel
        granted = np.zeros_like(offers)
        for index in range(len(Port)):
            first = index * parameters.channels
            mine = slice(first, first + (parameters.channels if index < _NUM_LINKS else 1))
            choice = _in_turn(offers[:, mine], self._port_turn[:, index])
            any_offer = offers[:, mine].any(axis=1)
            granted[self._nodes[any_offer], first + choice[any_offer]] = True
            after = (choice + 1) % offers[:, mine].shape[1]
            self._port_turn[:, index] = np.where(any_offer, after, self._port_turn[:, index])
        node, to_channel = np.nonzero(granted)
        queue = chosen[node, to_channel]
        flit = heads[node, queue]
        self._turn[node, to_channel] = (queue + 1) % len(self._queue_numbers)
        is_last = (flit % 2 == 1)[:, None]
        self._may[node, to_channel] = is_last | (self._queue_numbers == queue[:, None])
        self._credits[node, to_channel] -= 1
        return node, queue, flit, to_channel

    def _inject(self, offered: Bools, flits: Ints) -> tuple[Bools, Ints]:
        lanes = self._tables.lanes[flits // 2 % self.num_nodes]
        accepted = offered & (self._inject_credits[self._nodes, lanes] > 0)
        self._inject_credits[self._nodes, lanes] -= accepted
        return accepted, lanes

    def _sent(self, node: Ints, channel: Ints, flit: Ints) -> list[tuple[Ints, Ints, Ints]]:
        """Return node, queue and flit of what arrives; the queue behind the last is the sink's."""
        is_local = channel == self._local_channel
        port, inside = np.divmod(channel[~is_local], self.parameters.channels)
        to_node = self._tables.to_node[node[~is_local], port]
        to_queue = self._tables.to_queue[port] + inside
        sink = np.full(int(is_local.sum()), len(self._queue_numbers))
        return [(to_node, to_queue, flit[~is_local]), (node[is_local], sink, flit[is_local])]

    def _pop(self, node: Ints, queue: Ints) -> None:
        """Take heads away, and send their credits back."""
        self._flits[node, queue] = np.roll(self._flits[node, queue], -1, axis=1)
        self._held[node, queue] -= 1
        is_local = queue >= self._local_channel
        self._inject_credits[node[is_local], queue[is_local] - self._local_channel] += 1
        entered, channel = np.divmod(queue[~is_local], self.parameters.channels)
        # the neighbour behind the port that was entered by sent it through the opposite one
        sender = self._tables.to_node[node[~is_local], entered]
        opposite = (entered + 2) % _NUM_LINKS
        self._credits[sender, opposite * self.parameters.channels + channel] += 1

    def _arrive(self, node: Ints, queue: Ints, flit: Ints) -> None:
        is_sink = queue == len(self._queue_numbers)
        at = node[is_sink]
        self._eject[at, self._eject_held[at]] = flit[is_sink]
        self._eject_held[at] += 1
        node, queue, flit = node[~is_sink], queue[~is_sink], flit[~is_sink]
        self._flits[node, queue, self._held[node, queue]] = flit
        self._held[node, queue] += 1


def _in_turn(requests: Bools, turn: Ints) -> Ints:
    """Return along the last axis the first request from `turn` on, cyclically; any if none."""
    count = requests.shape[-1]
    order = (np.arange(count) - turn[..., None]) % count
    return np.where(requests, order, count).argmin(axis=-1)
