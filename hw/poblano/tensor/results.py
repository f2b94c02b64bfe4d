"""Rounds drained results to their format and writes them to L1."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, fifo, stream
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_to_bf16 import Fp32ToBf16
from poblano.arith.modes import operand_formats
from poblano.arith.mx_quantiser import MxQuantiser
from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.l1.line_writer import write_run_layout
from poblano.tensor.block_gatherer import BlockGatherer
from poblano.tensor.drain import step_layout
from poblano.tensor.geometry import Geometry
from poblano.tensor.job import ResultKind, job_layout
from poblano.tensor.timing import ITEM_QUEUE_DEPTH, QUANTISER_STAGES

__all__ = ["ResultPath"]


class ResultPath(Component):
    """Gathers, rounds and queues result items, and turns each into one or two byte runs.

    An item that its step emits enters the queue `poblano.tensor.timing.ITEM_LATENCY` cycles
    later. The queue holds every item that `room` allowed, so nothing here ever waits.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    job:
        The product.
    step_valid, step:
        The drain step of this cycle.
    drained:
        The FP32 values that the step reads, two cycles later.
    room:
        Whether one more item may be on its way.
    runs:
        Byte runs for a `LineWriter`: codes, then for MX results the scale.
    empty:
        No item is on its way or queued.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.geometry = geometry = Geometry(configuration)
        super().__init__(
            {
                "job": In(job_layout(configuration)),
                "step_valid": In(1),
                "step": In(step_layout(configuration)),
                "drained": In(32 * configuration.tensor.cols),
                "room": Out(1),
                "runs": Out(stream.Signature(write_run_layout(geometry.item_bytes))),
                "empty": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        item_layout = data.StructLayout(
            {
                "codes": ADDRESS_WIDTH,
                "length": range(self.geometry.item_bytes + 1),
                "data": 8 * self.geometry.item_bytes,
                "scales": ADDRESS_WIDTH,
                "scale": 8,
            }
        )
        item = Signal(item_layout)
        item_valid = Signal()
        self._form_items(m, platform, item, item_valid)

        m.submodules.queue = queue = fifo.SyncFIFO(width=item_layout.size, depth=ITEM_QUEUE_DEPTH)
        popped = Signal()
        m.d.comb += [
            queue.w_data.eq(item),
            queue.w_en.eq(item_valid),
            queue.r_en.eq(popped),
        ]
        on_way = Signal(range(ITEM_QUEUE_DEPTH + 1))
        emitted = self.step_valid & self.step.emits
        m.d.sync += on_way.eq(on_way + emitted - popped)
        m.d.comb += [self.room.eq(on_way != ITEM_QUEUE_DEPTH), self.empty.eq(on_way == 0)]

        # an item leaves as its codes and, where the format has one, its scale
        head = data.View(item_layout, queue.r_data)
        scale_turn = Signal()
        has_scale = self.job.result == ResultKind.MX
        run = self.runs.payload
        m.d.comb += [
            self.runs.valid.eq(queue.r_rdy),
            run.address.eq(Mux(scale_turn, head.scales, head.codes)),
            run.length.eq(Mux(scale_turn, 1, head.length)),
            run.data.eq(Mux(scale_turn, head.scale, head.data)),
            popped.eq(self.runs.valid & self.runs.ready & (scale_turn | ~has_scale)),
        ]
        with m.If(self.runs.valid & self.runs.ready):
            m.d.sync += scale_turn.eq(has_scale & ~scale_turn)
        return m

    def _form_items(self, m: Module, platform, item, item_valid: Signal) -> None:
        """Steps meet their values after two cycles and leave as items three stages later."""
        job = self.job
        cols = self.configuration.tensor.cols
        formats = operand_formats(self.configuration.tensor.formats)
        steps = self._delays(m)

        m.submodules.gatherer = gatherer = BlockGatherer(cols=cols)
        m.submodules.quantiser = quantiser = MxQuantiser(
            formats=tuple(fmt.name for fmt in formats), stages=QUANTISER_STAGES
        )
        m.d.comb += [
            gatherer.valid.eq(steps[2].valid),
            gatherer.takes.eq(steps[2].step.takes),
            gatherer.count.eq(steps[2].step.valid),
            gatherer.flush.eq(steps[2].step.flush),
            gatherer.values.eq(self.drained),
            quantiser.values.eq(gatherer.block),
            quantiser.format.eq(job.d_format),
            quantiser.rule.eq(job.scale_rule),
        ]

        halves = Signal(16 * cols)
        for column in range(cols):
            convert = Fp32ToBf16()
            m.submodules[f"bf16_{column}"] = once(convert, platform)
            m.d.comb += [
                convert.i.eq(self.drained.word_select(column, 32)),
                halves.word_select(column, 16).eq(convert.o),
            ]
        wide = Signal(32 * cols)
        m.d.comb += wide.eq(Mux(job.result == ResultKind.BF16, halves, self.drained))
        for stage in range(1 + QUANTISER_STAGES):
            later = Signal.like(wide, name=f"wide_{stage}")
            m.d.sync += later.eq(wide)
            wide = later

        step = steps[-1].step
        m.d.comb += [
            item_valid.eq(steps[-1].valid & step.emits),
            item.codes.eq(step.codes),
            item.scales.eq(step.scales),
            item.scale.eq(quantiser.scale),
        ]
        with m.Switch(job.result):
            with m.Case(ResultKind.FP32):
                m.d.comb += [item.data.eq(wide), item.length.eq(step.valid << 2)]
            with m.Case(ResultKind.BF16):
                m.d.comb += [item.data.eq(wide), item.length.eq(step.valid << 1)]
            with m.Default():
                m.d.comb += [
                    item.data.eq(quantiser.codes),
                    item.length.eq(Mux(job.d.wide, 32, 16)),
                ]

    def _delays(self, m: Module) -> list:
        """Return the step as it was 0, 1, 2 ... cycles ago, up to the item."""
        layout = data.StructLayout({"valid": 1, "step": self.step.shape()})
        now = Signal(layout, name="step_0")
        m.d.comb += [now.valid.eq(self.step_valid), now.step.eq(self.step)]
        steps = [now]
        for age in range(1, 4 + QUANTISER_STAGES):
            step = Signal(layout, name=f"step_{age}")
            m.d.sync += step.eq(steps[-1])
            steps.append(step)
        return steps
