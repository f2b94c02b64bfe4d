"""Decodes a command word by the command table."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.commands import OPCODE_WIDTH, WORD_BYTES, Field, by_mnemonic
from poblano.component import Component

__all__ = ["CommandDecoder", "fields_layout"]


def fields_layout(mnemonic: str) -> data.StructLayout:
    """Return the command's fields as a struct."""
    return data.StructLayout({item.name: item.width for item in by_mnemonic(mnemonic).fields})


def _legal(item: Field, value: Value) -> Value:
    """Whether `value` is one of the field's choices, or in its range."""
    if item.choices:
        return Cat(value == number for number in item.choices.values()).any()
    legal = C(1)
    if item.minimum > 0:
        legal = legal & (value >= item.minimum)
    if item.largest < (1 << item.width) - 1:
        legal = legal & (value <= item.largest)
    return legal


class CommandDecoder(Component):
    """Takes the fields of one command out of a word and checks them. Combinational.

    Parameters
    ----------
    mnemonic:
        The command.

    Members
    -------
    word:
        The command word.
    fields:
        The fields by name.
    opcode_legal:
        The word's opcode is the command's.
    fields_legal:
        Bit i says that field i, in the table's order, is a choice or in range.

    Raises
    ------
    CommandError
        If the table has no such command.
    """

    def __init__(self, *, mnemonic: str) -> None:
        self.command = by_mnemonic(mnemonic)
        super().__init__(
            {
                "word": In(8 * WORD_BYTES),
                "fields": Out(fields_layout(mnemonic)),
                "opcode_legal": Out(1),
                "fields_legal": Out(len(self.command.fields)),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.d.comb += self.opcode_legal.eq(self.word[:OPCODE_WIDTH] == self.command.opcode)
        for index, item in enumerate(self.command.fields):
            start = self.command.offsets[item.name]
            value = self.word[start : start + item.width]
            m.d.comb += [
                self.fields[item.name].eq(value),
                self.fields_legal[index].eq(_legal(item, value)),
            ]
        return m
