"""The parameters of a network; imports no Amaranth."""

from __future__ import annotations

from dataclasses import dataclass

from poblano.noc.topology import Topology
from poblano_golden.errors import PoblanoError

__all__ = ["NocParameters"]

_MAX_WIDTH, _MAX_CHANNELS, _MAX_DEPTH = 4096, 16, 64


@dataclass(frozen=True, kw_only=True)
class NocParameters:
    """What a network is made from.

    Parameters
    ----------
    topology, width, height:
        As in `Topology`.
    payload_width:
        Bits of a flit's payload.
    kind_width:
        Bits that the ends of the network use as they like, 1 at least.
    channels:
        Virtual channels of every link; on a torus 1, or a multiple of 2 for its two classes.
    depth:
        Flits that an input of a router holds for each channel.
    output_register:
        Whether a flit is registered behind the crossbar too: two cycles a hop instead of one.

    Raises
    ------
    PoblanoError
        If a parameter is outside its range.
    """

    topology: str = "mesh"
    width: int = 2
    height: int = 2
    payload_width: int = 64
    kind_width: int = 4
    channels: int = 1
    depth: int = 2
    output_register: bool = False

    def __post_init__(self) -> None:
        Topology(self.topology, self.width, self.height)
        for name, most in (
            ("payload_width", _MAX_WIDTH),
            ("kind_width", _MAX_WIDTH),
            ("channels", _MAX_CHANNELS),
            ("depth", _MAX_DEPTH),
        ):
            if not 1 <= getattr(self, name) <= most:
                raise PoblanoError(
                    f"{name} of a network must be 1..{most}; got {getattr(self, name)}"
                )
        if self.topology == "torus" and self.channels % 2 and self.channels > 1:
            raise PoblanoError(
                f"channels of a torus must be 1 or a multiple of 2; got {self.channels}"
            )

    @property
    def shape(self) -> Topology:
        """Nodes and links."""
        return Topology(self.topology, self.width, self.height)

    @property
    def classes(self) -> int:
        """Classes of channels: two on a torus that has the channels for them."""
        return 2 if self.topology == "torus" and self.channels > 1 else 1

    @property
    def lanes(self) -> int:
        """Channels of a class."""
        return self.channels // self.classes

    @property
    def hop_cycles(self) -> int:
        """Cycles from one router's input to the next one's."""
        return 2 if self.output_register else 1
