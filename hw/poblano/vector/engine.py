"""The vector engine: commands in, elements in L1 through chains to results in L1."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.engine import NUMBER_WIDTH, engine_members
from poblano.faults import Fault
from poblano.l1.line_writer import LineWriter
from poblano.l1.scratchpad import index_width, write_layout
from poblano.vector.decode import VectorDecode
from poblano.vector.fetch import VectorFetch
from poblano.vector.job import SIDES, Reduction, Store, chain_layout, pass_layout
from poblano.vector.lanes import VectorLanes
from poblano.vector.power_sum import PowerSum
from poblano.vector.row_maximum import RowMaximum
from poblano.vector.row_sum import RowSum
from poblano.vector.store import VectorStore
from poblano.vector.words import WordWriter

__all__ = ["VectorEngine"]


class VectorEngine(Component):
    """Runs `vector.chain`, `vector.pass` and `vector.topk`, one command at a time.

    A command is accepted when the one before has written its last byte. `poblano.vector.timing`
    says how many cycles each takes; waits for L1 add to that. What leaves the lanes waits in
    queues, and while one is full no time passes for the beats inside.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    command, done, fault:
        Of every engine; see `poblano.engine`. An access outside L1 is not made and stops the
        engine; rows before it may have been written.
    read, read_data:
        L1's read port; the line comes one cycle after its index was accepted.
    write:
        L1's write port.
    busy:
        A command is not complete.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.line = configuration.l1.line
        self.lines = configuration.l1.size // self.line
        address_width = index_width(self.lines)
        super().__init__(
            {
                **engine_members(),
                "read": Out(stream.Signature(address_width)),
                "read_data": In(8 * self.line),
                "write": Out(stream.Signature(write_layout(self.line, address_width))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        configuration, lanes = self.configuration, self.configuration.vector.lanes
        decode = VectorDecode(configuration=configuration)
        fetch = VectorFetch(configuration=configuration)
        array = VectorLanes(configuration=configuration)
        row_sum = RowSum(lanes=lanes, stages=configuration.vector.pipeline.add)
        row_maximum, power_sum = RowMaximum(lanes=lanes), PowerSum(lanes=lanes)
        store = VectorStore(configuration=configuration)
        words = WordWriter(most=store.most)
        writer = LineWriter(line=self.line, most=store.most, lines=self.lines, waits=True)
        parts: dict[str, Any] = {
            "vector_decode": decode,
            "vector_fetch": fetch,
            "vector_lanes": array,
            "row_sum": row_sum,
            "row_maximum": row_maximum,
            "power_sum": power_sum,
            "vector_store": store,
            "word_writer": words,
            "line_writer": writer,
        }
        for name, part in parts.items():
            m.submodules[name] = once(part, platform)

        chain, job = Signal(chain_layout()), Signal(pass_layout())
        start, enable, halted = Signal(), Signal(), Signal()
        m.d.comb += [enable.eq(store.room & words.room), halted.eq(self.fault.kind != Fault.NONE)]
        for part in (fetch, store, words):
            m.d.comb += [part.start.eq(start), part.new_job.eq(decode.job)]
        for part in (fetch, store):
            m.d.comb += [part.job.eq(job), part.chain.eq(chain)]
        for part in (fetch, array, row_sum, row_maximum, power_sum, store):
            m.d.comb += part.enable.eq(enable)

        wiring.connect(m, fetch.read, wiring.flipped(self.read))
        m.d.comb += [
            fetch.read_data.eq(self.read_data),
            fetch.halted.eq(halted),
            array.chain.eq(chain.lane),
            array.chain.a_format.eq(job.a_format),
            array.alone.eq(job.topk),
            *(
                getattr(array, name).eq(getattr(fetch, name))
                for name in ("beat", "valid_lanes", *SIDES, "p", "q")
            ),
            store.beat.eq(array.result_beat),
            store.values.eq(array.results),
        ]
        self._reduce(m, chain, job, enable, fetch, array, row_sum, row_maximum, power_sum, words)
        self._write(m, halted, store, words, writer)
        self._control(m, chain, job, start, enable, decode, fetch, array, store, words, writer)
        return m

    def _reduce(
        self, m, chain, job, enable, fetch, array, row_sum, row_maximum, power_sum, words
    ) -> None:
        """Beats go to the unit of the pass's reduction, and rows' results to the writer."""

        def gated(target: Any, beat: Any, condition: Value) -> None:
            m.d.comb += [target.eq(beat), target.valid.eq(beat.valid & condition)]

        number, result = array.number_beat, array.result_beat
        gated(row_sum.beat, result, chain.reduction == Reduction.SUM)
        gated(power_sum.beat, array.term_beat, chain.reduction == Reduction.SOFTMAX)
        largest_of = data.View(number.shape(), Mux(job.topk, number.as_value(), result.as_value()))
        gated(row_maximum.beat, largest_of, job.topk | (chain.reduction == Reduction.MAXIMUM))
        m.d.comb += [
            row_sum.values.eq(array.results),
            power_sum.terms.eq(array.terms),
            row_maximum.values.eq(Mux(job.topk, array.numbers, array.results)),
            fetch.next_round.eq(row_maximum.largest_valid & enable),
        ]
        # a topk's next round looks for what comes after the element that this one found
        with m.If(row_maximum.largest_valid & enable):
            m.d.sync += [
                row_maximum.after.eq(job.topk & ~fetch.first_round),
                row_maximum.after_key.eq(row_maximum.key),
                row_maximum.after_column.eq(row_maximum.column),
            ]

        item = words.words
        m.d.comb += words.words_valid.eq(
            enable & (row_sum.sum_valid | row_maximum.largest_valid | power_sum.sum_valid)
        )
        with m.If(job.topk | (chain.reduction == Reduction.MAXIMUM)):
            m.d.comb += [
                item.first.eq(row_maximum.largest),
                item.second.eq(row_maximum.column),
                item.two.eq(job.topk),
                item.end.eq(row_maximum.ends),
            ]
        with m.Elif(chain.reduction == Reduction.SUM):
            m.d.comb += [item.first.eq(row_sum.sum), item.end.eq(row_sum.ends)]
        with m.Else():
            m.d.comb += [
                item.first.eq(power_sum.row_reference),
                item.second.eq(power_sum.sum),
                item.two.eq(1),
                item.end.eq(power_sum.ends),
            ]

    def _write(self, m, halted, store, words, writer) -> None:
        """Words go before items, but a run that was offered stays until it is written."""
        offered, offered_words, chosen_words = Signal(), Signal(), Signal()
        goes = Signal()
        m.d.comb += [
            goes.eq(~halted | offered),
            chosen_words.eq(Mux(offered, offered_words, words.runs.valid)),
            writer.runs.payload.eq(
                Mux(chosen_words, words.runs.payload.as_value(), store.runs.payload.as_value())
            ),
            writer.runs.valid.eq(Mux(chosen_words, words.runs.valid, store.runs.valid) & goes),
            words.runs.ready.eq(chosen_words & writer.runs.ready & goes),
            store.runs.ready.eq(~chosen_words & writer.runs.ready & goes),
            self.write.valid.eq(writer.memory.valid),
            self.write.payload.eq(writer.memory.payload),
            writer.memory.ready.eq(self.write.ready),
        ]
        m.d.sync += [
            offered.eq(writer.runs.valid & ~writer.runs.ready),
            offered_words.eq(chosen_words),
        ]

    def _control(
        self, m, chain, job, start, enable, decode, fetch, array, store, words, writer
    ) -> None:
        """Take a word, wait until all that it causes is written, and tell."""
        running, sets = Signal(), Signal()
        passed, stored, reduced = Signal(), Signal(), Signal()
        passes, stores, reduces, finished = Signal(), Signal(), Signal(), Signal()
        accepted = Signal()
        completed = Signal(NUMBER_WIDTH)
        halted = self.fault.kind != Fault.NONE
        m.d.comb += [
            decode.word.eq(self.command.payload),
            decode.chain.eq(chain),
            self.command.ready.eq(~running & ~halted),
            accepted.eq(
                self.command.valid & self.command.ready & (decode.fault.kind == Fault.NONE)
            ),
            start.eq(accepted & decode.is_pass),
            passes.eq(passed | (array.result_beat.valid & array.result_beat.end & enable)),
            stores.eq(stored | store.ended),
            reduces.eq(reduced | words.ended),
            finished.eq(running & passes & stores & reduces & ~halted),
            sets.eq(accepted & decode.is_chain),
            self.busy.eq((running & ~halted) | fetch.busy | writer.runs.valid),
        ]
        m.d.sync += [
            self.done.eq(finished | sets),
            completed.eq(completed + (finished | sets)),
        ]
        with m.If(running):
            m.d.sync += [passed.eq(passes), stored.eq(stores), reduced.eq(reduces)]
        with m.If(finished):
            m.d.sync += running.eq(0)
        with m.If(sets):
            m.d.sync += chain.eq(decode.new_chain)
        with m.If(start):
            m.d.sync += [
                job.eq(decode.job),
                running.eq(1),
                passed.eq(decode.job.topk),
                stored.eq(decode.job.topk | (chain.store == Store.NONE)),
                reduced.eq(~decode.job.topk & (chain.reduction == Reduction.NONE)),
            ]
        with m.If(self.command.valid & self.command.ready & (decode.fault.kind != Fault.NONE)):
            m.d.sync += [
                self.fault.kind.eq(decode.fault.kind),
                self.fault.field.eq(decode.fault.field),
                self.fault.number.eq(completed),
            ]
        for part in (store, words, writer, fetch):
            with m.If(part.outside & running & ~halted):
                m.d.sync += [
                    self.fault.kind.eq(Fault.ADDRESS),
                    self.fault.address.eq(part.outside_address),
                    self.fault.number.eq(completed),
                ]
