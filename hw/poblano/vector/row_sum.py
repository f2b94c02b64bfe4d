"""Sums of rows of binary32 numbers."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.fp32_adder import Fp32Adder
from poblano.component import Component
from poblano.vector.beat import beat_layout, present_lanes

__all__ = ["RowSum"]


class RowSum(Component):
    """Adds up rows that come in beats, bit for bit `poblano_golden.reductions.total`.

    A beat a cycle, rows without a gap; a row's sum comes `latency` cycles after its last beat.
    Nothing moves while `enable` is 0.

    Parameters
    ----------
    lanes:
        Numbers of a beat, a power of two.
    stages:
        Registers of an adder, 0 to 3. There are 2**n accumulators, more than `stages`.

    Members
    -------
    enable:
        Time passes.
    beat, values:
        The beat, lane 0 lowest.
    sum_valid, sum, ends:
        The sum of a row, and whether the row was the last.

    Raises
    ------
    ValueError
        If `lanes` is no power of two.
    """

    def __init__(self, *, lanes: int, stages: int) -> None:
        if lanes < 1 or lanes & (lanes - 1):
            raise ValueError(f"lanes must be a power of two, not {lanes}")
        self.lanes = lanes
        self.stages = stages
        self.ways = 1 << stages.bit_length()
        super().__init__(
            {
                "enable": In(1),
                "beat": In(beat_layout(lanes)),
                "values": In(32 * lanes),
                "sum_valid": Out(1),
                "sum": Out(32),
                "ends": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a row's last beat to its sum."""
        levels = (self.lanes * self.ways).bit_length() - 1
        return (levels + 1) * self.stages + 1

    def elaborate(self, platform: Any) -> Elaboratable:
        # A tree of the lanes; accumulators in turn, each used again when its addition is done; a
        # tree of the accumulators. Adders are no modules of their own, so that `enable` reaches
        # their registers.
        m = Module()
        stages, ways = self.stages, self.ways
        present = present_lanes(self.beat, self.lanes)
        values = [
            Mux(present[lane], self.values.word_select(lane, 32), 0) for lane in range(self.lanes)
        ]
        of_beat = self._tree(m, values, "lanes")
        levels = self.lanes.bit_length() - 1
        marks = Cat(self.beat.valid, self.beat.first, self.beat.last, self.beat.end)
        valid, first, last, end = self._kept(m, marks, levels * stages, "beat")

        # the beat goes to accumulator `way`, for the first time in this row unless `again`
        way, place = Signal(range(max(2, ways))), Signal(range(max(2, ways)))
        again, wrapped = Signal(), Signal()
        used = Signal(ways)
        m.d.comb += [
            place.eq(Mux(first, 0, way)),
            again.eq(wrapped & ~first),
            used.eq(Cat(C(1, 1), *(again | (place >= number) for number in range(1, ways)))),
        ]
        with m.If(valid):
            m.d.sync += [
                way.eq((place + 1)[: len(way)] if ways > 1 else 0),
                wrapped.eq(again | (place == ways - 1)),
            ]
        m.submodules.accumulate = add = Fp32Adder(stages=stages)
        accumulators = Array(Signal(32, name=f"accumulator_{number}") for number in range(ways))
        m.d.comb += [add.a.eq(Mux(again, accumulators[place], 0)), add.b.eq(of_beat)]
        written = delayed(m, place, stages, "place")
        write = self._kept(m, valid, stages, "write")[0]
        with m.If(write):
            m.d.sync += accumulators[written].eq(add.result)

        row = Cat(valid & last, end)
        row_valid, row_end = self._kept(m, row, stages + 1, "row")
        used = delayed(m, used, stages + 1, "used")
        of_row = self._tree(
            m, [Mux(used[number], accumulators[number], 0) for number in range(ways)], "ways"
        )
        done, ended = self._kept(
            m, Cat(row_valid, row_end), (ways.bit_length() - 1) * stages, "sum"
        )
        m.d.comb += [self.sum.eq(of_row), self.sum_valid.eq(done), self.ends.eq(ended)]
        return EnableInserter(self.enable)(m)

    def _tree(self, m: Module, values: list[Value], name: str) -> Value:
        """Return the sum of the values, neighbours first."""
        level = 0
        while len(values) > 1:
            level += 1
            sums: list[Value] = []
            for number in range(len(values) // 2):
                adder = Fp32Adder(stages=self.stages)
                m.submodules[f"{name}_{level}_{number}"] = adder
                m.d.comb += [adder.a.eq(values[2 * number]), adder.b.eq(values[2 * number + 1])]
                sums.append(adder.result)
            values = sums
        return values[0]

    def _kept(self, m: Module, bits: Value, cycles: int, name: str) -> Value:
        """Return bits after some cycles; they are 0 after reset."""
        for cycle in range(cycles):
            register = Signal(len(bits), name=f"{name}_{cycle + 1}")
            m.d.sync += register.eq(bits)
            bits = register
        return bits
