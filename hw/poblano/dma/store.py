"""The half of the DMA engine that reads L1 and writes HBM."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from poblano.axi import Burst, axi4_write
from poblano.commands import HBM_ADDRESS_WIDTH, STORE_ROWS, STORE_SCATTER
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.dma.beat_reader import BeatReader
from poblano.dma.issue import MoveIssue
from poblano.dma.job import burst_layout, last_beat
from poblano.dma.timing import BURST_QUEUE_DEPTH
from poblano.dma.watch import Watch
from poblano.engine import NUMBER_WIDTH, engine_members
from poblano.faults import Fault

__all__ = ["StoreEngine"]


class StoreEngine(Component):
    """Runs `store.rows` and `store.scatter`, in order, one beat a cycle.

    `poblano.dma.timing` says how many cycles a command takes alone. Commands overlap: the bursts
    of one follow those of the one before at once. `hbm.outstanding` bursts may be in flight.
    After a fault no burst is issued; those on their way get their data, and their responses are
    taken.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    command, done, fault:
        Of every engine; see `poblano.engine`. A command is complete with its last write response.
        An error of the memory is told with the address of its burst, silence with that of the
        oldest burst.
    axi:
        The write channels of the HBM port.
    patience:
        Cycles in which the memory neither takes what is offered nor answers what it took that
        make the fault `SILENCE`; 0 for any number.
    read, read_data:
        L1's read port; the line comes one cycle after its index was accepted.
    index_read, index_data:
        The same for indices.
    beat:
        1 for a cycle in which a beat was sent.
    busy:
        A command is not complete.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.issue = MoveIssue(
            configuration=configuration, rows=STORE_ROWS.mnemonic, indexed=STORE_SCATTER.mnemonic
        )
        line = configuration.l1.line
        index_width = len(self.issue.index_read.payload)
        super().__init__(
            {
                **engine_members(),
                "axi": Out(
                    axi4_write(width=configuration.hbm.width, address_width=HBM_ADDRESS_WIDTH)
                ),
                "patience": In(32),
                "read": Out(stream.Signature(index_width)),
                "read_data": In(8 * line),
                "index_read": Out(stream.Signature(index_width)),
                "index_data": In(8 * line),
                "beat": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        width, line = self.configuration.hbm.width, self.configuration.l1.line
        outstanding = self.configuration.hbm.outstanding
        answer = data.StructLayout({"hbm": HBM_ADDRESS_WIDTH, "last": 1})
        issue = self.issue
        reader = BeatReader(width=width, line=line, index_width=len(self.read.payload))
        watch = Watch()
        m.submodules.move_issue = once(issue, platform)
        m.submodules.beat_reader = once(reader, platform)
        m.submodules.watch = once(watch, platform)
        m.submodules.bursts = bursts = SyncFIFO(width=burst_layout().size, depth=BURST_QUEUE_DEPTH)
        m.submodules.answers = answers = SyncFIFO(width=answer.size, depth=outstanding)

        wiring.connect(m, wiring.flipped(self.command), issue.command)
        wiring.connect(m, issue.index_read, wiring.flipped(self.index_read))
        wiring.connect(m, reader.memory, wiring.flipped(self.read))

        # A burst's address waits in a register, its data in one queue, its answer in another.
        halted, issued = Signal(), Signal()
        oldest = Signal(answer)
        axi, burst = self.axi, issue.bursts.payload
        m.d.comb += [
            halted.eq(self.fault.kind != Fault.NONE),
            issue.halted.eq(halted),
            issue.index_data.eq(self.index_data),
            reader.memory_data.eq(self.read_data),
            issue.bursts.ready.eq(
                (~axi.awvalid | axi.awready) & bursts.w_rdy & answers.w_rdy & ~halted
            ),
            issued.eq(issue.bursts.valid & issue.bursts.ready),
            bursts.w_data.eq(burst),
            bursts.w_en.eq(issued),
            reader.bursts.payload.eq(bursts.r_data),
            reader.bursts.valid.eq(bursts.r_rdy),
            bursts.r_en.eq(reader.bursts.ready),
            answers.w_data.eq(Cat(burst.hbm, burst.last)),
            answers.w_en.eq(issued),
            oldest.eq(answers.r_data),
            answers.r_en.eq(axi.bvalid),
            axi.awsize.eq((width - 1).bit_length()),
            axi.awburst.eq(Burst.INCR),
            axi.wvalid.eq(reader.beats.valid),
            axi.wdata.eq(reader.beats.payload.data),
            axi.wstrb.eq(reader.beats.payload.strobe),
            axi.wlast.eq(reader.beats.payload.last),
            reader.beats.ready.eq(axi.wready),
            axi.bready.eq(1),
        ]
        with m.If(axi.awready):
            m.d.sync += axi.awvalid.eq(0)
        with m.If(issued):
            m.d.sync += [
                axi.awvalid.eq(1),
                axi.awaddr.eq(burst.hbm),
                axi.awlen.eq(last_beat(burst, width)),
            ]

        # The memory is waited for while it owes an answer, unless L1 keeps data from it.
        offered, owes_all = Signal(), Signal()
        m.d.comb += [
            offered.eq((axi.awvalid & ~axi.awready) | (axi.wvalid & ~axi.wready)),
            owes_all.eq(answers.r_rdy & ~bursts.r_rdy & ~reader.busy & ~axi.awvalid),
            watch.patience.eq(self.patience),
            watch.waiting.eq((offered | owes_all) & ~axi.bvalid & ~self.beat),
            self.beat.eq(axi.wvalid & axi.wready),
            self.busy.eq(issue.busy | answers.r_rdy),
        ]
        ends = Signal()
        answered = Signal(NUMBER_WIDTH)  # commands of which every response came
        m.d.comb += ends.eq(axi.bvalid & answers.r_rdy & oldest.last)
        m.d.sync += [
            self.done.eq(ends & ~axi.bresp[1] & ~halted),
            answered.eq(answered + ends),
        ]
        with m.If(~halted):
            with m.If(axi.bvalid & axi.bresp[1]):
                m.d.sync += [
                    self.fault.kind.eq(Fault.RESPONSE),
                    self.fault.address.eq(oldest.hbm),
                    self.fault.response.eq(axi.bresp),
                    self.fault.number.eq(answered),
                ]
            with m.Elif(watch.silent):
                m.d.sync += [
                    self.fault.kind.eq(Fault.SILENCE),
                    self.fault.address.eq(oldest.hbm),
                    self.fault.number.eq(answered),
                ]
            with m.Else():
                m.d.sync += self.fault.eq(issue.fault)
        return m
