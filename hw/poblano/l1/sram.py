"""One SRAM: a read port and a write port with byte strobes."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from poblano.component import Component

__all__ = ["Sram"]


class Sram(Component):
    """A 1R1W SRAM; read data follow the address by one cycle and hold until the next read.

    A read in the cycle of a write to the same address returns the old word.

    Parameters
    ----------
    depth, width:
        Words, and bits of a word; the width is a multiple of 8.

    Members
    -------
    read_enable, read_address, read_data:
        The read port.
    write_strobe, write_address, write_data:
        The write port; bit i of the strobe writes byte i of the word.

    Raises
    ------
    ValueError
        If the depth is not positive or the width is not a positive multiple of 8.
    """

    def __init__(self, *, depth: int, width: int) -> None:
        if depth < 1:
            raise ValueError(f"depth must be positive, not {depth}")
        if width < 8 or width % 8:
            raise ValueError(f"width must be a positive multiple of 8, not {width}")
        self.depth = depth
        self.width = width
        address_width = (depth - 1).bit_length()
        super().__init__(
            {
                "read_enable": In(1),
                "read_address": In(address_width),
                "read_data": Out(width),
                "write_strobe": In(width // 8),
                "write_address": In(address_width),
                "write_data": In(width),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from an address to its word."""
        return 1

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=self.width, depth=self.depth, init=[])
        read = memory.read_port()
        write = memory.write_port(granularity=8)
        m.d.comb += [
            read.en.eq(self.read_enable),
            read.addr.eq(self.read_address),
            self.read_data.eq(read.data),
            write.en.eq(self.write_strobe),
            write.addr.eq(self.write_address),
            write.data.eq(self.write_data),
        ]
        return m
