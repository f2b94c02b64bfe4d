"""Brings instructions of the scalar engine out of L1, a block of code at a time."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.faults import Fault
from poblano.l1.scratchpad import index_width
from poblano.scalar.instructions import BLOCK_BYTES, INSTRUCTION_BYTES
from poblano.scalar.l1_access import PLACE_WIDTH

__all__ = ["ScalarFetch"]

_BLOCK_LOG = BLOCK_BYTES.bit_length() - 1
_INSTRUCTION_LOG = INSTRUCTION_BYTES.bit_length() - 1


class ScalarFetch(Component):
    """Has the instruction that is executed in a register, and its block of code beside it.

    The next instruction of the block follows at once, another one of it a cycle later, one of
    another block three cycles later if L1 does not make its read wait.

    Parameters
    ----------
    size, line:
        Bytes of L1 and of a line.

    Members
    -------
    start, start_pc:
        Begins a program; the block at hand is forgotten.
    advance, transfers, target:
        The instruction is executed; whether `target` is the next one.
    instruction, valid, pc:
        The instruction, whether it is there, and its address.
    following:
        The address of the next one in L1.
    fault:
        While no instruction is there: why there will be none; the place is `pc`.
    read, read_data:
        L1's read port; it is asked only while no instruction is there.
    """

    def __init__(self, *, size: int, line: int) -> None:
        self.size = size
        self.line = line
        super().__init__(
            {
                "start": In(1),
                "start_pc": In(ADDRESS_WIDTH),
                "advance": In(1),
                "transfers": In(1),
                "target": In(PLACE_WIDTH),
                "instruction": Out(8 * INSTRUCTION_BYTES),
                "valid": Out(1, init=1),
                "pc": Out(PLACE_WIDTH),
                "following": Out(ADDRESS_WIDTH + 1),
                "fault": Out(Fault),
                "read": Out(stream.Signature(index_width(size // line))),
                "read_data": In(8 * line),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        line_log = (self.line - 1).bit_length()
        block = Signal(8 * BLOCK_BYTES)
        block_number = Signal(ADDRESS_WIDTH - _BLOCK_LOG)
        block_valid = Signal()
        arrives = Signal()
        at_hand = Signal()
        wants = Signal()
        column = self.pc[_BLOCK_LOG:line_log]
        m.d.comb += [
            at_hand.eq(block_valid & (block_number == self.pc[_BLOCK_LOG:ADDRESS_WIDTH])),
            wants.eq(~self.valid & ~arrives & (self.fault == Fault.NONE)),
            self.following.eq(self.pc[:ADDRESS_WIDTH] + INSTRUCTION_BYTES),
            self.read.payload.eq(self.pc[line_log:]),
            self.read.valid.eq(wants & ~at_hand),
        ]
        with m.If(~self.valid):
            with m.If(self.pc[:_INSTRUCTION_LOG] != 0):
                m.d.comb += self.fault.eq(Fault.ALIGNMENT)
            with m.Elif(self.pc >= self.size):
                m.d.comb += self.fault.eq(Fault.ADDRESS)
        m.d.sync += arrives.eq(self.read.valid & self.read.ready)
        with m.If(arrives):
            m.d.sync += [
                block.eq(self.read_data.word_select(column, 8 * BLOCK_BYTES)),
                block_number.eq(self.pc[_BLOCK_LOG:ADDRESS_WIDTH]),
                block_valid.eq(1),
            ]

        number = self.pc[_INSTRUCTION_LOG:_BLOCK_LOG]
        taken = Signal.like(number)
        m.d.comb += taken.eq(Mux(self.valid, number + 1, number))
        with m.If(self.advance | (wants & at_hand)):
            m.d.sync += [
                self.instruction.eq(block.word_select(taken, 8 * INSTRUCTION_BYTES)),
                self.valid.eq(~self.advance | ~(self.transfers | number.all())),
            ]
        with m.If(self.advance):
            m.d.sync += self.pc.eq(Mux(self.transfers, self.target, self.following))
        with m.If(self.start):
            m.d.sync += [self.pc.eq(self.start_pc), self.valid.eq(0), block_valid.eq(0)]
        return m
