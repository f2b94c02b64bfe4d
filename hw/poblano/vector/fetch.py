"""Reads the streams, row scalars and indices of a pass, and emits its beats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import *
from amaranth.lib import enum, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.config import SliceConfiguration
from poblano.vector.beat import beat_layout
from poblano.vector.job import SIDES, chain_layout, pass_layout
from poblano.vector.landing import SCALARS, Landing
from poblano.vector.write_debt import WriteDebt

__all__ = ["VectorFetch"]

_PLACE_WIDTH = ADDRESS_WIDTH + 1
_COLUMN_WIDTH = ADDRESS_WIDTH + 11
"""Bits of a signed limit of columns: 65535 steps of 65535 on top of an address."""


class _Phase(enum.Enum, shape=3):
    IDLE = 0
    RUN = 1
    WAIT = 2
    INDEX = 3
    INDEX_COMES = 4
    MULTIPLY = 5
    ADD = 6


@dataclass
class _Stream:
    """A stream's registers: the lines of its next bytes, and the line that was read last."""

    name: str
    active: Value
    first: Value
    last: Value
    offset: Value
    held: Signal
    held_valid: Signal
    done: Signal

    @property
    def has_first(self) -> Value:
        return self.held_valid & (self.held == self.first)

    @property
    def whole(self) -> Value:
        """One more line at most makes the bytes whole."""
        return self.has_first | (self.last == self.first)

    @property
    def reads(self) -> Value:
        """A line is missing."""
        return self.active & ~self.done & ~(self.has_first & (self.last == self.first))


