"""The network: routers on a mesh or torus, and the ends at every node."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.noc.link import flit_layout
from poblano.noc.parameters import NocParameters
from poblano.noc.router import Router, output_depth
from poblano.noc.routing import check_no_deadlock
from poblano.noc.terminal import Ejector, Injector
from poblano.noc.topology import Port

__all__ = ["Mesh"]


class Mesh(Component):
    """Carries packets of flits between nodes; nothing is lost, doubled or reordered in a pair.

    `poblano.noc.timing.zero_load_latency` is the latency of a packet that meets no other. Streams
    have backpressure; a sink that never accepts holds up what must pass through the buffers that
    its flits fill.

    Parameters
    ----------
    parameters_of:
        The network.

    Members
    -------
    i_N, o_N:
        Flits from and to node N; the fields are those of `poblano.noc.flit`.
    outside:
        A bit a node: a flit was taken whose destination does not exist.

    Raises
    ------
    PoblanoError
        If packets could wait for each other in a circle.
    """

    def __init__(self, *, parameters_of: NocParameters) -> None:
        check_no_deadlock(parameters_of)
        self.network = parameters_of
        flits = stream.Signature(flit_layout(parameters_of))
        members = {"outside": Out(parameters_of.shape.num_nodes)}
        for node in range(parameters_of.shape.num_nodes):
            members[f"i_{node}"] = In(flits)
            members[f"o_{node}"] = Out(flits)
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        network, topology = self.network, self.network.shape
        depth = output_depth(network, Port.LOCAL)
        routers = [Router(parameters_of=network) for _ in range(topology.num_nodes)]
        for node, router in enumerate(routers):
            injector = Injector(parameters_of=network)
            ejector = Ejector(parameters_of=network, depth=depth)
            m.submodules[f"router_{node}"] = once(router, platform)
            m.submodules[f"injector_{node}"] = once(injector, platform)
            m.submodules[f"ejector_{node}"] = once(ejector, platform)
            wiring.connect(m, injector.o, router.local_in)
            wiring.connect(m, router.local_out, ejector.i)
            wiring.connect(m, wiring.flipped(getattr(self, f"i_{node}")), injector.i)
            wiring.connect(m, ejector.o, wiring.flipped(getattr(self, f"o_{node}")))
            x, y = topology.position(node)
            m.d.comb += [router.x.eq(x), router.y.eq(y), self.outside[node].eq(injector.outside)]
        for node, port in topology.links():
            neighbour = routers[topology.neighbour(node, port)]
            wiring.connect(m, routers[node].link(port, "out"), neighbour.link(port.opposite, "in"))
        return m
