"""The half of the DMA engine that reads HBM and writes L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from poblano.axi import Burst, axi4_read
from poblano.commands import HBM_ADDRESS_WIDTH, LOAD_GATHER, LOAD_ROWS
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.dma.issue import MoveIssue
from poblano.dma.job import burst_layout, last_beat
from poblano.dma.lander import Lander
from poblano.dma.watch import Watch
from poblano.engine import NUMBER_WIDTH, engine_members
from poblano.faults import Fault
from poblano.l1.scratchpad import write_layout

__all__ = ["LoadEngine"]


class LoadEngine(Component):
    """Runs `load.rows` and `load.gather`, in order, one beat a cycle.

    `poblano.dma.timing` says how many cycles a command takes alone. Commands overlap: the bursts
    of one follow those of the one before at once. `hbm.outstanding` bursts may be in flight.
    After a fault no burst is issued; what is on its way is still taken, and written unless it
    came with an error.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    command, done, fault:
        Of every engine; see `poblano.engine`. An error of the memory is told with the address of
        its burst, silence with that of the oldest burst.
    axi:
        The read channels of the HBM port.
    patience:
        Cycles without an answer, while bursts are in flight, that make the fault `SILENCE`;
        0 for any number.
    write:
        L1's write port.
    index_read, index_data:
        L1's read port for indices; the line comes one cycle after its index was accepted.
    beat:
        1 for a cycle in which a beat was taken.
    busy:
        A command is not complete.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.issue = MoveIssue(
            configuration=configuration, rows=LOAD_ROWS.mnemonic, indexed=LOAD_GATHER.mnemonic
        )
        line = configuration.l1.line
        index_width = len(self.issue.index_read.payload)
        super().__init__(
            {
                **engine_members(),
                "axi": Out(
                    axi4_read(width=configuration.hbm.width, address_width=HBM_ADDRESS_WIDTH)
                ),
                "patience": In(32),
                "write": Out(stream.Signature(write_layout(line, index_width))),
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
        issue = self.issue
        lander = Lander(width=width, line=line, index_width=len(self.index_read.payload))
        watch = Watch()
        m.submodules.move_issue = once(issue, platform)
        m.submodules.lander = once(lander, platform)
        m.submodules.watch = once(watch, platform)
        m.submodules.bursts = bursts = SyncFIFO(width=burst_layout().size, depth=outstanding)

        wiring.connect(m, wiring.flipped(self.command), issue.command)
        wiring.connect(m, issue.index_read, wiring.flipped(self.index_read))
        wiring.connect(m, lander.write, wiring.flipped(self.write))

        # A burst's address waits in a register, and what becomes of its beats in a queue.
        halted = Signal()
        in_flight = Signal(range(outstanding + 1))
        issued = Signal()
        axi, burst = self.axi, issue.bursts.payload
        m.d.comb += [
            halted.eq(self.fault.kind != Fault.NONE),
            issue.halted.eq(halted),
            issue.index_data.eq(self.index_data),
            issue.bursts.ready.eq(
                (~axi.arvalid | axi.arready) & (in_flight != outstanding) & ~halted
            ),
            issued.eq(issue.bursts.valid & issue.bursts.ready),
            bursts.w_data.eq(burst),
            bursts.w_en.eq(issued),
            lander.bursts.payload.eq(bursts.r_data),
            lander.bursts.valid.eq(bursts.r_rdy),
            bursts.r_en.eq(lander.bursts.ready),
            axi.arsize.eq((width - 1).bit_length()),
            axi.arburst.eq(Burst.INCR),
        ]
        with m.If(axi.arready):
            m.d.sync += axi.arvalid.eq(0)
        with m.If(issued):
            m.d.sync += [
                axi.arvalid.eq(1),
                axi.araddr.eq(burst.hbm),
                axi.arlen.eq(last_beat(burst, width)),
            ]
        m.d.sync += in_flight.eq(in_flight + issued - lander.over)

        error = Signal()
        m.d.comb += [
            lander.beats.valid.eq(axi.rvalid),
            axi.rready.eq(lander.beats.ready),
            self.beat.eq(axi.rvalid & axi.rready),
            error.eq(axi.rresp[1]),
            lander.beats.payload.data.eq(axi.rdata),
            lander.beats.payload.error.eq(error),
            lander.flush.eq(halted & (in_flight == 0)),
            watch.patience.eq(self.patience),
            watch.waiting.eq((in_flight != 0) & ~axi.rvalid),
            self.busy.eq(issue.busy | (in_flight != 0) | lander.busy),
        ]
        m.d.sync += self.done.eq(lander.landed & ~halted)
        answered = Signal(NUMBER_WIDTH)  # commands of which every beat came
        m.d.sync += answered.eq(answered + lander.ends)
        with m.If(~halted):
            with m.If(self.beat & error):
                m.d.sync += [
                    self.fault.kind.eq(Fault.RESPONSE),
                    self.fault.address.eq(lander.address),
                    self.fault.response.eq(axi.rresp),
                    self.fault.number.eq(answered),
                ]
            with m.Elif(watch.silent):
                m.d.sync += [
                    self.fault.kind.eq(Fault.SILENCE),
                    self.fault.address.eq(lander.address),
                    self.fault.number.eq(answered),
                ]
            with m.Else():
                m.d.sync += self.fault.eq(issue.fault)
        return m
