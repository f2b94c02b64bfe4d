"""From command words to bursts: what both halves of the DMA engine begin with."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.dma.burst_splitter import BurstSplitter
from poblano.dma.decode import MoveDecode
from poblano.dma.job import burst_layout
from poblano.dma.row_walker import RowWalker
from poblano.engine import NUMBER_WIDTH, fault_layout
from poblano.faults import Fault

__all__ = ["MoveIssue"]


class MoveIssue(Component):
    """Decodes moves and emits their bursts in order, the first four cycles after its word.

    A word is accepted while the one before is still walked; one burst a cycle across rows and
    commands. The first burst of a row is emitted only if all of the row lies inside both memories.

    Parameters
    ----------
    configuration:
        The slice.
    rows, indexed:
        The engine's two commands.

    Members
    -------
    command:
        Command words; none is accepted while `halted`.
    halted:
        The engine has a fault.
    bursts:
        Bursts in order.
    index_read, index_data:
        L1's read port for indices.
    fault:
        What is wrong with the word, row or index whose turn it is; kind `NONE` if nothing is.
    busy:
        Something is left to emit.

    Raises
    ------
    CommandError
        If the table lacks one of the commands.
    """

    def __init__(self, *, configuration: SliceConfiguration, rows: str, indexed: str) -> None:
        self.configuration = configuration
        self.decode = MoveDecode(rows=rows, indexed=indexed)
        self.walker = RowWalker(configuration=configuration)
        super().__init__(
            {
                "command": In(stream.Signature(8 * WORD_BYTES)),
                "halted": In(1),
                "bursts": Out(stream.Signature(burst_layout())),
                "index_read": Out(stream.Signature(self.walker.index_read.payload.shape())),
                "index_data": In(8 * configuration.l1.line),
                "fault": Out(fault_layout()),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        decode, walker = self.decode, self.walker
        splitter = BurstSplitter(width=self.configuration.hbm.width)
        m.submodules.move_decode = once(decode, platform)
        m.submodules.row_walker = once(walker, platform)
        m.submodules.burst_splitter = once(splitter, platform)
        wiring.connect(m, walker.rows, splitter.rows)
        wiring.connect(m, splitter.bursts, wiring.flipped(self.bursts))
        wiring.connect(m, walker.index_read, wiring.flipped(self.index_read))

        word = Signal(8 * WORD_BYTES)
        word_valid = Signal()
        legal = Signal()
        walks = Signal()
        m.d.comb += [
            walks.eq(walker.busy | splitter.bursts.valid),
            legal.eq(decode.fault.kind == Fault.NONE),
            decode.word.eq(word),
            walker.index_data.eq(self.index_data),
            walker.job.payload.eq(decode.job),
            walker.job.valid.eq(word_valid & legal),
            self.command.ready.eq((~word_valid | (walker.job.ready & legal)) & ~self.halted),
            self.busy.eq(word_valid | walks),
        ]
        with m.If(walker.job.ready & legal):
            m.d.sync += word_valid.eq(0)
        with m.If(self.command.valid & self.command.ready):
            m.d.sync += [word.eq(self.command.payload), word_valid.eq(1)]

        # every row before the one whose turn it is, and every command before its own, has passed
        passed = Signal(NUMBER_WIDTH)
        rows = walker.rows
        with m.If(rows.valid & rows.ready & rows.payload.last):
            m.d.sync += passed.eq(passed + 1)
        with m.If(walker.outside):
            m.d.comb += [
                self.fault.kind.eq(Fault.ADDRESS),
                self.fault.address.eq(walker.address),
                self.fault.number.eq(passed),
            ]
        with m.Elif(word_valid & ~walks & ~legal):
            m.d.comb += [
                self.fault.kind.eq(decode.fault.kind),
                self.fault.field.eq(decode.fault.field),
                self.fault.number.eq(passed),
            ]
        return m
