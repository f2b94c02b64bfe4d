"""The tensor engine: commands in, operands and results in L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.l1.line_reader import LineReader
from poblano.l1.line_writer import LineWriter
from poblano.l1.scratchpad import write_layout
from poblano.tensor.array import TensorArray
from poblano.tensor.decode import Fault, MatmulDecode, fault_layout
from poblano.tensor.drain import Drain
from poblano.tensor.fetch import OperandFetch, Run
from poblano.tensor.geometry import Geometry
from poblano.tensor.panel import OperandPanel
from poblano.tensor.results import ResultPath
from poblano.tensor.sequencer import Sequencer

__all__ = ["TensorEngine"]


class TensorEngine(Component):
    """Computes D[m, n] = sum over k of A[m, k] * B[n, k] for one command after the other.

    Fetch, arithmetic, drain and writing overlap within a command; a command begins when the one
    before is complete. `poblano.tensor.timing.matmul_cycles` says how many cycles one takes, with
    cycle 0 the one after its word was accepted.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    command:
        Command words.
    read, read_data:
        L1's read port: line indices, and lines one cycle later.
    write:
        L1's write port.
    done:
        Pulses in the cycle after a command's last write, or when one is refused.
    busy:
        A command is being run.
    fault:
        The first fault since reset.

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
                "command": In(stream.Signature(8 * WORD_BYTES)),
                "read": Out(stream.Signature(address_width, always_ready=True)),
                "read_data": In(8 * line),
                "write": Out(
                    stream.Signature(write_layout(line, address_width), always_ready=True)
                ),
                "done": Out(1),
                "busy": Out(1),
                "fault": Out(fault_layout()),
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

        job = Signal.like(decode.job)
        start = Signal()
        for part in (fetch, sequencer, drain):
            m.d.comb += [part.job.eq(job), part.start.eq(start)]
        m.d.comb += results.job.eq(job)

        wiring.connect(m, fetch.runs, reader.request)
        wiring.connect(m, reader.memory, wiring.flipped(self.read))
        m.d.comb += reader.memory_data.eq(self.read_data)
        self._fill_panels(m, reader, fetch, sequencer, panel_a, panel_b)
        self._multiply(m, job, sequencer, panel_a, panel_b, array)
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

        finished = drain.done & results.empty
        outside = reader.outside | writer.outside
        self._control(m, decode, job, start, finished, outside)
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
        with m.If(fetch.start):
            m.d.sync += filling.eq(0)

    def _multiply(self, m, job, sequencer, panel_a, panel_b, array) -> None:
        """Each beat reads a sub-tile of both panels."""
        beat = sequencer.beat
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

    def _control(self, m, decode, job, start, finished, outside) -> None:
        """Accept a word, check it, run it, and remember the first fault."""
        word = Signal(8 * WORD_BYTES)
        m.d.comb += decode.word.eq(word)
        with m.FSM() as fsm:
            with m.State("Wait for a command"):
                m.d.comb += self.command.ready.eq(1)
                with m.If(self.command.valid):
                    m.d.sync += word.eq(self.command.payload)
                    m.next = "Decode"
            with m.State("Decode"):
                m.d.sync += job.eq(decode.job)
                with m.If(decode.fault.kind == Fault.NONE):
                    m.next = "Start"
                with m.Else():
                    m.d.comb += self.done.eq(1)
                    with m.If(self.fault.kind == Fault.NONE):
                        m.d.sync += self.fault.eq(decode.fault)
                    m.next = "Wait for a command"
            with m.State("Start"):
                m.d.comb += start.eq(1)
                m.next = "Run"
            with m.State("Run"), m.If(finished):
                m.d.comb += self.done.eq(1)
                m.next = "Wait for a command"
        m.d.comb += self.busy.eq(~fsm.ongoing("Wait for a command"))
        with m.If(outside & (self.fault.kind == Fault.NONE)):
            m.d.sync += self.fault.kind.eq(Fault.ADDRESS)
