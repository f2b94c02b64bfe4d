"""The network's timing contract; imports no Amaranth."""

from __future__ import annotations

from poblano.noc.parameters import NocParameters
from poblano.noc.routing import num_hops

__all__ = ["credit_cycles", "zero_load_latency"]


def credit_cycles(parameters: NocParameters) -> int:
    """Return the cycles from a flit's departure until its credit can be used again.

    An input must hold as many flits to take one every cycle.
    """
    return parameters.hop_cycles + 1


def zero_load_latency(
    parameters: NocParameters, source: int, destination: int, flits: int = 1
) -> int:
    """Return the cycles of a packet that meets no other.

    From the cycle in which the network accepts its first flit to that in which it offers the last,
    where source and sink never pause: one into the first router, `hop_cycles` for each router on
    the way, both ends included, and one for each further flit. A flit that finds the input before
    it full waits for a credit, so shallow inputs space out the flits of a long packet.
    """
    hops = num_hops(parameters.shape, source, destination)
    following = flits - 1
    # the way into the first router has no output register
    slowest = credit_cycles(parameters) if hops else 2
    period = max(slowest, parameters.depth)
    gaps = following // parameters.depth * period + following % parameters.depth
    return 1 + parameters.hop_cycles * (hops + 1) + gaps
