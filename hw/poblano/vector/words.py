"""Writes the reductions of rows, one or two words a row."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data, fifo, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.l1.line_writer import write_run_layout
from poblano.vector.job import pass_layout
from poblano.vector.timing import QUEUE_DEPTH

__all__ = ["WordWriter", "words_layout"]

_PLACE_WIDTH = ADDRESS_WIDTH + 1


def words_layout() -> data.StructLayout:
    """Return a row's words, whether there are two, and whether the row is the last."""
    return data.StructLayout({"first": 32, "second": 32, "two": 1, "end": 1})


class WordWriter(Component):
    """Queues the words of rows and turns them into byte runs at two places that move on.

    A run is offered in the cycle after its row's words came.

    Parameters
    ----------
    most:
        The longest run in bytes of the writer behind it, at least four.

    Members
    -------
    start, new_job:
        Begins a pass, whose `r` and `r2` are the places of the first and the second word.
    words_valid, words:
        A row.
    room:
        The queue is not full.
    runs:
        Byte runs.
    outside, outside_address:
        The next word lies past every address; it is not offered.
    ended:
        The last word of the pass is accepted.
    """

    def __init__(self, *, most: int) -> None:
        super().__init__(
            {
                "start": In(1),
                "new_job": In(pass_layout()),
                "words_valid": In(1),
                "words": In(words_layout()),
                "room": Out(1),
                "runs": Out(stream.Signature(write_run_layout(most))),
                "outside": Out(1),
                "outside_address": Out(_PLACE_WIDTH),
                "ended": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        layout = words_layout()
        m.submodules.queue = queue = fifo.SyncFIFO(width=layout.size, depth=QUEUE_DEPTH)
        head = data.View(layout, queue.r_data)
        first_place, second_place = Signal(_PLACE_WIDTH), Signal(_PLACE_WIDTH)
        second, taken = Signal(), Signal()
        place = Mux(second, second_place, first_place)
        m.d.comb += [
            queue.w_data.eq(self.words),
            queue.w_en.eq(self.words_valid),
            self.room.eq(queue.w_rdy),
            self.outside.eq(queue.r_rdy & place[-1]),
            self.outside_address.eq(place),
            self.runs.valid.eq(queue.r_rdy & ~place[-1]),
            self.runs.payload.address.eq(place),
            self.runs.payload.length.eq(4),
            self.runs.payload.data.eq(Mux(second, head.second, head.first)),
            taken.eq(self.runs.valid & self.runs.ready),
            queue.r_en.eq(taken & (second | ~head.two)),
            self.ended.eq(queue.r_en & head.end),
        ]
        with m.If(taken):
            m.d.sync += second.eq(head.two & ~second)
            with m.If(second):
                m.d.sync += second_place.eq(second_place + 4)
            with m.Else():
                m.d.sync += first_place.eq(first_place + 4)
        with m.If(self.start):
            m.d.sync += [
                first_place.eq(self.new_job.r),
                second_place.eq(self.new_job.r2),
                second.eq(0),
            ]
        return m
