"""Turns a `tensor.matmul` word into a job, or names what is wrong with it."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.modes import modes, operand_formats
from poblano.command_decoder import CommandDecoder
from poblano.commands import MATMUL, WORD_BYTES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.engine import fault_layout
from poblano.faults import Fault
from poblano.tensor.job import ResultKind, job_layout
from poblano_golden.formats import BF16, FP32

__all__ = ["MatmulDecode"]


class MatmulDecode(Component):
    """Decodes and checks a `tensor.matmul`. Combinational.

    With axis m the operands change sides: the engine computes the transpose, whose results
    along its own n are the blocks along m.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    word:
        The command word.
    job:
        The product that it asks for.
    fault:
        What is wrong with it.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        super().__init__(
            {
                "word": In(8 * WORD_BYTES),
                "job": Out(job_layout(configuration)),
                "fault": Out(fault_layout()),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        decoder = CommandDecoder(mnemonic=MATMUL.mnemonic)
        m.submodules.decoder = once(decoder, platform)
        fields, job = decoder.fields, self.job
        m.d.comb += decoder.word.eq(self.word)

        swap = fields.axis
        a_code = Mux(swap, fields.b_format, fields.a_format)
        b_code = Mux(swap, fields.a_format, fields.b_format)
        m.d.comb += [
            job.m.eq(Mux(swap, fields.n, fields.m)),
            job.n.eq(Mux(swap, fields.m, fields.n)),
            job.last_block.eq((fields.k - 1) >> 5),
            job.tail.eq((fields.k - 1)[:5] + 1),
            job.scale_rule.eq(fields.scale_rule),
        ]
        for part in ("codes", "code_stride", "scales", "scale_stride"):
            a, b = fields[f"a_{part}"], fields[f"b_{part}"]
            m.d.comb += [
                job.a[part].eq(Mux(swap, b, a)),
                job.b[part].eq(Mux(swap, a, b)),
                job.d[part].eq(fields[f"d_{part}"]),
            ]

        pair_legal = Signal()
        for number, mode in enumerate(modes(self.configuration.tensor.formats)):
            with m.If((a_code == mode.a.code) & (b_code == mode.b.code)):
                m.d.comb += [
                    pair_legal.eq(1),
                    job.mode.eq(number),
                    job.a.wide.eq(mode.a.storage_bits == 8),
                    job.b.wide.eq(mode.b.storage_bits == 8),
                ]
        result_legal = Signal()
        with m.Switch(fields.d_format):
            with m.Case(FP32.code):
                m.d.comb += [result_legal.eq(1), job.result.eq(ResultKind.FP32)]
            with m.Case(BF16.code):
                m.d.comb += [result_legal.eq(1), job.result.eq(ResultKind.BF16)]
            for number, fmt in enumerate(operand_formats(self.configuration.tensor.formats)):
                with m.Case(fmt.code):
                    m.d.comb += [
                        result_legal.eq(1),
                        job.result.eq(ResultKind.MX),
                        job.d_format.eq(number),
                        job.d.wide.eq(fmt.storage_bits == 8),
                    ]

        with m.If(~decoder.opcode_legal):
            m.d.comb += self.fault.kind.eq(Fault.OPCODE)
        with m.Elif(~decoder.fields_legal.all()):
            m.d.comb += self.fault.kind.eq(Fault.FIELD)
            for index in reversed(range(len(MATMUL.fields))):
                with m.If(~decoder.fields_legal[index]):
                    m.d.comb += self.fault.field.eq(index)
        with m.Elif(~pair_legal | ~result_legal):
            m.d.comb += self.fault.kind.eq(Fault.FORMATS)
        return m
