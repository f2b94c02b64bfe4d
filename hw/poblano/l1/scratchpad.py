"""L1: a banked scratchpad with explicit addresses."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.l1.sram import Sram

__all__ = ["Scratchpad", "host_request_layout", "write_layout"]


def write_layout(line: int, line_address_width: int) -> data.StructLayout:
    """Return the payload of a line write: line index, data, and one strobe bit a byte."""
    return data.StructLayout({"address": line_address_width, "data": 8 * line, "strobe": line})


def host_request_layout(line: int, line_address_width: int) -> data.StructLayout:
    """Return the payload of a host access: a line write, or with `write` 0 a line read."""
    return data.StructLayout(
        {"address": line_address_width, "data": 8 * line, "strobe": line, "write": 1}
    )


class Scratchpad(Component):
    """A scratchpad of `size` bytes in lines of `line` bytes, interleaved over `banks` SRAMs.

    Line i lies in bank i % banks. One read and one write are served each cycle. The engine's
    requests are always accepted; a host access is accepted when the engine leaves its port free.
    Read data follow the accepted request by one cycle.

    Parameters
    ----------
    size, line:
        Bytes; the line a power of two.
    banks:
        SRAMs; a power of two.

    Members
    -------
    read:
        Line indices to read for the engine.
    read_data:
        The line, one cycle after its index was accepted.
    write:
        Lines that the engine writes.
    host:
        Host accesses; `host_data` is valid in the cycle in which `host_valid` is 1, one cycle
        after a read was accepted.

    Raises
    ------
    ValueError
        If line or banks is not a power of two, or size not a multiple of their product.
    """

    def __init__(self, *, size: int, line: int, banks: int) -> None:
        for name, value in (("line", line), ("banks", banks)):
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")
        if size < 1 or size % (line * banks):
            raise ValueError(f"size must be a multiple of line * banks, {line * banks}, not {size}")
        self.size = size
        self.line = line
        self.banks = banks
        self.lines = size // line
        self.address_width = max(1, (self.lines - 1).bit_length())
        super().__init__(
            {
                "read": In(stream.Signature(self.address_width, always_ready=True)),
                "read_data": Out(8 * line),
                "write": In(
                    stream.Signature(write_layout(line, self.address_width), always_ready=True)
                ),
                "host": In(stream.Signature(host_request_layout(line, self.address_width))),
                "host_data": Out(8 * line),
                "host_valid": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        bank_width = (self.banks - 1).bit_length()

        host_read = Signal()
        host_write = Signal()
        m.d.comb += [
            host_read.eq(self.host.valid & ~self.host.payload.write & ~self.read.valid),
            host_write.eq(self.host.valid & self.host.payload.write & ~self.write.valid),
            self.host.ready.eq(Mux(self.host.payload.write, ~self.write.valid, ~self.read.valid)),
        ]

        read_address = Signal(self.address_width)
        write = Signal(write_layout(self.line, self.address_width))
        m.d.comb += [
            read_address.eq(Mux(self.read.valid, self.read.payload, self.host.payload.address)),
            write.address.eq(
                Mux(self.write.valid, self.write.payload.address, self.host.payload.address)
            ),
            write.data.eq(Mux(self.write.valid, self.write.payload.data, self.host.payload.data)),
            write.strobe.eq(
                Mux(self.write.valid, self.write.payload.strobe, self.host.payload.strobe)
            ),
        ]

        read_bank = Signal(bank_width)
        outputs = []
        for index in range(self.banks):
            bank = Sram(depth=self.lines // self.banks, width=8 * self.line)
            m.submodules[f"bank_{index}"] = once(bank, platform)
            reads = (self.read.valid | host_read) & (read_address[:bank_width] == index)
            writes = (self.write.valid | host_write) & (write.address[:bank_width] == index)
            m.d.comb += [
                bank.read_enable.eq(reads),
                bank.read_address.eq(read_address[bank_width:]),
                bank.write_strobe.eq(Mux(writes, write.strobe, 0)),
                bank.write_address.eq(write.address[bank_width:]),
                bank.write_data.eq(write.data),
            ]
            outputs.append(bank.read_data)
        with m.If(self.read.valid | host_read):
            m.d.sync += read_bank.eq(read_address[:bank_width])
        m.d.sync += self.host_valid.eq(host_read)
        m.d.comb += [
            self.read_data.eq(Array(outputs)[read_bank]),
            self.host_data.eq(self.read_data),
        ]
        return m
