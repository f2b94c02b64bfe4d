"""Sums of powers of two, relative to the largest whole exponent of a row."""

from __future__ import annotations

import itertools
from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import shift_right
from poblano.arith.fp32_round import Fp32Round
from poblano.commands import ADDRESS_WIDTH
from poblano.component import Component, once
from poblano.vector.beat import beat_layout, present_lanes
from poblano.vector.power_argument import PARTS_EXPONENT_WIDTH
from poblano_golden.elementary import POWER_BITS
from poblano_golden.reductions import POWER_SUM_BITS
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["PowerSum", "power_layout"]

_TERM_WIDTH = POWER_SUM_BITS + 1
_LEAST = -(1 << POWER_BITS)


def power_layout() -> data.StructLayout:
    """Return a term: the parts of a power, whether it is 0 instead, or spoils the sum."""
    return data.StructLayout(
        {
            "fraction": FRACTION_BITS,
            "exponent": signed(PARTS_EXPONENT_WIDTH),
            "zero": 1,
            "spoilt": 1,
        }
    )


class PowerSum(Component):
    """Adds up rows of powers of two, bit for bit `poblano_golden.reductions.power_sum`.

    A beat a cycle, rows without a gap; the results stand `latency` cycles after the row's last
    beat. Nothing moves while `enable` is 0.

    Parameters
    ----------
    lanes:
        Terms of a beat, a power of two.

    Members
    -------
    enable:
        Time passes.
    beat, terms:
        The beat, lane 0 first.
    sum_valid, row_reference, sum, ends:
        The results of a row in binary32, and whether the row was the last.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        super().__init__(
            {
                "enable": In(1),
                "beat": In(beat_layout(lanes)),
                "terms": In(data.ArrayLayout(power_layout(), lanes)),
                "sum_valid": Out(1),
                "row_reference": Out(32),
                "sum": Out(32),
                "ends": Out(1),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a row's last beat to its results."""
        return 5

    def elaborate(self, platform: Any) -> Elaboratable:
        # Largest exponent of the beat; reference; terms shifted to it; their sum; the row's sum,
        # shifted by as much as the reference grew: a register after each.
        m = Module()
        exponent_shape = signed(PARTS_EXPONENT_WIDTH)
        flags = data.StructLayout({"valid": 1, "first": 1, "last": 1, "end": 1, "spoilt": 1})
        present = present_lanes(self.beat, self.lanes)
        marks = [Signal(flags, name=f"marks_{stage}") for stage in range(5)]
        terms = [self.terms[lane] for lane in range(self.lanes)]
        m.d.comb += [
            *(marks[0][name].eq(self.beat[name]) for name in ("valid", "first", "last", "end")),
            marks[0].spoilt.eq(
                Cat(term.spoilt & present[lane] for lane, term in enumerate(terms)).any()
            ),
        ]
        for before, after in itertools.pairwise(marks):
            m.d.sync += after.eq(before)

        exponents, numbers = [], []
        for lane, term in enumerate(terms):
            exponent = Signal(exponent_shape, name=f"exponent_{lane}")
            number = Signal(FRACTION_BITS + 1, name=f"number_{lane}")
            none = ~present[lane] | term.zero
            m.d.comb += [
                exponent.eq(Mux(none, _LEAST, term.exponent)),
                number.eq(Mux(none, 0, Cat(term.fraction, C(1, 1)))),
            ]
            exponents.append(exponent)
            numbers.append(number)
        of_beat = Signal(exponent_shape)
        m.d.sync += of_beat.eq(self._largest(m, exponents))

        reference, before = Signal(exponent_shape), Signal(exponent_shape)
        grown = Signal(PARTS_EXPONENT_WIDTH)
        m.d.comb += before.eq(Mux(marks[1].first, _LEAST, reference))
        with m.If(marks[1].valid):
            m.d.sync += reference.eq(Mux(of_beat > before, of_beat, before))
        m.d.sync += grown.eq(Mux(of_beat > before, of_beat - before, 0))

        aligned = []
        for lane in range(self.lanes):
            exponent, number = exponents[lane], numbers[lane]
            for stage in (1, 2):
                later = Signal.like(exponent, name=f"exponent_{lane}_{stage}")
                later_number = Signal.like(number, name=f"number_{lane}_{stage}")
                m.d.sync += [later.eq(exponent), later_number.eq(number)]
                exponent, number = later, later_number
            distance = Signal(PARTS_EXPONENT_WIDTH, name=f"distance_{lane}")
            m.d.comb += distance.eq(reference - exponent)
            pad = C(0, _TERM_WIDTH - len(number))
            shifted, _ = shift_right(m, Cat(pad, number), distance, f"shifted_{lane}")
            term = Signal(_TERM_WIDTH, name=f"term_{lane}")
            m.d.sync += term.eq(shifted)
            aligned.append(term)
        beat_sum = Signal(_TERM_WIDTH + self.lanes.bit_length())
        m.d.sync += beat_sum.eq(_added(aligned))

        total = Signal(ADDRESS_WIDTH + _TERM_WIDTH)
        spoilt, sum_valid, end = Signal(), Signal(), Signal()
        references = [Signal(exponent_shape, name=f"reference_{stage}") for stage in (1, 2, 3)]
        grown_late = [Signal.like(grown, name=f"grown_{stage}") for stage in (1, 2)]
        for chain, start in ((references, reference), (grown_late, grown)):
            for register in chain:
                m.d.sync += register.eq(start)
                start = register
        kept, _ = shift_right(m, total, grown_late[-1], "kept")
        with m.If(marks[4].valid):
            m.d.sync += [
                total.eq(Mux(marks[4].first, 0, kept) + beat_sum),
                spoilt.eq(marks[4].spoilt | (spoilt & ~marks[4].first)),
            ]
        m.d.sync += [sum_valid.eq(marks[4].valid & marks[4].last), end.eq(marks[4].end)]

        round_sum: Any = Fp32Round(width=len(total) + 1, exponents=range(-POWER_SUM_BITS, 1))
        round_reference: Any = Fp32Round(width=PARTS_EXPONENT_WIDTH, exponents=range(-1, 1))
        m.submodules.round_sum = once(round_sum, platform)
        m.submodules.round_reference = once(round_reference, platform)
        m.d.comb += [
            round_sum.value.eq(total),
            round_sum.exponent.eq(-POWER_SUM_BITS),
            round_sum.nan.eq(spoilt),
            round_reference.value.eq(references[-1]),
            round_reference.nan.eq(spoilt),
            self.sum.eq(round_sum.result),
            self.row_reference.eq(round_reference.result),
            self.sum_valid.eq(sum_valid),
            self.ends.eq(end),
        ]
        return EnableInserter(self.enable)(m)

    def _largest(self, m: Module, numbers: list[Value]) -> Value:
        level = 0
        while len(numbers) > 1:
            level += 1
            larger: list[Value] = []
            for place in range(len(numbers) // 2):
                left, right = numbers[2 * place : 2 * place + 2]
                result = Signal(signed(PARTS_EXPONENT_WIDTH), name=f"largest_{level}_{place}")
                m.d.comb += result.eq(Mux(left > right, left, right))
                larger.append(result)
            numbers = larger
        return numbers[0]


def _added(terms: list[Value]) -> Value:
    while len(terms) > 1:
        terms = [terms[i] + terms[i + 1] for i in range(0, len(terms), 2)]
    return terms[0]
