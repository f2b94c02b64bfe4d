"""The exact dot product of two MX blocks."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages, delayed
from poblano.arith.four_bit_sum import four_bit_sum
from poblano.arith.lane_sum import lane_sum
from poblano.arith.lanes import LanePlan
from poblano.arith.operand import operand_layout
from poblano.arith.structure import FourBitStructure, load_structure
from poblano.component import Component

__all__ = ["DotProduct"]

_STRUCTURE = "dot32_mxfp4"
"""The structure of units that take four-bit elements alone."""


class DotProduct(Component):
    """Multiplies the lanes of two operands and sums them exactly over the beats of a block.

    Latency `multiply_stages + sum_stages` cycles from the last beat; one beat a cycle; no
    backpressure. Beats of a block may have gaps between them, other blocks' beats may not come
    between them.

    Parameters
    ----------
    formats:
        Format pairs of the unit.
    multiply_stages, sum_stages:
        Registers, 0 or 1, after the multipliers and after the sum.
    structure:
        Gates and adders of a unit whose every element has four bits; None is the one of
        `constraints/structures`. Other units have none.

    Members
    -------
    a, b:
        The operands' lanes.
    mode:
        Index into `modes(formats)`.
    first, last, valid:
        Whether this beat is the first and the last of its block, and whether there is a beat.
    sum, exponent:
        The block's dot product, exact: sum * 2**exponent.
    nan:
        An element or a scale of the block was NaN, or infinities met their match.
    infinity, infinity_sign:
        Where a format has infinities: the dot product is infinite, with this sign.
    sum_valid:
        The block's last beat was presented a latency ago.

    Raises
    ------
    ValueError
        If a number of stages is not 0 or 1.
    """

    def __init__(
        self,
        *,
        formats: tuple[str, ...],
        multiply_stages: int = 0,
        sum_stages: int = 0,
        structure: FourBitStructure | None = None,
    ) -> None:
        self.plan = LanePlan(formats)
        self.structure = structure
        self.multiply_stages = checked_stages("multiply_stages", multiply_stages, 1)
        self.sum_stages = checked_stages("sum_stages", sum_stages, 1)
        layout = operand_layout(formats)
        infinity = {"infinity": Out(1), "infinity_sign": Out(1)} if self.plan.has_infinity else {}
        super().__init__(
            {
                "a": In(layout),
                "b": In(layout),
                "mode": In(self.plan.mode_width),
                "first": In(1),
                "last": In(1),
                "valid": In(1),
                "sum": Out(signed(self.plan.sum_width)),
                "exponent": Out(Shape.cast(self.plan.sum_exponent_range)),
                "nan": Out(1),
                **infinity,
                "sum_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        early, late = self.multiply_stages, self.sum_stages
        valid, last = self._controls(m, Cat(self.valid, self.last), early, "at_sum")
        first = delayed(m, self.first, early, "first_at_sum")
        if self.plan.four_bit_only:
            structure = self.structure or load_structure(_STRUCTURE)
            total = four_bit_sum(m, structure, self.a, self.b, early)
            m.d.comb += self.sum.eq(delayed(m, total, late, "sum"))
        else:
            words = lane_sum(m, self.plan, self.a, self.b, self.mode)
            beat = [delayed(m, word, early, f"beat_{k}") for k, word in enumerate(words)]
            partial = Signal.like(self.sum, reset_less=True)
            held, total = Signal(len(self.sum)), Signal.like(self.sum)
            m.d.comb += [
                held.eq(Mux(first, 0, partial)),
                total.eq(held + beat[0] + beat[1]),
            ]
            with m.If(valid):
                m.d.sync += partial.eq(total)
            m.d.comb += self.sum.eq(partial if late else total)

        exponent = Signal.like(self.exponent)
        m.d.comb += [
            exponent.eq(self.a.exponent + self.b.exponent),
            self.exponent.eq(delayed(m, exponent, early + late, "exponent")),
            self.sum_valid.eq(self._controls(m, valid & last, late, "at_end")[0]),
        ]
        self._special(m, valid, first)
        return m

    def _controls(self, m: Module, bits: Value, cycles: int, name: str) -> Value:
        """Delay control bits by registers that reset to 0."""
        value = bits
        for cycle in range(cycles):
            register = Signal(len(bits), name=f"{name}_{cycle + 1}")
            m.d.sync += register.eq(value)
            value = register
        return value

    def _special(self, m: Module, valid: Value, first: Value) -> None:
        """Gather what makes the block's result NaN or infinite, over its beats."""
        nan, positive, negative = Signal(), C(0, 1), C(0, 1)
        m.d.comb += nan.eq(self.a.nan | self.b.nan)
        if self.plan.has_infinity:
            sign = (self.a.sign ^ self.b.sign)[::2]
            infinite, invalid = Signal(len(sign)), Signal(len(sign))
            positive = Signal()
            negative = Signal()
            m.d.comb += [
                infinite.eq(self.a.infinity | self.b.infinity),
                invalid.eq((self.a.infinity & self.b.zero) | (self.b.infinity & self.a.zero)),
                nan.eq(self.a.nan | self.b.nan | invalid.any()),
                positive.eq((infinite & ~sign).any()),
                negative.eq((infinite & sign).any()),
            ]
        beat = delayed(m, Cat(nan, positive, negative), self.multiply_stages, "special_beat")
        block = Signal(len(beat))
        if self.plan.largest_beats == 1:
            m.d.comb += block.eq(beat)
            out = delayed(m, block, self.sum_stages, "special")
        else:
            partial = Signal(len(beat), reset_less=True)
            m.d.comb += block.eq(beat | Mux(first, 0, partial))
            with m.If(valid):
                m.d.sync += partial.eq(block)
            out = partial if self.sum_stages else block
        nan, positive, negative = out
        if self.plan.has_infinity:
            m.d.comb += [
                self.nan.eq(nan | (positive & negative)),
                self.infinity.eq(positive | negative),
                self.infinity_sign.eq(negative),
            ]
        else:
            m.d.comb += self.nan.eq(nan)
