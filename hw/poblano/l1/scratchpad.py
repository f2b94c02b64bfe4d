"""L1: a banked scratchpad with explicit addresses."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.l1.sram import Sram

__all__ = ["Scratchpad", "index_width", "write_layout"]


def index_width(lines: int) -> int:
    """Return the bits of a line index."""
    return max(1, (lines - 1).bit_length())


def write_layout(line: int, line_address_width: int) -> data.StructLayout:
    """Return the payload of a line write: line index, data, and one strobe bit a byte."""
    return data.StructLayout({"address": line_address_width, "data": 8 * line, "strobe": line})


class Scratchpad(Component):
    """A scratchpad of `size` bytes in lines of `line` bytes, interleaved over `banks` SRAMs.

    Line i lies in bank i % banks. Each bank serves one read and one write in a cycle; where
    several clients want the same bank, the one with the lowest number is served and the others
    wait. So client 0 never waits. Read data follow the accepted request by one cycle.

    Parameters
    ----------
    size, line:
        Bytes; the line a power of two.
    banks:
        SRAMs; a power of two.
    readers, writers:
        Clients.

    Members
    -------
    read_I, read_data_I:
        Line indices that client I reads, and its line in the cycle after.
    write_I:
        Lines that client I writes.
    read_conflict, write_conflict:
        A client waits in this cycle.

    Raises
    ------
    ValueError
        If line or banks is not a power of two, or size not a multiple of their product.
    """

    def __init__(self, *, size: int, line: int, banks: int, readers: int, writers: int) -> None:
        for name, value in (("line", line), ("banks", banks)):
            if value < 1 or value & (value - 1):
                raise ValueError(f"{name} must be a power of two, not {value}")
        if size < 1 or size % (line * banks):
            raise ValueError(f"size must be a multiple of line * banks, {line * banks}, not {size}")
        self.size = size
        self.line = line
        self.banks = banks
        self.lines = size // line
        self.readers = readers
        self.writers = writers
        self.address_width = index_width(self.lines)
        write = stream.Signature(write_layout(line, self.address_width))
        members = {
            "read_conflict": Out(1),
            "write_conflict": Out(1),
        }
        for client in range(readers):
            members[f"read_{client}"] = In(stream.Signature(self.address_width))
            members[f"read_data_{client}"] = Out(8 * line)
        for client in range(writers):
            members[f"write_{client}"] = In(write)
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        reads = [getattr(self, f"read_{client}") for client in range(self.readers)]
        writes = [getattr(self, f"write_{client}") for client in range(self.writers)]
        read_banks = self._arbitrate(m, "read", reads, [r.payload for r in reads])
        write_banks = self._arbitrate(m, "write", writes, [w.payload.address for w in writes])

        bank_width = (self.banks - 1).bit_length()
        outputs = []
        for bank in range(self.banks):
            sram = Sram(depth=self.lines // self.banks, width=8 * self.line)
            m.submodules[f"bank_{bank}"] = once(sram, platform)
            m.d.comb += [
                sram.read_enable.eq(Cat(wants[bank] for wants in read_banks).any()),
                sram.write_strobe.eq(0),
            ]
            for client in reversed(range(self.readers)):
                with m.If(read_banks[client][bank]):
                    m.d.comb += sram.read_address.eq(reads[client].payload[bank_width:])
            for client in reversed(range(self.writers)):
                payload = writes[client].payload
                with m.If(write_banks[client][bank]):
                    m.d.comb += [
                        sram.write_strobe.eq(payload.strobe),
                        sram.write_address.eq(payload.address[bank_width:]),
                        sram.write_data.eq(payload.data),
                    ]
            outputs.append(sram.read_data)

        for client, read in enumerate(reads):
            bank = Signal(bank_width, name=f"read_bank_{client}")
            with m.If(read.valid & read.ready):
                m.d.sync += bank.eq(read.payload[:bank_width])
            m.d.comb += getattr(self, f"read_data_{client}").eq(Array(outputs)[bank])
        return m

    def _arbitrate(self, m: Module, kind: str, clients: list, lines: list) -> list[Signal]:
        """Return for every client a bit a bank: it wants that bank. Refuse all but the first."""
        bank_width = (self.banks - 1).bit_length()
        wants: list[Signal] = []
        waits = Signal(len(clients), name=f"{kind}_waits")
        for client, (port, line) in enumerate(zip(clients, lines, strict=True)):
            want = Signal(self.banks, name=f"{kind}_wants_{client}")
            taken = Signal(self.banks, name=f"{kind}_taken_{client}")
            free = Signal(name=f"{kind}_free_{client}")
            m.d.comb += [
                want.eq(port.valid << line[:bank_width]),
                free.eq(~taken.bit_select(line[:bank_width], 1)),
                port.ready.eq(free),
                waits[client].eq(port.valid & ~free),
            ]
            if wants:
                m.d.comb += taken.eq(_any(wants))
            wants.append(want)
        m.d.comb += getattr(self, f"{kind}_conflict").eq(waits.any())
        return wants


def _any(masks: list[Signal]) -> Value:
    """Bitwise or of masks."""
    result: Value = masks[0]
    for mask in masks[1:]:
        result = result | mask
    return result
