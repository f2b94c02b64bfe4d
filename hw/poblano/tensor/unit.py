"""One unit of the tensor engine: block dot product, rounding, accumulation."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

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
        self.dot = DotProduct(
            formats=formats, multiply_stages=multiply_stages, sum_stages=sum_stages
        )
        self.round = Fp32Round(
            width=self.plan.sum_width,
            exponents=self.plan.sum_exponent_range,
            infinities=self.plan.has_infinity,
            stages=round_stages,
        )
        self.add = Fp32Adder(stages=add_stages)
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
        m.submodules.dot = dot = self.dot
        m.submodules.round = rounding = self.round
        m.submodules.add = add = self.add
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
