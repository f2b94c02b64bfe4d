"""The tensor engine on an L1 of its own, which the testbench reads and writes line by line."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.config import Configuration
from poblano.engine import engine_members
from poblano.l1.scratchpad import Scratchpad, index_width
from poblano.tensor.engine import TensorEngine

__all__ = ["TensorOnL1"]


def _request_layout(line: int, line_address_width: int) -> data.StructLayout:
    """Return the payload of a host access: a line write, or with `write` 0 a line read."""
    return data.StructLayout(
        {"address": line_address_width, "data": 8 * line, "strobe": line, "write": 1}
    )


class TensorOnL1(Component):
    """A tensor engine, L1, and a host that waits where the engine uses the same bank.

    Parameters
    ----------
    configuration:
        The chip; its `slice` section describes engine and L1, its hash is readable here.

    Members
    -------
    command, done, fault, busy:
        Of the tensor engine.
    host, host_data, host_valid:
        Line reads and writes of L1; a read's line is on `host_data` while `host_valid` is 1.
    configuration_hash:
        The hash of the configuration that the hardware was made from.
    """

    def __init__(self, *, configuration: Configuration) -> None:
        self.configuration = configuration
        l1 = configuration.slice.l1
        request: Any = _request_layout(l1.line, index_width(l1.size // l1.line))
        super().__init__(
            {
                **engine_members(),
                "busy": Out(1),
                "host": In(stream.Signature(request)),
                "host_data": Out(8 * l1.line),
                "host_valid": Out(1),
                "configuration_hash": Out(64),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect engine, L1 and host."""
        m = Module()
        section = self.configuration.slice.l1
        l1 = Scratchpad(
            size=section.size, line=section.line, banks=section.banks, readers=2, writers=2
        )
        tensor = TensorEngine(configuration=self.configuration.slice)
        m.submodules.l1 = once(l1, platform)
        m.submodules.tensor = once(tensor, platform)
        payload = self.host.payload
        m.d.comb += [
            tensor.command.valid.eq(self.command.valid),
            tensor.command.payload.eq(self.command.payload),
            self.command.ready.eq(tensor.command.ready),
            self.done.eq(tensor.done),
            self.fault.eq(tensor.fault),
            self.busy.eq(tensor.busy),
            l1.read_0.valid.eq(tensor.read.valid),
            l1.read_0.payload.eq(tensor.read.payload),
            tensor.read_data.eq(l1.read_data_0),
            l1.write_0.valid.eq(tensor.write.valid),
            l1.write_0.payload.eq(tensor.write.payload),
            l1.read_1.valid.eq(self.host.valid & ~payload.write),
            l1.read_1.payload.eq(payload.address),
            l1.write_1.valid.eq(self.host.valid & payload.write),
            l1.write_1.payload.address.eq(payload.address),
            l1.write_1.payload.data.eq(payload.data),
            l1.write_1.payload.strobe.eq(payload.strobe),
            self.host.ready.eq(
                (payload.write & l1.write_1.ready) | (~payload.write & l1.read_1.ready)
            ),
            self.host_data.eq(l1.read_data_1),
            self.configuration_hash.eq(self.configuration.hash64),
        ]
        m.d.sync += self.host_valid.eq(l1.read_1.valid & l1.read_1.ready)
        return m
