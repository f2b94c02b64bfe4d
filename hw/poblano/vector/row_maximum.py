"""The largest number of a row, and its place."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component
from poblano.vector.beat import beat_layout, present_lanes

__all__ = ["RowMaximum"]


class RowMaximum(Component):
    """Finds the largest number of every row, the first among equals: -0 below +0, NaN above all.

    With `after` only what comes after a given number and place in that order counts: the next
    largest. A beat a cycle, rows without a gap; the result stands `latency` cycles after the row's
    last beat. Nothing moves while `enable` is 0.

    Parameters
    ----------
    lanes:
        Numbers of a beat, a power of two.

    Members
    -------
    enable:
        Time passes.
    beat, values:
        The beat, lane 0 lowest; a NaN is the canonical one.
    after, after_key, after_column:
        Whether only later ones count, than which; holds still while a row is inside.
    largest_valid, largest, key, column, ends:
        The number, `after_key` of it, its column, and whether its row was the last.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(
            {
                "enable": In(1),
                "beat": In(beat_layout(lanes)),
                "values": In(32 * lanes),
                "after": In(1),
                "after_key": In(signed(32)),
                "after_column": In(ADDRESS_WIDTH),
                "largest_valid": Out(1),
                "largest": Out(32),
                "key": Out(signed(32)),
                "column": Out(ADDRESS_WIDTH),
                "ends": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a row's last beat to its largest number."""
        return -(-(self.lanes.bit_length() - 1) // 2) + 1

    def elaborate(self, platform: Any) -> Elaboratable:
        # Numbers compare as integers once the magnitudes of negative ones are complemented. Two
        # levels of the tree a cycle; of equals the left one stays.
        m = Module()
        lane_bits = self.lanes.bit_length() - 1
        candidate = data.StructLayout({"counts": 1, "key": signed(32), "lane": max(1, lane_bits)})
        beat = Signal(beat_layout(self.lanes))
        base, column = Signal(ADDRESS_WIDTH), Signal(ADDRESS_WIDTH)
        m.d.comb += [beat.eq(self.beat), base.eq(Mux(beat.first, 0, column))]
        with m.If(beat.valid):
            m.d.sync += column.eq(base + self.lanes)

        present = present_lanes(self.beat, self.lanes)
        candidates: list[Any] = []
        for lane in range(self.lanes):
            value = self.values.word_select(lane, 32)
            item = Signal(candidate, name=f"lane_{lane}")
            key, later = Signal(signed(32), name=f"key_{lane}"), Signal(name=f"later_{lane}")
            place = Cat(C(lane, lane_bits), base[lane_bits:])
            m.d.comb += [
                key.eq(Cat(value[:31] ^ value[31].replicate(31), value[31])),
                later.eq(
                    (key < self.after_key) | ((key == self.after_key) & (place > self.after_column))
                ),
                item.key.eq(key),
                item.lane.eq(lane),
                item.counts.eq(present[lane] & (later | ~self.after)),
            ]
            candidates.append(item)
        level = 0
        while len(candidates) > 1:
            level += 1
            candidates = [
                _larger(m, left, right, f"tree_{level}_{number}")
                for number, (left, right) in enumerate(
                    zip(candidates[::2], candidates[1::2], strict=True)
                )
            ]
            if level % 2 == 0 or len(candidates) == 1:
                candidates = [_register(m, item) for item in candidates]
                beat, base = _register(m, beat), _register(m, base)
        winner = candidates[0]

        best, best_column = Signal(candidate), Signal(ADDRESS_WIDTH)
        better = winner.counts & (~best.counts | (winner.key > best.key))
        with m.If(beat.valid & (beat.first | better)):
            m.d.sync += [
                best.eq(winner),
                best_column.eq(Cat(winner.lane[:lane_bits], base[lane_bits:])),
            ]
        m.d.sync += [self.largest_valid.eq(beat.valid & beat.last), self.ends.eq(beat.end)]
        sign = best.key[31]
        m.d.comb += [
            self.key.eq(best.key),
            self.largest.eq(Cat(best.key[:31] ^ sign.replicate(31), sign)),
            self.column.eq(best_column),
        ]
        return EnableInserter(self.enable)(m)


def _larger(m: Module, left: Any, right: Any, name: str) -> Any:
    result = Signal(left.shape(), name=name)
    m.d.comb += result.eq(Mux(right.counts & (~left.counts | (right.key > left.key)), right, left))
    return result


def _register(m: Module, value: Any) -> Any:
    register = Signal(value.shape())
    m.d.sync += register.eq(value)
    return register
