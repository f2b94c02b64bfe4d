"""One lane of the vector engine: an element through the chain."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.fp32_fields import is_infinite, is_nan
from poblano.arith.fp32_multiplier import Fp32Multiplier
from poblano.component import Component, once
from poblano.config import VectorPipelineConfiguration
from poblano.vector.elementary import Elementary
from poblano.vector.function_places import FUNCTIONS
from poblano.vector.job import CHOICES, lane_layout
from poblano.vector.operation import VectorOperation
from poblano.vector.power_argument import PARTS_EXPONENT_WIDTH
from poblano.vector.unpack import Unpack
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["VectorLane"]

_ONE = 0x3F800000


class VectorLane(Component):
    """Computes s2 of one element a cycle, bit for bit `poblano_golden.vector.chained`.

    Latencies are `poblano.vector.timing.ChainLatency`, one element a cycle; nothing moves while
    `enable` is 0. The chain holds still while elements are inside.

    Parameters
    ----------
    pipeline:
        Registers of the parts.

    Members
    -------
    enable:
        Time passes.
    chain:
        What is computed. Constants that are NaN are canonical.
    a, b, c:
        The element of each stream in the low bits; of `a`, `fill` stands unless `valid`, and +0
        unless `present`.
    valid, present:
        The element's column is valid, and is one of the row's.
    p, q:
        The row's scalars, a cycle later than the elements, canonical.
    neighbour:
        `number` of the lane beside this one.
    late_factor:
        1 / q, in the cycle in which s1 is known.
    number:
        a in binary32, after one cycle.
    power_fraction, power_exponent, power_zero, power_spoilt:
        The parts of 2**s1; whether s1 is -infinity; whether it is a NaN or +infinity.
    result:
        s2.
    """

    def __init__(self, *, pipeline: VectorPipelineConfiguration) -> None:
        self.pipeline = pipeline
        super().__init__(
            {
                "enable": In(1),
                "chain": In(lane_layout()),
                **{name: In(32) for name in ("a", "b", "c", "p", "q", "neighbour", "late_factor")},
                "valid": In(1),
                "present": In(1),
                "number": Out(32),
                "power_fraction": Out(FRACTION_BITS),
                "power_exponent": Out(signed(PARTS_EXPONENT_WIDTH)),
                "power_zero": Out(1),
                "power_spoilt": Out(1),
                "result": Out(32),
            }
        )

    def elaborate(self, platform: Any) -> Elaboratable:
        # A factor `one` is 1.0: the product is exact. Sides that are known early wait in one
        # register chain each, chosen among all that they can be.
        m = Module()
        chain, pipeline = self.chain, self.pipeline
        have = self._unpack(m, platform)
        first, second = (Fp32Multiplier(stages=pipeline.multiply) for _ in range(2))
        operation1, operation2 = (VectorOperation(stages=pipeline.add) for _ in range(2))
        m.submodules.multiplier_1, m.submodules.multiplier_2 = first, second
        m.submodules.operation_1, m.submodules.operation_2 = operation1, operation2

        have |= {"one": C(_ONE, 32), "constant": chain.constant1}
        m.d.comb += [first.a.eq(self.number), first.b.eq(self._chosen(m, "factor1", have))]
        m1 = first.result
        have["constant"] = chain.constant2
        right1 = delayed(m, self._chosen(m, "operand1", have), pipeline.multiply, "right1")
        m.d.comb += [
            operation1.operation.eq(chain.operation1),
            operation1.left.eq(m1),
            operation1.right.eq(right1),
            operation1.fill.eq(chain.fill),
        ]
        s1 = operation1.result
        until_s1 = pipeline.multiply + pipeline.add

        have |= {"f": C(0, 32), "s1": C(0, 32), "m1": C(0, 32), "reciprocal_q": C(0, 32)}
        left2 = delayed(m, self._chosen(m, "left2", have), until_s1, "left2")
        have["constant"] = chain.constant3
        factor2 = delayed(m, self._chosen(m, "factor2", have), until_s1, "factor2")
        have["constant"] = chain.constant4
        right2 = delayed(m, self._chosen(m, "operand2", have), pipeline.multiply, "right2")
        joined = {
            "factor2": Signal(32, name="factor2_joined"),
            "right2": Signal(32, name="right2_joined"),
        }
        m.d.comb += [joined["factor2"].eq(factor2), joined["right2"].eq(right2)]
        with m.If(_is(chain, "factor2", "s1")):
            m.d.comb += joined["factor2"].eq(s1)
        with m.If(_is(chain, "factor2", "reciprocal_q")):
            m.d.comb += joined["factor2"].eq(self.late_factor)
        with m.If(_is(chain, "operand2", "m1")):
            m.d.comb += joined["right2"].eq(m1)

        m.d.comb += [
            second.a.eq(self._function(m, s1, left2)),
            second.b.eq(delayed(m, joined["factor2"], pipeline.function, "factor2_late")),
            operation2.operation.eq(chain.operation2),
            operation2.left.eq(second.result),
            operation2.right.eq(
                delayed(
                    m,
                    joined["right2"],
                    pipeline.add + pipeline.function + pipeline.multiply,
                    "right2_late",
                )
            ),
            operation2.fill.eq(chain.fill),
            self.result.eq(operation2.result),
        ]
        return EnableInserter(self.enable)(m)

    def _unpack(self, m: Module, platform: Any) -> dict[str, Value]:
        """Return all that an element may meet, one cycle after the element came."""
        have: dict[str, Value] = {"p": self.p, "q": self.q, "pair": self.neighbour}
        for side in "abc":
            unpack: Any = Unpack()
            m.submodules[f"unpack_{side}"] = once(unpack, platform)
            number = Signal(32, name=f"{side}_number", reset_less=True)
            m.d.comb += [
                unpack.i.eq(getattr(self, side)),
                unpack.format.eq(self.chain[f"{side}_format"]),
            ]
            value = unpack.o
            if side == "a":
                filled = Mux(self.valid, value, self.chain.fill)
                value = Mux(self.present, filled, 0)
            m.d.sync += number.eq(value)
            have[side] = number
        m.d.comb += self.number.eq(have["a"])
        return have

    def _chosen(self, m: Module, field: str, have: dict[str, Value]) -> Signal:
        """Return what a field of the chain names."""
        result = Signal(32, name=field)
        with m.Switch(self.chain[field]):
            for number, name in enumerate(CHOICES[field]):
                with m.Case(number):
                    m.d.comb += result.eq(have[name])
        return result

    def _function(self, m: Module, s1: Value, left2: Value) -> Value:
        """Return the left side of the second product, and give out the parts of the power."""
        chain, stages = self.chain, self.pipeline.function
        m.submodules.functions = functions = Elementary(
            functions=FUNCTIONS, stages=stages, parts=True
        )
        elementary, index = Signal(), Signal(range(len(FUNCTIONS)))
        for number, name in enumerate(FUNCTIONS):
            with m.If(_is(chain, "function", name)):
                m.d.comb += [elementary.eq(_is(chain, "left2", "f")), index.eq(number)]
        plain = Signal(32)
        nan = is_nan(s1)
        sign = (s1[31] ^ _is(chain, "function", "negate")) & ~_is(chain, "function", "absolute")
        m.d.comb += [
            functions.x.eq(s1),
            functions.function.eq(index),
            plain.eq(Mux(_is(chain, "left2", "f"), Cat(s1[:31], sign & ~nan), left2)),
        ]
        flags = Cat(is_infinite(s1) & s1[31], nan | (is_infinite(s1) & ~s1[31]))
        m.d.comb += [
            Cat(self.power_zero, self.power_spoilt).eq(
                delayed(m, flags, functions.parts_latency, "power_flags")
            ),
            self.power_fraction.eq(functions.power_fraction),
            self.power_exponent.eq(functions.power_exponent),
        ]
        return Mux(elementary, functions.result, delayed(m, plain, stages, "plain"))


def _is(chain: Any, field: str, name: str) -> Value:
    return chain[field] == CHOICES[field].index(name)
