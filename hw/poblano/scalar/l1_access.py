"""Where the scalar engine reads and writes in L1: checks, and bytes in and out of lines."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.commands import HBM_ADDRESS_WIDTH
from poblano.component import Component
from poblano.faults import Fault
from poblano.l1.scratchpad import index_width
from poblano.scalar.instructions import BLOCK_BYTES, REGISTER_WIDTH, SIZES

__all__ = ["PLACE_WIDTH", "L1Access", "place_of"]

PLACE_WIDTH = HBM_ADDRESS_WIDTH + 1
"""Bits of an address that may lie anywhere: those that a fault tells, and whether more are 1."""

_BLOCK_LOG = BLOCK_BYTES.bit_length() - 1
_WORD_BYTES = REGISTER_WIDTH // 8
_WORD_LOG = _WORD_BYTES.bit_length() - 1


def place_of(address: Value) -> Value:
    """Return a 64-bit address as a place."""
    return Cat(address[:HBM_ADDRESS_WIDTH], address[HBM_ADDRESS_WIDTH:].any())


class L1Access(Component):
    """Checks a place and moves bytes of it between a line and 64 bits. Combinational.

    Parameters
    ----------
    size, line:
        Bytes of L1 and of a line.

    Members
    -------
    place, size_log:
        Where, and the logarithm of how many bytes: up to 64 for reads, up to 8 for writes.
    fault:
        ALIGNMENT if the place is no multiple of the bytes, else ADDRESS if it lies outside L1,
        else NONE.
    line_index:
        The line.
    number, data, strobe:
        What is written, and the line and strobes that write it.
    read_data, block, double_word:
        The line, one cycle after L1 accepted the read; the 64 and the 8 bytes in it that `place`,
        which must still be there, is part of.
    """

    def __init__(self, *, size: int, line: int) -> None:
        self.size = size
        self.line = line
        super().__init__(
            {
                "place": In(PLACE_WIDTH),
                "size_log": In(range(_BLOCK_LOG + 1)),
                "fault": Out(Fault),
                "line_index": Out(index_width(size // line)),
                "number": In(REGISTER_WIDTH),
                "data": Out(8 * line),
                "strobe": Out(line),
                "read_data": In(8 * line),
                "block": Out(8 * BLOCK_BYTES),
                "double_word": Out(REGISTER_WIDTH),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        line_log = (self.line - 1).bit_length()
        aligned = Signal()
        with m.Switch(self.size_log):
            for log in range(_BLOCK_LOG + 1):
                with m.Case(log):
                    m.d.comb += aligned.eq(self.place[:log] == 0)
        with m.If(~aligned):
            m.d.comb += self.fault.eq(Fault.ALIGNMENT)
        with m.Elif(self.place >= self.size):
            m.d.comb += self.fault.eq(Fault.ADDRESS)
        m.d.comb += self.line_index.eq(self.place[line_log:])

        column = self.place[_BLOCK_LOG:line_log]
        m.d.comb += [
            self.block.eq(self.read_data.word_select(column, 8 * BLOCK_BYTES)),
            self.double_word.eq(
                self.block.word_select(self.place[_WORD_LOG:_BLOCK_LOG], REGISTER_WIDTH)
            ),
        ]

        spread = Signal(REGISTER_WIDTH)
        strobe = Signal(_WORD_BYTES)
        with m.Switch(self.size_log):
            for log, size in enumerate(SIZES):
                with m.Case(log):
                    m.d.comb += [
                        spread.eq(self.number[: 8 * size].replicate(_WORD_BYTES // size)),
                        strobe.eq(((1 << size) - 1) << self.place[:_WORD_LOG]),
                    ]
        word = self.place[_WORD_LOG:line_log]
        words = self.line // _WORD_BYTES
        m.d.comb += [
            self.data.eq(spread.replicate(words)),
            self.strobe.eq(Cat(strobe & (word == n).replicate(_WORD_BYTES) for n in range(words))),
        ]
        return m
