"""Turns beats of s2 into what is stored of them, and that into byte runs."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data, fifo, stream
from amaranth.lib.wiring import In, Out

from poblano.arith.mx_quantiser import MxQuantiser
from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.l1.line_writer import write_run_layout
from poblano.tensor.block_gatherer import BlockGatherer
from poblano.vector.beat import beat_layout, present_lanes
from poblano.vector.job import Store, chain_layout, pass_layout
from poblano.vector.timing import GATHER_STAGES, QUANTISER_STAGES, QUEUE_DEPTH
from poblano.vector.wide_round import WideRound
from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS

__all__ = ["VectorStore"]

_PLACE_WIDTH = ADDRESS_WIDTH + 1


class VectorStore(Component):
    """Rounds or quantises s2, queues the items, and turns each into byte runs.

    An item is a beat of wide numbers, or what a beat completes of MX blocks along the row; short
    blocks are filled with +0. A wide item enters the queue with its beat, an MX item
    `GATHER_STAGES + QUANTISER_STAGES` cycles later; its first run is offered in the next cycle.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    start, new_job:
        Begins a pass.
    job, chain:
        The same pass from the next cycle on, and its chain.
    enable:
        Time passes for beats.
    beat, values:
        A beat of s2; taken if something is stored.
    room:
        The queue is not full.
    runs:
        Byte runs: of an MX block its codes, then its scale.
    outside, outside_address:
        The next run begins past every address; it is not offered.
    ended:
        The last run of the pass is accepted.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.lanes = lanes = configuration.vector.lanes
        self.blocks = max(1, lanes // BLOCK_SIZE)
        self.most = max(4 * lanes, BLOCK_SIZE)
        super().__init__(
            {
                "start": In(1),
                "new_job": In(pass_layout()),
                "job": In(pass_layout()),
                "chain": In(chain_layout()),
                "enable": In(1),
                "beat": In(beat_layout(lanes)),
                "values": In(32 * lanes),
                "room": Out(1),
                "runs": Out(stream.Signature(write_run_layout(self.most))),
                "outside": Out(1),
                "outside_address": Out(_PLACE_WIDTH),
                "ended": Out(1),
            }
        )
        self.item_layout = data.StructLayout(
            {
                "count": range(lanes + 1),
                "last": 1,
                "end": 1,
                "data": 8 * self.most,
                "scales": 8 * self.blocks,
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFO(width=self.item_layout.size, depth=QUEUE_DEPTH)
        wide, wide_valid = self._wide(m, platform)
        blocks, blocks_valid = self._blocks(m, platform)
        is_mx = self.chain.store == Store.MX
        item = Signal(self.item_layout)
        m.d.comb += [
            item.eq(Mux(is_mx, blocks, wide)),
            queue.w_data.eq(item),
            queue.w_en.eq(Mux(is_mx, blocks_valid, wide_valid) & self.enable),
            self.room.eq(queue.w_rdy),
        ]
        self._write(m, data.View(self.item_layout, queue.r_data), queue.r_rdy, queue.r_en)
        return m

    def _wide(self, m: Module, platform: Any) -> tuple[Any, Value]:
        rounding: Any = WideRound(lanes=self.lanes)
        m.submodules.rounding = once(rounding, platform)
        item = Signal(self.item_layout, name="wide")
        m.d.comb += [
            rounding.values.eq(self.values),
            rounding.format.eq(self.chain.d_format),
            item.count.eq(self.beat.count),
            item.last.eq(self.beat.last),
            item.end.eq(self.beat.end),
            item.data.eq(rounding.packed),
        ]
        return item, self.beat.valid & (self.chain.store == Store.WIDE)

    def _blocks(self, m: Module, platform: Any) -> tuple[Any, Value]:
        """Gather the values of a block or more, and quantise them."""
        beat, lanes = self.beat, self.lanes
        valid = beat.valid & (self.chain.store == Store.MX)
        numbers: list[Value] = []
        completes = Signal()
        inner = Module()
        if lanes < BLOCK_SIZE:
            beats = BLOCK_SIZE // lanes
            inner.submodules.gatherer = gatherer = BlockGatherer(cols=lanes)
            place = Signal(range(beats))
            m.d.comb += [
                gatherer.valid.eq(valid),
                gatherer.takes.eq(1),
                gatherer.count.eq(beat.count),
                gatherer.flush.eq(beat.last),
                gatherer.values.eq(self.values),
                completes.eq(valid & (beat.last | (place == beats - 1))),
            ]
            with inner.If(valid):
                inner.d.sync += place.eq(Mux(completes, 0, place + 1))
            numbers.append(gatherer.block)
        else:
            present = present_lanes(beat, lanes)
            gathered = Signal(32 * lanes, reset_less=True)
            inner.d.sync += gathered.eq(
                Cat(Mux(present[i], self.values.word_select(i, 32), 0) for i in range(lanes))
            )
            m.d.comb += completes.eq(valid)
            numbers += [gathered.word_select(i, 32 * BLOCK_SIZE) for i in range(self.blocks)]

        item = Signal(self.item_layout, name="quantised")
        names = tuple(MX_FORMATS)
        codes: list[Value] = []
        scales: list[Value] = []
        for number, block in enumerate(numbers):
            quantiser: Any = MxQuantiser(formats=names, stages=QUANTISER_STAGES)
            inner.submodules[f"quantiser_{number}"] = quantiser
            m.d.comb += [
                quantiser.values.eq(block),
                quantiser.format.eq(self.chain.d_format),
                quantiser.rule.eq(self.chain.scale_rule),
            ]
            codes.append(quantiser.codes)
            scales.append(quantiser.scale)
        marks = Cat(completes, beat.count, beat.last, beat.end)
        for stage in range(GATHER_STAGES + QUANTISER_STAGES):
            later = Signal(len(marks), name=f"marks_{stage}")
            inner.d.sync += later.eq(marks)
            marks = later
        m.submodules.blocks = EnableInserter(self.enable)(inner)
        width = len(beat.count)
        m.d.comb += [
            item.count.eq(marks[1 : 1 + width]),
            item.last.eq(marks[1 + width]),
            item.end.eq(marks[2 + width]),
            item.data.eq(Cat(codes)),
            item.scales.eq(Cat(scales)),
        ]
        return item, marks[0]

    def _write(self, m: Module, head: Any, valid: Value, pops: Value) -> None:
        """Offer the runs of the first item, each at its place."""
        job, new, chain = self.job, self.new_job, self.chain
        is_mx = chain.store == Store.MX
        size_shift = Signal(2)
        m.d.comb += size_shift.eq(Mux(chain.d_format == 0, 2, Mux(chain.d_format == 3, 0, 1)))
        block_bytes = Mux(chain.d_nibbles, BLOCK_SIZE // 2, BLOCK_SIZE)

        codes, codes_row, scales, scales_row = (
            Signal(_PLACE_WIDTH, name=name)
            for name in ("codes", "codes_row", "scales", "scales_row")
        )
        next_codes_row, next_scales_row = Signal(_PLACE_WIDTH), Signal(_PLACE_WIDTH)
        block = Signal(range(max(2, self.blocks)))
        scale_turn, last_block, taken = Signal(), Signal(), Signal()
        last_run = Signal()
        run = self.runs.payload
        place = Mux(scale_turn, scales, codes)
        if self.blocks > 1:
            m.d.comb += last_block.eq(head.count <= ((block + 1) << 5))
        else:
            m.d.comb += last_block.eq(1)
        m.d.comb += [
            self.outside.eq(valid & place[-1]),
            self.outside_address.eq(place),
            self.runs.valid.eq(valid & ~place[-1]),
            taken.eq(self.runs.valid & self.runs.ready),
            run.address.eq(place),
            last_run.eq(~is_mx | (scale_turn & last_block)),
            pops.eq(taken & last_run),
            self.ended.eq(pops & head.end),
            next_codes_row.eq(codes_row + Mux(is_mx, block_bytes, job.d_code_stride)),
            next_scales_row.eq(scales_row + 1),
        ]
        with m.If(scale_turn):
            m.d.comb += [run.length.eq(1), run.data.eq(head.scales.word_select(block, 8))]
        with m.Elif(is_mx):
            m.d.comb += [run.length.eq(block_bytes), run.data.eq(self._codes(m, head.data, block))]
        with m.Else():
            m.d.comb += [run.length.eq(head.count << size_shift), run.data.eq(head.data)]

        with m.If(taken):
            m.d.sync += scale_turn.eq(is_mx & ~scale_turn)
            with m.If(is_mx & scale_turn):
                m.d.sync += [
                    block.eq(Mux(last_block, 0, block + 1)),
                    codes.eq(codes + job.d_code_stride),
                    scales.eq(scales + job.d_scale_stride),
                ]
            with m.If(~is_mx):
                m.d.sync += codes.eq(codes + (C(self.lanes) << size_shift))
            with m.If(last_run & head.last):
                m.d.sync += [
                    codes.eq(next_codes_row),
                    codes_row.eq(next_codes_row),
                    scales.eq(next_scales_row),
                    scales_row.eq(next_scales_row),
                ]
        with m.If(self.start):
            m.d.sync += [
                codes.eq(new.d_codes),
                codes_row.eq(new.d_codes),
                scales.eq(new.d_scales),
                scales_row.eq(new.d_scales),
                block.eq(0),
                scale_turn.eq(0),
            ]

    def _codes(self, m: Module, codes: Value, block: Value) -> Value:
        """Return the codes of one of the blocks."""
        bits = 8 * BLOCK_SIZE
        if self.blocks == 1:
            return codes[:bits]
        return codes.word_select(block, bits)
