"""Takes the lines that the vector engine asked for, and makes beats of them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_fields import canonical, is_nan
from poblano.component import Component, once
from poblano.vector.beat import beat_layout
from poblano.vector.job import SIDES
from poblano.vector.stream_window import StreamWindow, window_layout

__all__ = ["SCALARS", "Landing", "step_layout"]

SCALARS = "pq"
"""The row scalars."""


def step_layout(line: int, lanes: int) -> data.StructLayout:
    """Return the layout of a step: what is done with a line, if one comes, and the beat it ends.

    `index`: the line holds an index. `X_step`: see `window_layout`. `emits`: a beat is whole, its
    marks, and the lanes in which columns are valid, from `low` to before `high`.
    """
    return data.StructLayout(
        {
            "emits": 1,
            "index": 1,
            **{f"{name}_step": window_layout(line) for name in (*SIDES, *SCALARS)},
            "beat": beat_layout(lanes),
            "high": range(lanes + 1),
            "low": range(lanes + 1),
        }
    )


class Landing(Component):
    """Keeps a step until its line is there and time passes, then makes its part of a beat.

    Parameters
    ----------
    line, lanes:
        Bytes of a line, elements of a beat.

    Members
    -------
    enable:
        Time passes.
    step_valid, step, reads, ready:
        A step, taken while `ready`; with `reads` its line is on `read_data` in the next cycle.
    read_data:
        L1's lines.
    index_word, index_valid, index:
        The word of a line that an index is; the index, in the cycle after it came.
    beat, valid_lanes, a, b, c:
        A beat: its marks, which lanes hold valid columns, its bytes.
    p, q:
        The row's scalars in the cycle after, canonical.
    """

    def __init__(self, *, line: int, lanes: int) -> None:
        self.line = line
        self.lanes = lanes
        super().__init__(
            {
                "enable": In(1),
                "step_valid": In(1),
                "step": In(step_layout(line, lanes)),
                "reads": In(1),
                "ready": Out(1),
                "read_data": In(8 * line),
                "index_word": In((line // 4 - 1).bit_length()),
                "index_valid": Out(1),
                "index": Out(32),
                "beat": Out(beat_layout(lanes)),
                "valid_lanes": Out(lanes),
                **{side: Out(32 * lanes) for side in SIDES},
                **{name: Out(32) for name in SCALARS},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        step, held = Signal(self.step.shape()), Signal()
        fresh, moves = Signal(), Signal()
        kept, arrived = Signal(8 * self.line, reset_less=True), Signal(8 * self.line)
        m.d.comb += [
            self.ready.eq(~held | self.enable),
            moves.eq(held & self.enable),
            arrived.eq(Mux(fresh, self.read_data, kept)),
            self.index_valid.eq(moves & step.index),
        ]
        m.d.sync += fresh.eq(self.reads)
        with m.If(fresh):
            m.d.sync += kept.eq(self.read_data)
        with m.If(self.step_valid):
            m.d.sync += [step.eq(self.step), held.eq(1)]
        with m.Elif(moves):
            m.d.sync += held.eq(0)

        self._streams(m, platform, step, held, arrived)
        for name in SCALARS:
            self._scalar(m, name, step[f"{name}_step"], moves, arrived)
        with m.If(self.index_valid):
            m.d.sync += self.index.eq(arrived.word_select(self.index_word, 32))
        with m.If(self.enable):
            m.d.sync += [
                self.beat.eq(step.beat),
                self.beat.valid.eq(held & step.emits),
                self.valid_lanes.eq(
                    Cat((step.high > lane) & (step.low <= lane) for lane in range(self.lanes))
                ),
            ]
        return m

    def _streams(self, m: Module, platform: Any, step: Any, held: Value, arrived: Value) -> None:
        for side in SIDES:
            window: Any = StreamWindow(line=self.line, most=4 * self.lanes)
            m.submodules[f"window_{side}"] = once(window, platform)
            part = step[f"{side}_step"]
            m.d.comb += [
                window.enable.eq(self.enable),
                window.step.eq(part),
                window.step.takes.eq(part.takes & held),
                window.step.makes.eq(part.makes & held),
                window.arrived.eq(arrived),
                getattr(self, side).eq(window.chunk),
            ]

    def _scalar(self, m: Module, name: str, part: Any, moves: Value, arrived: Value) -> None:
        """Hold the line of a row scalar, and give out its word a cycle late."""
        line = Signal(8 * self.line, name=f"{name}_line", reset_less=True)
        word, early = Signal(32, name=f"{name}_word"), Signal(32, name=f"{name}_early")
        m.d.comb += word.eq(Mux(part.joins, line, arrived).word_select(part.offset[2:], 32))
        with m.If(moves & part.takes):
            m.d.sync += line.eq(arrived)
        with m.If(moves & part.makes):
            m.d.sync += early.eq(canonical(word, is_nan(word)))
        with m.If(self.enable):
            m.d.sync += getattr(self, name).eq(early)
