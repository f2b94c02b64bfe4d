"""Decodes an instruction of the scalar engine by the instruction table."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.scalar.instructions import (
    COUNT,
    FIELD,
    FIELD_OFFSET_WIDTH,
    IMM16,
    INSTRUCTION_BYTES,
    INSTRUCTIONS,
    PLACE20,
    QUEUE,
    RA,
    RB,
    RD,
    RX,
    SEMAPHORE,
    TARGET16,
    TARGET20,
    TARGET24,
    Alu,
    Form,
    Kind,
    Operand,
)

__all__ = ["InstructionDecode", "decoded_layout"]

_IN_BYTES = {Form.TARGET: INSTRUCTION_BYTES, Form.PLACE: 1}
"""Bytes of a unit of a relative operand."""


def decoded_layout() -> data.StructLayout:
    """Return a decoded instruction.

    kind, function:
        As in the table.
    writes:
        It has a destination.
    rd, first, second:
        Numbers of the registers written and read.
    immediate, number:
        Whether the second number that is computed with is the immediate, and that number.
    distance:
        Signed bytes from the instruction to a target or place.
    """
    return data.StructLayout(
        {
            "kind": Shape.cast(Kind),
            "function": Shape.cast(Alu),
            "writes": 1,
            "rd": RD.width,
            "first": RA.width,
            "second": RB.width,
            "immediate": 1,
            "number": signed(IMM16.width),
            "distance": signed(TARGET24.width + 2),
            "field_offset": FIELD_OFFSET_WIDTH,
            "field_last": FIELD.width - FIELD_OFFSET_WIDTH,
            "queue": QUEUE.width,
            "semaphore": SEMAPHORE.width,
            "count": COUNT.width,
        }
    )


class InstructionDecode(Component):
    """Takes an instruction apart and says whether it is one. Combinational.

    Parameters
    ----------
    queues:
        Queues that `issue` reaches; any other is illegal.

    Members
    -------
    word:
        The instruction.
    decoded:
        What it is; undefined if it is illegal.
    legal:
        The table has it, every bit that no operand takes is 0, and its field or queue exists.
    """

    def __init__(self, *, queues: int) -> None:
        self.queues = queues
        super().__init__(
            {
                "word": In(8 * INSTRUCTION_BYTES),
                "decoded": Out(decoded_layout()),
                "legal": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        out = self.decoded
        known = Signal()
        field_end = Signal(FIELD_OFFSET_WIDTH + 1)
        m.d.comb += [
            out.rd.eq(self._take(RD)),
            out.first.eq(self._take(RA)),
            out.second.eq(self._take(RX)),
            Cat(out.field_offset, out.field_last).eq(self._take(FIELD)),
            out.queue.eq(self._take(QUEUE)),
            out.semaphore.eq(self._take(SEMAPHORE)),
            out.count.eq(self._take(COUNT)),
            field_end.eq(out.field_offset + out.field_last),
            self.legal.eq(
                known
                & ~((out.kind == Kind.FIELD) & field_end[FIELD_OFFSET_WIDTH])
                & ~((out.kind == Kind.ISSUE) & (out.queue >= self.queues))
            ),
        ]
        with m.Switch(self.word[:8]):
            for instruction in INSTRUCTIONS:
                unused = ~instruction.mask & 0xFFFF_FFFF
                with m.Case(instruction.opcode):
                    m.d.comb += [
                        known.eq((self.word & unused) == 0),
                        out.kind.eq(instruction.kind),
                        out.function.eq(instruction.function),
                        out.writes.eq(instruction.has(RD)),
                    ]
                    if instruction.has(RB):
                        m.d.comb += out.second.eq(self._take(RB))
                    if instruction.has(IMM16):
                        m.d.comb += [out.number.eq(self._take(IMM16)), out.immediate.eq(1)]
                    for operand in (TARGET16, TARGET20, TARGET24, PLACE20):
                        if instruction.has(operand):
                            shift = _IN_BYTES[operand.form].bit_length() - 1
                            m.d.comb += out.distance.eq(self._take(operand) << shift)
        return m

    def _take(self, operand: Operand) -> Value:
        bits = self.word[operand.low : operand.low + operand.width]
        return bits.as_signed() if operand.signed else bits
