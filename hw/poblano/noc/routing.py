"""Dimension order routing on virtual channels, and the check that it cannot deadlock.

Imports no Amaranth. A flit goes along x first, then along y, each the shorter way; of two equally
long ways around a ring it takes the one to the east or north. Channel = class * lanes + lane. The
lane is a function of the destination. On a torus a flit is of class 0 until it crosses the link
around its ring (the dateline) and from then on, that link included, of class 1; a turn begins with
class 0 again. So all flits of a pair of source and destination take one path, on one channel of
each link, and arrive in order.

A channel depends on another if a flit may hold the first while it waits for the second. Without a
cycle of dependencies there is no deadlock (Dally and Seitz, 1987).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from poblano.noc.parameters import NocParameters
from poblano.noc.topology import Link, Port, Topology
from poblano_golden.errors import PoblanoError

__all__ = [
    "Hop",
    "check_no_deadlock",
    "dependencies",
    "find_cycle",
    "hops",
    "lane",
    "next_class",
    "next_port",
    "num_hops",
    "turns",
]


class Hop(NamedTuple):
    """A link and the virtual channel used on it."""

    link: Link
    channel: int

    def __str__(self) -> str:
        return f"{self.link.node}.{self.link.port.name.lower()}.{self.channel}"


def next_port(topology: Topology, node: int, destination: int) -> Port:
    """Return the port through which a flit leaves a node."""
    (x, y), (to_x, to_y) = topology.position(node), topology.position(destination)
    for at, to, side, forth, back in (
        (x, to_x, topology.width, Port.EAST, Port.WEST),
        (y, to_y, topology.height, Port.NORTH, Port.SOUTH),
    ):
        if at == to:
            continue
        is_forth = (to - at) % side <= side // 2 if topology.wraps else to > at
        return forth if is_forth else back
    return Port.LOCAL


def lane(parameters: NocParameters, destination: int) -> int:
    """Return the lane of every flit to a destination: (x + y) modulo the lanes."""
    x, y = parameters.shape.position(destination)
    return (x + y) % parameters.lanes


def next_class(parameters: NocParameters, link: Link, entered: Port, arrived: int) -> int:
    """Return the class of a flit on its next link.

    Parameters
    ----------
    link:
        That link.
    entered, arrived:
        The port by which the flit entered the node, and its class then.
    """
    if parameters.classes == 1:
        return 0
    crosses = parameters.shape.is_around(link)
    return int(crosses or (entered is link.port.opposite and arrived == 1))


def hops(parameters: NocParameters, source: int, destination: int) -> Iterator[Hop]:
    """Yield the links, with their channels, from a source to a destination; none for itself."""
    topology = parameters.shape
    on_lane = lane(parameters, destination)
    node, entered, at_class = source, Port.LOCAL, 0
    while (port := next_port(topology, node, destination)) is not Port.LOCAL:
        link = Link(node, port)
        at_class = next_class(parameters, link, entered, at_class)
        yield Hop(link, at_class * parameters.lanes + on_lane)
        following = topology.neighbour(node, port)
        assert following is not None
        node, entered = following, port.opposite


def num_hops(topology: Topology, source: int, destination: int) -> int:
    """Return the links between two nodes."""
    total = 0
    ends = zip(topology.position(source), topology.position(destination), strict=True)
    for (at, to), side in zip(ends, (topology.width, topology.height), strict=True):
        away = abs(at - to)
        total += min(away, side - away) if topology.wraps else away
    return total


def turns(entered: Port) -> tuple[Port, ...]:
    """Return the ports through which a flit may leave that entered by a port."""
    if entered is Port.LOCAL:
        return tuple(Port)
    along_y = () if not entered.is_x else (Port.NORTH, Port.SOUTH)
    return tuple(sorted((entered.opposite, *along_y, Port.LOCAL)))


def dependencies(parameters: NocParameters) -> dict[Hop, set[Hop]]:
    """Return for every channel that is used those that a flit in it may wait for."""
    nodes = range(parameters.shape.num_nodes)
    graph: dict[Hop, set[Hop]] = {}
    for destination in nodes:
        seen: set[Hop] = set()
        for source in nodes:
            before: Hop | None = None
            for hop in hops(parameters, source, destination):
                graph.setdefault(hop, set())
                if before is not None:
                    graph[before].add(hop)
                if hop in seen:
                    # from here on it is the path of an earlier source
                    break
                seen.add(hop)
                before = hop
    return graph


def find_cycle(graph: Mapping[Hop, set[Hop]]) -> list[Hop]:
    """Return the channels of a cycle in order; none if there is no cycle."""
    done: set[Hop] = set()
    for start in sorted(graph):
        if start in done:
            continue
        path, waiting = [start], [iter(sorted(graph[start]))]
        on_path = {start}
        while path:
            following = next(waiting[-1], None)
            if following is None:
                done.add(path[-1])
                on_path.discard(path.pop())
                waiting.pop()
            elif following in on_path:
                return path[path.index(following) :]
            elif following not in done:
                path.append(following)
                on_path.add(following)
                waiting.append(iter(sorted(graph[following])))
    return []


@cache
def check_no_deadlock(parameters: NocParameters) -> None:
    """Refuse a network whose channels can wait for each other in a circle.

    Raises
    ------
    PoblanoError
        With the cycle, channels as NODE.PORT.CHANNEL.
    """
    cycle = find_cycle(dependencies(parameters))
    if cycle:
        raise PoblanoError(
            "channels of a network must not wait for each other in a circle; got "
            f"{_circle(cycle)} with {parameters.channels} channel(s) on a "
            f"{parameters.width}x{parameters.height} {parameters.topology}"
        )


def _circle(cycle: Sequence[Hop]) -> str:
    return " -> ".join(map(str, (*cycle, cycle[0])))
