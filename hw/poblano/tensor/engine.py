"""The tensor engine: commands in, operands and results in L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.engine import NUMBER_WIDTH, engine_members
from poblano.faults import Fault
from poblano.l1.line_reader import LineReader
from poblano.l1.line_writer import LineWriter
from poblano.l1.scratchpad import write_layout
from poblano.tensor.array import TensorArray
from poblano.tensor.decode import MatmulDecode
from poblano.tensor.drain import Drain
from poblano.tensor.fetch import OperandFetch, Run
from poblano.tensor.geometry import Geometry
from poblano.tensor.panel import OperandPanel
from poblano.tensor.results import ResultPath
from poblano.tensor.sequencer import Sequencer

__all__ = ["TensorEngine"]


class TensorEngine(Component):
    """Computes D[m, n] = sum over k of A[m, k] * B[n, k] for one command after the other.

    Fetch, arithmetic and drain overlap, within a command and between commands: while one drains
    the next multiplies, and the one after that is fetched. A command that reads what an earlier
    one writes must therefore wait for it by a semaphore. `poblano.tensor.timing` says how many
    cycles a command takes alone, and when each of a sequence is done.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    command, done, fault:
        See `poblano.engine.engine_members`. Commands accepted before a faulty one are completed;
        an access outside L1 stops the engine at once, reads of that kind give any data and
        writes are not made.
    read, read_data:
        L1's read port: line indices, and lines one cycle later.
    write:
        L1's write port.
    busy:
        A command is being run.

    Raises
    ------
    ValueError
        If the L1 line cannot hold a tile's scales.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.geometry = geometry = Geometry(configuration)
        line = configuration.l1.line
        if max(geometry.a.tile, geometry.b.tile) > line:
            raise ValueError(f"a tile's scales must fit a line of {line} bytes")
        self.lines = configuration.l1.size // line
        address_width = max(1, (self.lines - 1).bit_length())
        super().__init__(
            {
                **engine_members(),
                "read": Out(stream.Signature(address_width, always_ready=True)),
                "read_data": In(8 * line),
                "write": Out(
                    stream.Signature(write_layout(line, address_width), always_ready=True)
                ),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        configuration, geometry = self.configuration, self.geometry
        line = configuration.l1.line
        a_side, b_side = geometry.a, geometry.b
        chunks = (a_side.tile, a_side.chunk, b_side.tile, b_side.chunk)

        decode = MatmulDecode(configuration=configuration)
        fetch = OperandFetch(configuration=configuration)
        reader = LineReader(line=line, chunks=chunks, lines=self.lines)
        panel_a, panel_b = OperandPanel(side=a_side), OperandPanel(side=b_side)
        sequencer = Sequencer(configuration=configuration)
        array = TensorArray(configuration=configuration)
        drain = Drain(configuration=configuration)
        results = ResultPath(configuration=configuration)
        writer = LineWriter(line=line, most=geometry.item_bytes, lines=self.lines)
        parts = {
            "command_decode": decode,
            "operand_fetch": fetch,
            "line_reader": reader,
            "panel_a": panel_a,
            "panel_b": panel_b,
            "beat_sequencer": sequencer,
            "unit_array": array,
            "tile_drain": drain,
            "result_path": results,
            "line_writer": writer,
        }
        for name, part in parts.items():
            m.submodules[name] = once(part, platform)

        wiring.connect(m, fetch.runs, reader.request)
        wiring.connect(m, reader.memory, wiring.flipped(self.read))
        m.d.comb += reader.memory_data.eq(self.read_data)
        self._fill_panels(m, reader, fetch, sequencer, panel_a, panel_b)
        self._multiply(m, sequencer, panel_a, panel_b, array)
        m.d.comb += [
            drain.tile_ready.eq(array.tile_done),
            drain.room.eq(results.room),
            sequencer.tile_drained.eq(drain.tile_drained),
            array.drain.eq(drain.step_valid & drain.step.takes),
            array.drain_row.eq(drain.row),
            array.drain_bank.eq(drain.bank),
            array.drain_accumulator.eq(drain.accumulator),
            results.step_valid.eq(drain.step_valid),
            results.step.eq(drain.step),
            results.drained.eq(array.drained),
        ]
        wiring.connect(m, results.runs, writer.runs)
        wiring.connect(m, writer.memory, wiring.flipped(self.write))

        self._control(m, decode, fetch, sequencer, array, drain, results, reader, writer)
        return m

    def _fill_panels(self, m, reader, fetch, sequencer, panel_a, panel_b) -> None:
        """Chunks go to the panel being filled; its last chunk makes it full."""
        full = Signal(2)
        filling = Signal()
        filled = Signal()

        def arrives(run: Run) -> Value:
            return reader.chunk_valid & (reader.chunk_kind == run)

        for panel, scales, codes in (
            (panel_a, Run.A_SCALES, Run.A_CODES),
            (panel_b, Run.B_SCALES, Run.B_CODES),
        ):
            m.d.comb += [
                panel.chunk.eq(reader.chunk),
                panel.write_panel.eq(filling),
                panel.codes_first.eq(reader.chunk_first),
                panel.codes_valid.eq(arrives(codes)),
                panel.scales_valid.eq(arrives(scales)),
            ]
        m.d.comb += [
            filled.eq(arrives(Run.B_CODES) & reader.chunk_last),
            sequencer.panel_full.eq(full),
            fetch.panel_free.eq(~full | sequencer.panel_done),
        ]
        m.d.sync += [
            full.eq((full & ~sequencer.panel_done) | (filled << filling)),
            filling.eq(filling ^ filled),
        ]

    def _multiply(self, m, sequencer, panel_a, panel_b, array) -> None:
        """Each beat reads a sub-tile of both panels."""
        beat, job = sequencer.beat, sequencer.job
        for panel, tile, wide in (
            (panel_a, beat.row_tile, job.a.wide),
            (panel_b, beat.col_tile, job.b.wide),
        ):
            m.d.comb += [
                panel.read.eq(sequencer.beat_valid),
                panel.read_panel.eq(beat.panel),
                panel.tile.eq(tile),
                panel.wide.eq(wide),
            ]
        m.d.comb += [
            array.beat_valid.eq(sequencer.beat_valid),
            array.beat.eq(beat),
            array.mode.eq(job.mode),
            array.a_codes.eq(panel_a.codes),
            array.a_scales.eq(panel_a.scales),
            array.b_codes.eq(panel_b.codes),
            array.b_scales.eq(panel_b.scales),
        ]

    def _control(self, m, decode, fetch, sequencer, array, drain, results, reader, writer) -> None:
        """Accept a word, check it, and hand its job from process to process."""
        fetched = Signal()  # the fetch's job, which the arithmetic has not taken yet
        computed = Signal()  # the arithmetic's job, which the drain has not taken yet
        draining = Signal()
        stopped = Signal()
        word = Signal(8 * WORD_BYTES)
        started, finished = Signal(NUMBER_WIDTH), Signal(NUMBER_WIDTH)
        m.d.comb += [decode.word.eq(word), stopped.eq(self.fault.kind != Fault.NONE)]

        with m.FSM() as fsm:
            with m.State("Wait for a command"):
                m.d.comb += self.command.ready.eq(~stopped & fetch.idle & ~fetched)
                with m.If(self.command.valid & self.command.ready):
                    m.d.sync += word.eq(self.command.payload)
                    m.next = "Decode"
            with m.State("Decode"):
                m.d.sync += fetch.job.eq(decode.job)
                m.next = "Start"
                with m.If(decode.fault.kind != Fault.NONE):
                    with m.If(~stopped):
                        m.d.sync += [self.fault.eq(decode.fault), self.fault.number.eq(started)]
                    m.next = "Wait for a command"
            with m.State("Start"):
                m.d.comb += fetch.start.eq(1)
                m.d.sync += started.eq(started + 1)
                m.next = "Wait for a command"

        # the array's pipeline has one mode: it is empty when the next job begins
        in_array = Signal(2)
        compute = Signal()
        collect = Signal()
        empty = Signal()
        m.d.sync += in_array.eq(in_array + sequencer.tile_issued - array.tile_done)
        m.d.comb += [
            compute.eq(fetched & sequencer.idle & (in_array == 0) & ~computed),
            empty.eq(drain.done & results.empty),
            collect.eq(computed & empty),
            self.done.eq(draining & empty & ~stopped),
            results.job.eq(drain.job),
        ]
        m.d.sync += [
            fetched.eq((fetched & ~compute) | fetch.start),
            computed.eq((computed & ~collect) | compute),
            sequencer.start.eq(compute),
            drain.start.eq(collect),
            draining.eq((draining & ~empty) | drain.start),
            finished.eq(finished + self.done),
        ]
        with m.If(compute):
            m.d.sync += sequencer.job.eq(fetch.job)
        with m.If(collect):
            m.d.sync += drain.job.eq(sequencer.job)
        m.d.comb += self.busy.eq(
            ~fsm.ongoing("Wait for a command")
            | Cat(~fetch.idle, fetched, ~sequencer.idle, in_array != 0, computed, draining).any()
        )
        # what is read is the last started command's, what is written the first unfinished one's
        for port, number in ((reader, started - 1), (writer, finished)):
            with m.If(port.outside & ~stopped):
                m.d.sync += [
                    self.fault.kind.eq(Fault.ADDRESS),
                    self.fault.address.eq(port.outside_address),
                    self.fault.number.eq(number),
                ]
