"""Turns a command word of one half of the DMA engine into a job, or names what is wrong with it."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.command_decoder import CommandDecoder
from poblano.commands import WORD_BYTES, by_mnemonic
from poblano.component import Component, once
from poblano.dma.job import job_layout
from poblano.dma.timing import INDEX_SHIFT
from poblano.faults import Fault

__all__ = ["MoveDecode", "move_fault_layout"]


def move_fault_layout() -> data.StructLayout:
    """Return the kind of a word's fault (`Fault`), and the index of the field that is illegal."""
    return data.StructLayout({"kind": 4, "field": 8})


class MoveDecode(Component):
    """Decodes and checks a move. Combinational.

    Parameters
    ----------
    rows, indexed:
        The engine's two commands: places by strides, and places by indices.

    Members
    -------
    word:
        The command word.
    job:
        The move that it asks for.
    fault:
        What is wrong with it.

    Raises
    ------
    CommandError
        If the table lacks one of the commands.
    """

    def __init__(self, *, rows: str, indexed: str) -> None:
        self.rows = by_mnemonic(rows)
        self.indexed = by_mnemonic(indexed)
        super().__init__(
            {
                "word": In(8 * WORD_BYTES),
                "job": Out(job_layout()),
                "fault": Out(move_fault_layout()),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        known = Signal()
        for name, command in (("rows", self.rows), ("indexed", self.indexed)):
            decoder = CommandDecoder(mnemonic=command.mnemonic)
            m.submodules[f"{name}_decoder"] = once(decoder, platform)
            m.d.comb += decoder.word.eq(self.word)
            legal = Signal.like(decoder.fields_legal, name=f"{name}_legal")
            m.d.comb += legal.eq(decoder.fields_legal)
            if command is self.indexed:
                place = [item.name for item in command.fields].index("indices")
                m.d.comb += legal[place].eq(decoder.fields.indices[:INDEX_SHIFT] == 0)
            with m.If(decoder.opcode_legal):
                m.d.comb += known.eq(1)
                self._take(m, decoder.fields, is_indexed=command is self.indexed)
                with m.If(~legal.all()):
                    m.d.comb += self.fault.kind.eq(Fault.FIELD)
                    for field in reversed(range(len(command.fields))):
                        with m.If(~legal[field]):
                            m.d.comb += self.fault.field.eq(field)
        with m.If(~known):
            m.d.comb += self.fault.kind.eq(Fault.OPCODE)
        return m

    def _take(self, m, fields, *, is_indexed: bool) -> None:
        given = fields.shape().members
        for name in self.job.shape().members:
            if name in given:
                m.d.comb += self.job[name].eq(fields[name])
        if is_indexed:
            m.d.comb += [self.job.indexed.eq(1), self.job.planes.eq(1)]
