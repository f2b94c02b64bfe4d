"""Turns a command word of the vector engine into a chain or a pass, or names what is wrong."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_fields import canonical, is_nan
from poblano.command_decoder import CommandDecoder
from poblano.commands import CHAIN, PASS, TOPK, WORD_BYTES, Command
from poblano.commands.vector import SOFTMAX_BYPASSES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.faults import Fault
from poblano.vector.job import (
    CHOICES,
    CONSTANTS,
    NUMBER_ORDER,
    SIDES,
    Reduction,
    Store,
    chain_layout,
    number_index,
    pass_layout,
)
from poblano.vector.layout import WORD_ARRAYS
from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS
from poblano_golden.vector import FACTORS, LEFTS, NUMBERS, OPERANDS, SECOND_FACTORS, SECOND_OPERANDS

__all__ = ["VectorDecode"]


class VectorDecode(Component):
    """Decodes and checks a word of the vector engine. Combinational.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    word:
        The command word.
    chain:
        The chain that passes run through.
    is_chain, new_chain:
        The word is a `vector.chain`, and the chain it sets.
    is_pass, job:
        The word is a `vector.pass` or a `vector.topk`, and what it asks for.
    fault:
        What is wrong with it.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "word": In(8 * WORD_BYTES),
                "chain": In(chain_layout()),
                "is_chain": Out(1),
                "new_chain": Out(chain_layout()),
                "is_pass": Out(1),
                "job": Out(pass_layout()),
                "fault": Out(data.StructLayout({"kind": 4, "field": 8})),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        decoders: dict[str, Any] = {}
        legal: dict[str, Signal] = {}
        for command in (CHAIN, PASS, TOPK):
            decoder: Any = CommandDecoder(mnemonic=command.mnemonic)
            m.submodules[f"{command.name}_decoder"] = once(decoder, platform)
            decoders[command.name] = decoder
            legal[command.name] = Signal.like(decoder.fields_legal, name=f"{command.name}_legal")
            m.d.comb += [decoder.word.eq(self.word), legal[command.name].eq(decoder.fields_legal)]
        chain, passes, topk = (decoders[name] for name in ("chain", "pass", "topk"))
        self._set_chain(m, chain.fields)
        self._set_pass(m, passes.fields)

        def require(command: Command, name: str, holds: Value) -> None:
            place = [item.name for item in command.fields].index(name)
            with m.If(~holds):
                m.d.comb += legal[command.name][place].eq(0)

        softmax = chain.fields.reduction == Reduction.SOFTMAX.value
        for name in SOFTMAX_BYPASSES:
            require(CHAIN, name, ~softmax | (chain.fields[name] == 0))
        for name in WORD_ARRAYS:
            require(PASS, name, passes.fields[name][:2] == 0)
        for name in ("values", "indices"):
            require(TOPK, name, topk.fields[name][:2] == 0)
        require(TOPK, "k", topk.fields.k <= topk.fields.cols)

        m.d.comb += [
            self.is_chain.eq(chain.opcode_legal),
            self.is_pass.eq(passes.opcode_legal | topk.opcode_legal),
        ]
        with m.If(topk.opcode_legal):
            self._set_topk(m, topk.fields)
        with m.If(~self.is_chain & ~self.is_pass):
            m.d.comb += self.fault.kind.eq(Fault.OPCODE)
        for command in (CHAIN, PASS, TOPK):
            with m.If(decoders[command.name].opcode_legal & ~legal[command.name].all()):
                m.d.comb += self.fault.kind.eq(Fault.FIELD)
                for field in reversed(range(len(command.fields))):
                    with m.If(~legal[command.name][field]):
                        m.d.comb += self.fault.field.eq(field)
        return m

    def _set_chain(self, m: Module, fields: Any) -> None:
        new = self.new_chain
        for side in SIDES:
            m.d.comb += new.lane[f"{side}_format"].eq(number_index(fields[f"{side}_format"]))
        m.d.comb += [
            *(new.lane[name].eq(fields[name]) for name in CHOICES),
            *(new.lane[name].eq(_canonical(fields[name])) for name in CONSTANTS),
            new.indexed.eq(fields.indexed),
            new.reduction.eq(fields.reduction),
            new.scale_rule.eq(fields.scale_rule),
        ]
        for name in "bcpq":
            m.d.comb += new[f"reads_{name}"].eq(_uses(fields, name))
        with m.Switch(fields.d_format):
            for index, name in enumerate(NUMBER_ORDER):
                with m.Case(NUMBERS[name].code):
                    m.d.comb += [new.store.eq(Store.WIDE), new.d_format.eq(index)]
            for index, fmt in enumerate(MX_FORMATS.values()):
                with m.Case(fmt.code):
                    m.d.comb += [
                        new.store.eq(Store.MX),
                        new.d_format.eq(index),
                        new.d_nibbles.eq(fmt.storage_bits == 4),
                    ]

    def _set_pass(self, m: Module, fields: Any) -> None:
        job, chain = self.job, self.chain
        given = fields.shape().members
        m.d.comb += [job[name].eq(fields[name]) for name in job.shape().members if name in given]
        shift = Mux(chain.d_format == 0, 2, Mux(chain.d_format == 3, 0, 1))
        unit = Mux(
            chain.store == Store.MX,
            Mux(chain.d_nibbles, BLOCK_SIZE // 2, BLOCK_SIZE),
            C(self.configuration.vector.lanes) << shift,
        )
        m.d.comb += [
            job.limit.eq(fields.limit.as_signed()),
            job.r2.eq(fields.r + (fields.rows << 2)),
            job.a_format.eq(chain.lane.a_format),
            job.straddles.eq(((fields.d_codes | fields.d_code_stride) & (unit - 1)).any()),
        ]

    def _set_topk(self, m: Module, fields: Any) -> None:
        job = self.job
        m.d.comb += [
            *(job[name].eq(fields[name]) for name in ("a", "a_row_stride", "rows", "cols")),
            job.r.eq(fields.values),
            job.r2.eq(fields.indices),
            job.a_format.eq(number_index(fields.a_format)),
            job.topk.eq(1),
            job.rounds.eq(fields.k),
        ]


def _canonical(number: Value) -> Value:
    return canonical(number, is_nan(number))


def _uses(fields: Any, name: str) -> Value:
    """Return whether a chain reads a stream or a row scalar."""
    places = [
        ("factor1", FACTORS, C(1, 1)),
        ("operand1", OPERANDS, fields.operation1 != 0),
        ("left2", LEFTS, C(1, 1)),
        ("factor2", SECOND_FACTORS, C(1, 1)),
        ("operand2", SECOND_OPERANDS, fields.operation2 != 0),
    ]
    return Cat(
        (fields[field] == number) & holds
        for field, names, holds in places
        for number, choice in enumerate(names)
        if choice.removeprefix("reciprocal_") == name
    ).any()
