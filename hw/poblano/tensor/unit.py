"""One unit of the tensor engine: block dot product, rounding, accumulation."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages
from poblano.arith.dot_product import DotProduct
from poblano.arith.fp32_adder import Fp32Adder
from poblano.arith.fp32_round import Fp32Round
from poblano.arith.lanes import LanePlan
from poblano.arith.operand import operand_layout
from poblano.component import Component

__all__ = ["TensorUnit"]


class TensorUnit(Component):
    """Adds the dot product of two MX blocks to a binary32 accumulator that lies outside.

    One beat a cycle, no backpressure. `poblano.arith.latency` says in which cycle, counted from
    the block's last beat, `accumulator` is read (`accumulator_latency`) and `result` can be read
    (`unit_latency`). The dot product is exact with both scales, rounded once to binary32
    (nearest even, subnormals kept, overflow to infinity); the sum is the binary32 sum.

    Parameters
    ----------
    formats:
        Format pairs of the unit.
    multiply_stages, sum_stages, round_stages, add_stages:
        Pipeline registers after each part; 0 is none. `add_stages` is at most 3, the others 1.

    Members
    -------
    a, b, mode, first_beat, last_beat, valid:
        A beat of a block, as `DotProduct` takes it.
    accumulator:
        The binary32 number to add to.
    result:
        accumulator + dot product, binary32.

    Raises
    ------
    ValueError
        If a number of stages is out of range, or the formats are not known pairs.
    """

    def __init__(
        self,
        *,
        formats: tuple[str, ...],
        multiply_stages: int = 1,
        sum_stages: int = 1,
        round_stages: int = 1,
        add_stages: int = 2,
    ) -> None:
        self.plan = LanePlan(formats)
        self.multiply_stages = checked_stages("multiply_stages", multiply_stages, 1)
        self.sum_stages = checked_stages("sum_stages", sum_stages, 1)
        self.round_stages = checked_stages("round_stages", round_stages, 1)
        self.add_stages = checked_stages("add_stages", add_stages, 3)
        self.formats = formats
        layout = operand_layout(formats)
        super().__init__(
            {
                "a": In(layout),
                "b": In(layout),
                "mode": In(self.plan.mode_width),
                "first_beat": In(1),
                "last_beat": In(1),
                "valid": In(1),
                "accumulator": In(32),
                "result": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dot = dot = DotProduct(
            formats=self.formats, multiply_stages=self.multiply_stages, sum_stages=self.sum_stages
        )
        m.submodules.round = rounding = Fp32Round(
            width=self.plan.sum_width,
            exponents=self.plan.sum_exponent_range,
            infinities=self.plan.has_infinity,
            stages=self.round_stages,
        )
        m.submodules.add = add = Fp32Adder(stages=self.add_stages)
        m.d.comb += [
            dot.a.eq(self.a),
            dot.b.eq(self.b),
            dot.mode.eq(self.mode),
            dot.first.eq(self.first_beat),
            dot.last.eq(self.last_beat),
            dot.valid.eq(self.valid),
            rounding.value.eq(dot.sum),
            rounding.exponent.eq(dot.exponent),
            rounding.nan.eq(dot.nan),
            add.a.eq(self.accumulator),
            add.b.eq(rounding.result),
            self.result.eq(add.result),
        ]
        if self.plan.has_infinity:
            m.d.comb += [
                rounding.infinity.eq(dot.infinity),
                rounding.infinity_sign.eq(dot.infinity_sign),
            ]
        return m
