"""A network whose streams lie side by side on a few wide ports."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Value
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.noc.flit import flit_width
from poblano.noc.mesh import Mesh
from poblano.noc.parameters import NocParameters
from poblano_golden.errors import PoblanoError

__all__ = ["SLOT", "NocOnBuses"]

SLOT = 64
"""Bits of a bus for the flit of one node, which must fit."""


class NocOnBuses(Component):
    """A `Mesh` with one bit a node, and SLOT bits for its flit, on each port; node 0 lowest.

    Members: `i_valid`, `i_flits`, `i_ready`; `o_valid`, `o_flits`, `o_ready`; `outside`.
    """

    def __init__(self, *, parameters_of: NocParameters) -> None:
        width = flit_width(parameters_of)
        if width > SLOT:
            raise PoblanoError(f"a flit on the buses must have {SLOT} bits at most; got {width}")
        self.network = parameters_of
        nodes = parameters_of.shape.num_nodes
        super().__init__(
            {
                "i_valid": In(nodes),
                "i_flits": In(SLOT * nodes),
                "i_ready": Out(nodes),
                "o_valid": Out(nodes),
                "o_flits": Out(SLOT * nodes),
                "o_ready": In(nodes),
                "outside": Out(nodes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the streams."""
        m = Module()
        mesh: Any = Mesh(parameters_of=self.network)
        m.submodules.mesh = once(mesh, platform)
        width = flit_width(self.network)
        m.d.comb += self.outside.eq(mesh.outside)
        for node in range(self.network.shape.num_nodes):
            source, sink = getattr(mesh, f"i_{node}"), getattr(mesh, f"o_{node}")
            m.d.comb += [
                source.valid.eq(self.i_valid[node]),
                Value.cast(source.payload).eq(self.i_flits[SLOT * node :][:width]),
                self.i_ready[node].eq(source.ready),
                self.o_valid[node].eq(sink.valid),
                self.o_flits.word_select(node, SLOT).eq(sink.payload),
                sink.ready.eq(self.o_ready[node]),
            ]
        return m
