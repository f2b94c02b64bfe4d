"""Nodes, ports and links of a mesh or torus; imports no Amaranth.

Node (x, y) has number y * width + x; x grows to the east and y to the north. A ring of one node
has no links.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from poblano_golden.errors import PoblanoError

__all__ = ["KINDS", "MAX_SIDE", "Link", "Port", "Topology"]

KINDS = ("mesh", "torus")

MAX_SIDE = 16
"""Nodes of a row or column at most."""


class Port(IntEnum):
    """Ports of a router. A flit leaves through the port that is named after where it goes."""

    NORTH = 0
    EAST = 1
    SOUTH = 2
    WEST = 3
    LOCAL = 4

    @property
    def opposite(self) -> Port:
        """The port by which what leaves through this one enters the neighbour."""
        return self if self is Port.LOCAL else Port((self + 2) % 4)

    @property
    def is_x(self) -> bool:
        """Whether the port lies in the first dimension."""
        return self in (Port.EAST, Port.WEST)


class Link(NamedTuple):
    """A link: out of a node through a port."""

    node: int
    port: Port


@dataclass(frozen=True)
class Topology:
    """A mesh or torus.

    Parameters
    ----------
    kind:
        `mesh`, or `torus` with links around every ring of two nodes or more.
    width, height:
        Nodes of a row and of a column.

    Raises
    ------
    PoblanoError
        If the kind is unknown, or a side is not 1..MAX_SIDE.
    """

    kind: str
    width: int
    height: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PoblanoError(f"topology must be one of {', '.join(KINDS)}; got {self.kind!r}")
        for name in ("width", "height"):
            if not 1 <= getattr(self, name) <= MAX_SIDE:
                raise PoblanoError(
                    f"{name} of a network must be 1..{MAX_SIDE} nodes; got {getattr(self, name)}"
                )

    @property
    def wraps(self) -> bool:
        """Whether there are links around."""
        return self.kind == "torus"

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.width * self.height

    def node(self, x: int, y: int) -> int:
        """Return the number of a node."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise PoblanoError(f"a node must lie within {self.width}x{self.height}; got ({x}, {y})")
        return y * self.width + x

    def position(self, node: int) -> tuple[int, int]:
        """Return x and y of a node."""
        if not 0 <= node < self.num_nodes:
            raise PoblanoError(f"a node must be 0..{self.num_nodes - 1}; got {node}")
        return node % self.width, node // self.width

    def is_around(self, link: Link) -> bool:
        """Whether a link joins the two ends of a row or column."""
        x, y = self.position(link.node)
        ends = {
            Port.NORTH: y == self.height - 1,
            Port.EAST: x == self.width - 1,
            Port.SOUTH: y == 0,
            Port.WEST: x == 0,
        }
        return ends.get(link.port, False)

    def neighbour(self, node: int, port: Port) -> int | None:
        """Return the node that a port leads to; None where there is no link."""
        if port is Port.LOCAL:
            return None
        side = self.width if port.is_x else self.height
        if side == 1 or (self.is_around(Link(node, port)) and not self.wraps):
            return None
        step = 1 if port in (Port.NORTH, Port.EAST) else -1
        x, y = self.position(node)
        if port.is_x:
            return self.node((x + step) % self.width, y)
        return self.node(x, (y + step) % self.height)

    def links(self) -> Iterator[Link]:
        """Yield every link between nodes."""
        for node in range(self.num_nodes):
            for port in Port:
                if self.neighbour(node, port) is not None:
                    yield Link(node, port)
