"""The lanes of the vector engine side by side, with the marks of their beats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.vector.beat import beat_layout
from poblano.vector.elementary import Elementary
from poblano.vector.function_places import register_places
from poblano.vector.job import SIDES, lane_layout
from poblano.vector.lane import VectorLane
from poblano.vector.latency import NUMBER_LATENCY, parts_latency, result_latency
from poblano.vector.power_sum import power_layout

__all__ = ["VectorLanes"]


class VectorLanes(Component):
    """Takes the elements of a beat apart and sends each through a lane, a beat a cycle.

    Nothing moves while `enable` is 0. Latencies are those of `poblano.vector.latency`.

    Parameters
    ----------
    configuration:
        The slice.

    Members
    -------
    enable, chain:
        Of every lane.
    alone:
        Beats go no further than their numbers.
    beat, valid_lanes, a, b, c:
        A beat: its marks, the lanes of valid columns, the streams' bytes.
    p, q:
        The row's scalars, a cycle after the beat.
    number_beat, numbers:
        The beat and its a in binary32.
    term_beat, terms:
        The beat and the powers of two to its s1.
    result_beat, results:
        The beat and its s2.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.lanes = lanes = configuration.vector.lanes
        self.pipeline = configuration.vector.pipeline
        beat = beat_layout(lanes)
        super().__init__(
            {
                "enable": In(1),
                "chain": In(lane_layout()),
                "alone": In(1),
                "beat": In(beat),
                "valid_lanes": In(lanes),
                **{side: In(32 * lanes) for side in SIDES},
                "p": In(32),
                "q": In(32),
                "number_beat": Out(beat),
                "numbers": Out(32 * lanes),
                "term_beat": Out(beat),
                "terms": Out(data.ArrayLayout(power_layout(), lanes)),
                "result_beat": Out(beat),
                "results": Out(32 * lanes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        lanes: list[Any] = [VectorLane(pipeline=self.pipeline) for _ in range(self.lanes)]
        late_factor = self._marks(m)
        for number, lane in enumerate(lanes):
            m.submodules[f"lane_{number}"] = once(lane, platform)
            m.d.comb += [
                lane.enable.eq(self.enable),
                lane.chain.eq(self.chain),
                lane.valid.eq(self.valid_lanes[number]),
                lane.present.eq(self.beat.count > number),
                lane.p.eq(self.p),
                lane.q.eq(self.q),
                lane.neighbour.eq(lanes[number ^ 1].number),
                lane.late_factor.eq(late_factor),
                self.numbers.word_select(number, 32).eq(lane.number),
                self.results.word_select(number, 32).eq(lane.result),
                self.terms[number].fraction.eq(lane.power_fraction),
                self.terms[number].exponent.eq(lane.power_exponent),
                self.terms[number].zero.eq(lane.power_zero),
                self.terms[number].spoilt.eq(lane.power_spoilt),
            ]
            for side in SIDES:
                chunk, fmt = getattr(self, side), self.chain[f"{side}_format"]
                element = getattr(lane, side)
                with m.Switch(fmt):
                    with m.Case(0):
                        m.d.comb += element.eq(chunk.word_select(number, 32))
                    with m.Case(3):
                        m.d.comb += element.eq(chunk.word_select(number, 8))
                    with m.Default():
                        m.d.comb += element.eq(chunk.word_select(number, 16))
        return m

    def _marks(self, m: Module) -> Value:
        """Delay the marks as the lanes delay elements, and q's reciprocal as s1; return it."""
        inner = Module()
        beats = [self.beat]
        for age in range(1, result_latency(self.pipeline) + 1):
            later = Signal(self.beat.shape(), name=f"beat_{age}")
            inner.d.sync += later.eq(beats[-1])
            if age == NUMBER_LATENCY + 1:
                inner.d.sync += later.valid.eq(beats[-1].valid & ~self.alone)
            beats.append(later)
        until_s1 = self.pipeline.multiply + self.pipeline.add
        stages = min(until_s1, len(register_places(("reciprocal",))))
        inner.submodules.reciprocal = reciprocal = Elementary(
            functions=("reciprocal",), stages=stages
        )
        late_factor = Signal(32)
        m.d.comb += [
            reciprocal.x.eq(self.q),
            late_factor.eq(delayed(inner, reciprocal.result, until_s1 - stages, "reciprocal_q")),
            self.number_beat.eq(beats[NUMBER_LATENCY]),
            self.term_beat.eq(beats[parts_latency(self.pipeline)]),
            self.result_beat.eq(beats[result_latency(self.pipeline)]),
        ]
        if parts_latency(self.pipeline) == NUMBER_LATENCY:
            m.d.comb += self.term_beat.valid.eq(beats[NUMBER_LATENCY].valid & ~self.alone)
        if result_latency(self.pipeline) == NUMBER_LATENCY:
            m.d.comb += self.result_beat.valid.eq(beats[NUMBER_LATENCY].valid & ~self.alone)
        m.submodules.marks = EnableInserter(self.enable)(inner)
        return late_factor
