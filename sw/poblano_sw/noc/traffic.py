"""Patterns of traffic, and what a network does under them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poblano.noc.parameters import NocParameters
from poblano.noc.topology import Topology
from poblano_golden.errors import PoblanoError
from poblano_sw.noc.network import Network

__all__ = ["PATTERNS", "LoadPoint", "Sources", "measure_load"]

Ints = NDArray[np.int64]

Pattern = Callable[[Topology, Ints, np.random.Generator], Ints]
"""From sources to one destination each."""

HOTSPOT_SHARE = 0.2
"""Of the packets of `hotspot` go to the node in the middle; the others are uniform."""


def _uniform(topology: Topology, sources: Ints, random: np.random.Generator) -> Ints:
    return random.integers(topology.num_nodes, size=len(sources))


def _transpose(topology: Topology, sources: Ints, _: np.random.Generator) -> Ints:
    if topology.width != topology.height:
        raise PoblanoError(
            f"transpose needs as many columns as rows; got {topology.width}x{topology.height}"
        )
    return sources % topology.width * topology.width + sources // topology.width


def _complement(topology: Topology, sources: Ints, _: np.random.Generator) -> Ints:
    return topology.num_nodes - 1 - sources


def _hotspot(topology: Topology, sources: Ints, random: np.random.Generator) -> Ints:
    middle = topology.node(topology.width // 2, topology.height // 2)
    is_hot = random.random(len(sources)) < HOTSPOT_SHARE
    return np.where(is_hot, middle, _uniform(topology, sources, random))


def _neighbour(topology: Topology, sources: Ints, _: np.random.Generator) -> Ints:
    y, x = np.divmod(sources, topology.width)
    return y * topology.width + (x + 1) % topology.width


PATTERNS: dict[str, Pattern] = {
    "uniform": _uniform,
    "transpose": _transpose,
    "bit-complement": _complement,
    "hotspot": _hotspot,
    "neighbour": _neighbour,
}
"""By name. `uniform` includes the source itself; `bit-complement` is the node opposite, which it is
also where the number of nodes is no power of two; `neighbour` is the next one to the east."""


class Sources:
    """A queue without end at every node, filled by packets at random times.

    Parameters
    ----------
    topology, pattern:
        Where packets go.
    load:
        Flits a node and cycle, 0 to 1.
    flits:
        Flits of a packet.
    seed:
        Of everything random.
    """

    def __init__(
        self, topology: Topology, pattern: str, load: float, flits: int, seed: int
    ) -> None:
        if pattern not in PATTERNS:
            raise PoblanoError(f"a pattern must be one of {', '.join(PATTERNS)}; got {pattern}")
        if not 0 < load <= 1:
            raise PoblanoError(f"a load must be above 0 and at most 1 flit a cycle; got {load}")
        if flits < 1:
            raise PoblanoError(f"a packet must have 1 flit at least; got {flits}")
        self._topology = topology
        self._pattern = PATTERNS[pattern]
        self._rate = load / flits
        self._flits = flits
        self._random = np.random.default_rng(seed)
        self._nodes = np.arange(topology.num_nodes)
        self._queues: list[list[tuple[int, int]]] = [[] for _ in self._nodes]
        self._first = np.zeros(len(self._nodes), np.int64)
        self._sent = np.zeros(len(self._nodes), np.int64)
        self._pattern(topology, self._nodes, self._random)

    def arrive(self, cycle: int) -> None:
        """Let the packets of a cycle arrive at their queues."""
        comes = np.flatnonzero(self._random.random(len(self._nodes)) < self._rate)
        for node, to in zip(comes, self._pattern(self._topology, comes, self._random), strict=True):
            self._queues[node].append((cycle, int(to)))

    def offer(self) -> tuple[NDArray[np.bool_], Ints, Ints, NDArray[np.bool_]]:
        """Return for each node whether it has a flit, the cycle its packet came, where to, last."""
        waits = np.zeros(len(self._nodes), np.bool_)
        cycles, to = np.zeros_like(self._nodes), np.zeros_like(self._nodes)
        for node, queue in enumerate(self._queues):
            if self._first[node] < len(queue):
                waits[node] = True
                cycles[node], to[node] = queue[self._first[node]]
        return waits, cycles, to, self._sent == self._flits - 1

    def accept(self, accepted: NDArray[np.bool_]) -> None:
        """Take away the flits that went in."""
        self._sent += accepted
        done = self._sent == self._flits
        self._first += done
        self._sent[done] = 0


@dataclass(frozen=True)
class LoadPoint:
    """A network under one load.

    Attributes
    ----------
    offered, accepted:
        Flits a node and cycle.
    latency:
        Mean cycles from a packet's arrival at its source's queue to the cycle that offers its last
        flit to the sink; NaN if no packet came through.
    packets:
        Packets that the latency is the mean of.
    """

    offered: float
    accepted: float
    latency: float
    packets: int


def measure_load(
    parameters: NocParameters,
    pattern: str,
    load: float,
    *,
    flits: int = 1,
    cycles: int = 1000,
    warm_up: int = 500,
    seed: int = 1,
) -> LoadPoint:
    """Run a network with sinks that always accept; count what comes out after the warm-up."""
    network = Network(parameters)
    sources = Sources(parameters.shape, pattern, load, flits, seed)
    ready = np.ones(network.num_nodes, np.bool_)
    delivered = packets = 0
    total = 0
    for cycle in range(warm_up + cycles):
        sources.arrive(cycle)
        waits, came, to, last = sources.offer()
        step = network.step(waits, network.number(came, to, last), ready)
        sources.accept(step.accepted)
        if cycle >= warm_up:
            began, _, is_last = network.parts(step.flit[step.valid])
            delivered += len(began)
            packets += int(is_last.sum())
            total += int((cycle - began)[is_last].sum())
    latency = total / packets if packets else float("nan")
    return LoadPoint(load, delivered / (cycles * network.num_nodes), latency, packets)
