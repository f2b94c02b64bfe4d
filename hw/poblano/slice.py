"""A slice: the tensor engine, its L1, and the host's access to both."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component, once
from poblano.config import Configuration
from poblano.l1.scratchpad import Scratchpad, host_request_layout
from poblano.tensor.decode import fault_layout
from poblano.tensor.engine import TensorEngine

__all__ = ["Slice"]


class Slice(Component):
    """L1 with a tensor engine; the host loads L1, issues commands and reads results back.

    Parameters
    ----------
    configuration:
        The chip; its `slice` section describes this one, its hash is readable here.

    Members
    -------
    command:
        Command words for the tensor engine.
    host, host_data, host_valid:
        Line reads and writes of L1; a read's line is on `host_data` while `host_valid` is 1.
    done, busy, fault:
        Of the tensor engine.
    configuration_hash:
        The hash of the configuration that the hardware was made from.
    """

    def __init__(self, *, configuration: Configuration) -> None:
        self.configuration = configuration
        section = configuration.slice
        self.l1 = section.l1
        address_width = max(1, (section.l1.size // section.l1.line - 1).bit_length())
        super().__init__(
            {
                "command": In(stream.Signature(8 * WORD_BYTES)),
                "host": In(stream.Signature(host_request_layout(section.l1.line, address_width))),
                "host_data": Out(8 * section.l1.line),
                "host_valid": Out(1),
                "done": Out(1),
                "busy": Out(1),
                "fault": Out(fault_layout()),
                "configuration_hash": Out(64),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        l1 = Scratchpad(size=self.l1.size, line=self.l1.line, banks=self.l1.banks)
        tensor = TensorEngine(configuration=self.configuration.slice)
        m.submodules.l1 = once(l1, platform)
        m.submodules.tensor = once(tensor, platform)

        wiring.connect(m, tensor.read, l1.read)
        wiring.connect(m, tensor.write, l1.write)
        wiring.connect(m, wiring.flipped(self.command), tensor.command)
        wiring.connect(m, wiring.flipped(self.host), l1.host)
        m.d.comb += [
            tensor.read_data.eq(l1.read_data),
            self.host_data.eq(l1.host_data),
            self.host_valid.eq(l1.host_valid),
            self.done.eq(tensor.done),
            self.busy.eq(tensor.busy),
            self.fault.eq(tensor.fault),
            self.configuration_hash.eq(self.configuration.hash64),
        ]
        return m