class VectorFetch(Component):
    """Emits the beats of a pass: one a cycle if no more than a line must be read for each.

    Every stream keeps the line that it read last, so that its cost is that of its lines; lines are
    read in the order p, q, a, b, c, and a beat is emitted with its last one. Rows follow without a
    gap; a row by index begins five cycles after the one before, with what is left of the index's
    reading. A beat waits until the writes that the beats before it cause are nearly done.
    `poblano.vector.timing` says when each is emitted; its bytes are there two cycles later.

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
        Time passes for the beats that were emitted.
    halted:
        Nothing new is read.
    next_round, first_round:
        The next round of a topk may begin; it is the first of its row.
    read, read_data:
        L1's read port.
    beat, valid_lanes, a, b, c:
        A beat: its marks, which lanes hold valid columns, its bytes.
    p, q:
        The row's scalars in the cycle after, canonical.
    outside, outside_address:
        What is to be read lies outside L1; it is not read.
    busy:
        Beats are left, or a read is offered.
    """

    def __init__(self, *, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        line = configuration.l1.line
        self.lines = configuration.l1.size // line
        self.lanes = lanes = configuration.vector.lanes
        super().__init__(
            {
                "start": In(1),
                "new_job": In(pass_layout()),
                "job": In(pass_layout()),
                "chain": In(chain_layout()),
                "enable": In(1),
                "halted": In(1),
                "next_round": In(1),
                "first_round": Out(1),
                "read": Out(stream.Signature(max(1, (self.lines - 1).bit_length()))),
                "read_data": In(8 * line),
                "beat": Out(beat_layout(lanes)),
                "valid_lanes": Out(lanes),
                **{side: Out(32 * lanes) for side in SIDES},
                **{name: Out(32) for name in SCALARS},
                "outside": Out(1),
                "outside_address": Out(40),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        line = self.configuration.l1.line
        self.offset_width = (line - 1).bit_length()
        self.phase = Signal(_Phase)
        self.index_at = Signal(_PLACE_WIDTH)
        landing: Any = Landing(line=line, lanes=self.lanes)
        debt: Any = WriteDebt(lanes=self.lanes)
        m.submodules.landing = once(landing, platform)
        m.submodules.write_debt = once(debt, platform)
        m.d.comb += [
            landing.enable.eq(self.enable),
            landing.read_data.eq(self.read_data),
            landing.index_word.eq(self.index_at[2 : self.offset_width]),
            debt.chain.eq(self.chain),
            debt.topk.eq(self.job.topk),
            debt.straddles.eq(self.job.straddles),
            *(
                getattr(self, name).eq(getattr(landing, name))
                for name in ("beat", "valid_lanes", *SIDES, *SCALARS)
            ),
        ]
        walk = self._walk(m, landing.step)
        m.d.comb += [
            debt.emits.eq(walk["emits"]),
            debt.last.eq(walk["last"]),
        ]
        if debt.has_count:
            m.d.comb += debt.count.eq(walk["count"])
        streams = self._streams(m, walk, landing.index)
        self._request(m, walk, streams, landing, debt.room)
        return m

    # ---- where the walk is

    def _walk(self, m: Module, step: Any) -> dict[str, Any]:
        """Rows, beats and columns: registers, and what the next emission makes of them."""
        job, new, lanes = self.job, self.new_job, self.lanes
        rows_left, round_ = Signal(job.rows.shape()), Signal(8)
        left, count = Signal(ADDRESS_WIDTH), Signal(range(lanes + 1))
        first = Signal()
        row_high, high = Signal(signed(_COLUMN_WIDTH)), Signal(signed(_COLUMN_WIDTH))
        last, repeats, end, emits = Signal(), Signal(), Signal(), Signal()
        next_left, next_count = Signal(ADDRESS_WIDTH), Signal(range(lanes + 1))
        m.d.comb += [
            last.eq(left <= lanes),
            repeats.eq(job.topk & (round_ != job.rounds)),
            self.first_round.eq(round_ == 1),
            end.eq(last & (rows_left == 1) & ~repeats),
            next_left.eq(Mux(last, job.cols, left - lanes)),
            next_count.eq(_at_most(next_left, lanes)),
        ]
        with m.If(emits):
            m.d.sync += [
                first.eq(last),
                left.eq(next_left),
                count.eq(next_count),
                high.eq(high - lanes),
            ]
            with m.If(last):
                m.d.sync += [round_.eq(Mux(repeats, round_ + 1, 1)), high.eq(row_high)]
                with m.If(~repeats):
                    m.d.sync += [
                        rows_left.eq(rows_left - 1),
                        high.eq(row_high + job.limit_step),
                        row_high.eq(row_high + job.limit_step),
                    ]
                with m.If(job.topk):
                    m.d.sync += self.phase.eq(_Phase.WAIT)
                with m.Elif(self.chain.indexed):
                    m.d.sync += self.phase.eq(_Phase.INDEX)
                with m.If(end):
                    m.d.sync += self.phase.eq(_Phase.IDLE)
        with m.If((self.phase == _Phase.WAIT) & self.next_round):
            m.d.sync += self.phase.eq(_Phase.RUN)
        with m.If(self.start):
            m.d.sync += [
                self.phase.eq(Mux(self.chain.indexed & ~new.topk, _Phase.INDEX, _Phase.RUN)),
                first.eq(1),
                rows_left.eq(new.rows),
                round_.eq(1),
                left.eq(new.cols),
                count.eq(_at_most(new.cols, lanes)),
                row_high.eq(new.limit),
                high.eq(new.limit),
            ]
        low = high - job.window
        m.d.comb += [
            step.emits.eq(emits),
            step.beat.valid.eq(emits),
            step.beat.first.eq(first),
            step.beat.last.eq(last),
            step.beat.end.eq(end),
            step.beat.count.eq(count),
            step.high.eq(Mux(job.topk, lanes, _clamped(high, lanes))),
            step.low.eq(Mux(job.window.any() & ~job.topk, _clamped(low, lanes), 0)),
        ]
        return {
            "emits": emits,
            "first": first,
            "last": last,
            "repeats": repeats,
            "count": count,
            "next_count": next_count,
            "new_count": _at_most(new.cols, lanes),
        }

    def _streams(self, m: Module, walk: dict[str, Any], index: Value) -> list[_Stream]:
        """The places of every stream."""
        job, new, chain = self.job, self.new_job, self.chain
        line_width = _PLACE_WIDTH - self.offset_width
        streams: list[_Stream] = []

        def stream_of(name: str, active: Value, at: Value, last: Value) -> None:
            streams.append(
                _Stream(
                    name,
                    active,
                    at[self.offset_width :],
                    last,
                    at[: self.offset_width],
                    Signal(line_width, name=f"{name}_held"),
                    Signal(name=f"{name}_held_valid"),
                    Signal(name=f"{name}_done"),
                )
            )

        for name in SCALARS:
            at = Signal(_PLACE_WIDTH, name=f"{name}_at")
            with m.If(walk["emits"] & walk["last"]):
                m.d.sync += at.eq(at + 4)
            with m.If(self.start):
                m.d.sync += at.eq(new[name])
            active = chain[f"reads_{name}"] & ~job.topk & walk["first"]
            stream_of(name, active, at, at[self.offset_width :])

        for side in SIDES:
            shift, new_shift = Signal(2, name=f"{side}_shift"), Signal(2, name=f"{side}_new_shift")
            given = (
                (job.a_format, new.a_format) if side == "a" else 2 * (chain.lane[f"{side}_format"],)
            )
            m.d.comb += [shift.eq(_size_shift(given[0])), new_shift.eq(_size_shift(given[1]))]
            at, base = (Signal(_PLACE_WIDTH, name=f"{side}_{part}") for part in ("at", "base"))
            next_at, next_base = (
                Signal(_PLACE_WIDTH, name=f"{side}_next_{part}") for part in ("at", "base")
            )
            last, next_end = Signal(line_width, name=f"{side}_last"), Signal(_PLACE_WIDTH + 1)
            m.d.comb += [
                next_base.eq(base + Mux(walk["repeats"], 0, job[f"{side}_row_stride"])),
                next_at.eq(Mux(walk["last"], next_base, at + (C(self.lanes) << shift))),
                next_end.eq(next_at + (walk["next_count"] << shift) - 1),
            ]
            with m.If(walk["emits"]):
                m.d.sync += [at.eq(next_at), last.eq(next_end[self.offset_width :])]
                with m.If(walk["last"]):
                    m.d.sync += base.eq(next_base)
            with m.If(self.start):
                end = Signal(_PLACE_WIDTH, name=f"{side}_new_end")
                m.d.comb += end.eq(new[side] + (walk["new_count"] << new_shift) - 1)
                m.d.sync += [
                    at.eq(new[side]),
                    base.eq(new[side]),
                    last.eq(end[self.offset_width :]),
                ]
            if side == "a":
                self._place_by_index(m, at, last, walk["count"], shift, index)
            active = C(1, 1) if side == "a" else chain[f"reads_{side}"] & ~job.topk
            stream_of(side, active, at, last)
        return streams

    def _place_by_index(
        self, m: Module, at: Value, last: Value, count: Value, shift: Value, index: Value
    ) -> None:
        """The row's place in a: its index times the stride, added to the base a cycle later."""
        job = self.job
        product, place = Signal(32 + ADDRESS_WIDTH), Signal(33 + ADDRESS_WIDTH)
        end = Signal(_PLACE_WIDTH)
        self.index_outside, self.index_place = Signal(), place
        m.d.comb += [
            place.eq(product + job.a),
            end.eq(place[:ADDRESS_WIDTH] + (count << shift) - 1),
        ]
        with m.If(self.start):
            m.d.sync += self.index_at.eq(self.new_job.index)
        with m.If(self.phase == _Phase.MULTIPLY):
            m.d.sync += [
                product.eq(index * job.a_row_stride),
                self.index_at.eq(self.index_at + 4),
                self.phase.eq(_Phase.ADD),
            ]
        with m.If((self.phase == _Phase.ADD) & ~self.halted):
            m.d.comb += self.index_outside.eq(place[ADDRESS_WIDTH:].any())
            m.d.sync += [
                at.eq(place[:ADDRESS_WIDTH]),
                last.eq(end[self.offset_width :]),
            ]
            with m.If(~self.index_outside):
                m.d.sync += self.phase.eq(_Phase.RUN)

    # ---- what is read in a cycle

    def _request(
        self, m: Module, walk: dict[str, Any], streams: list[_Stream], landing: Any, room: Value
    ) -> None:
        """Ask for the next line that the beat lacks; emit the beat with the last one."""
        step, emits = landing.step, walk["emits"]
        runs, asks_index = Signal(), Signal()
        reads = Signal(len(streams))
        chosen = Signal(len(streams))
        m.d.comb += [
            runs.eq(self.phase == _Phase.RUN),
            asks_index.eq(self.phase == _Phase.INDEX),
            reads.eq(Cat(item.reads for item in streams)),
            chosen.eq(reads & -reads),
        ]
        line = Signal(_PLACE_WIDTH - self.offset_width)
        whole, final = Signal(), Signal()
        for number, item in enumerate(streams):
            with m.If(chosen[number]):
                m.d.comb += [
                    line.eq(Mux(item.has_first, item.last, item.first)),
                    whole.eq(item.whole),
                ]
        with m.If(asks_index):
            m.d.comb += line.eq(self.index_at[self.offset_width :])
        m.d.comb += final.eq(~(reads & ~chosen).any() & (whole | ~reads.any()))

        offered, goes, wants, inside, accepted = (Signal() for _ in range(5))
        m.d.comb += [
            goes.eq((~self.halted | offered) & landing.ready),
            wants.eq((runs & reads.any() & (~final | room)) | asks_index),
            inside.eq(line < self.lines),
            self.read.valid.eq(goes & wants & inside),
            self.read.payload.eq(line),
            accepted.eq(self.read.valid & self.read.ready),
            walk["emits"].eq(runs & final & room & goes & Mux(reads.any(), accepted, C(1, 1))),
            landing.step_valid.eq(accepted | emits),
            landing.reads.eq(accepted),
            step.index.eq(asks_index),
            self.outside.eq((goes & wants & ~inside) | self.index_outside),
            self.outside_address.eq(
                Mux(self.index_outside, self.index_place, line << self.offset_width)
            ),
            self.busy.eq((self.phase != _Phase.IDLE) & ~(self.halted & ~offered)),
        ]
        m.d.sync += offered.eq(self.read.valid & ~self.read.ready)
        with m.If(asks_index & accepted):
            m.d.sync += self.phase.eq(_Phase.INDEX_COMES)
        with m.If((self.phase == _Phase.INDEX_COMES) & landing.index_valid):
            m.d.sync += self.phase.eq(_Phase.MULTIPLY)

        for number, item in enumerate(streams):
            takes, makes = Signal(name=f"{item.name}_takes"), Signal(name=f"{item.name}_makes")
            part = step[f"{item.name}_step"]
            m.d.comb += [
                takes.eq(runs & accepted & chosen[number]),
                makes.eq(Mux(takes, item.whole, emits & item.active & ~item.done)),
                part.takes.eq(takes),
                part.makes.eq(makes),
                part.joins.eq(item.has_first),
                part.offset.eq(item.offset),
            ]
            with m.If(takes):
                m.d.sync += [item.held.eq(line), item.held_valid.eq(1), item.done.eq(item.whole)]
            with m.If(emits):
                m.d.sync += item.done.eq(0)
            with m.If(self.start):
                m.d.sync += [item.held_valid.eq(0), item.done.eq(0)]


def _at_most(value: Value, limit: int) -> Value:
    """Return an unsigned value, or the limit if that is smaller."""
    return Mux(value > limit, limit, value[: limit.bit_length()])


def _clamped(value: Value, limit: int) -> Value:
    """Return a signed value as one of 0 to the limit."""
    return Mux(value[-1], 0, _at_most(value.as_unsigned(), limit))


def _size_shift(number: Value) -> Value:
    """Return the logarithm of an element's bytes, of a format by its index."""
    return Mux(number == 0, 2, Mux(number == 3, 0, 1))
