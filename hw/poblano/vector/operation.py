"""The two-sided operations of a vector lane."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.fp32_adder import Fp32Adder
from poblano.arith.fp32_compare import Fp32Compare
from poblano.component import Component, once
from poblano_golden.vector import OPERATIONS

__all__ = ["VectorOperation"]


class VectorOperation(Component):
    """Computes one of `poblano_golden.vector.OPERATIONS` of two binary32 numbers.

    Latency `stages` cycles, one result a cycle, no backpressure; `operation` and `fill` hold still
    while numbers are inside.

    Parameters
    ----------
    stages:
        Registers of the adder, 0 to 3; what does not add is as late.

    Members
    -------
    operation:
        Index of the operation.
    left, right:
        The numbers; a NaN is the canonical one.
    fill:
        What `select` gives where left >= right does not hold.
    result:
        The result.

    Raises
    ------
    ValueError
        If `stages` is not 0 to 3.
    """

    def __init__(self, *, stages: int) -> None:
        self.adder = Fp32Adder(stages=stages)
        self.stages = stages
        super().__init__(
            {
                "operation": In(range(len(OPERATIONS))),
                "left": In(32),
                "right": In(32),
                "fill": In(32),
                "result": Out(32),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from the numbers to the result."""
        return self.stages

    def elaborate(self, platform: Any) -> Module:
        # A difference is the sum with the other sign. The adder is no module of its own, so that
        # an enable reaches its registers.
        m = Module()
        compare: Any = Fp32Compare()
        m.submodules.adder = adder = self.adder
        m.submodules.compare = once(compare, platform)
        chosen = {name: self.operation == number for number, name in enumerate(OPERATIONS)}
        at_least, other = Signal(), Signal(32)
        m.d.comb += [
            adder.a.eq(Cat(self.left[:31], self.left[31] ^ chosen["subtract_from"])),
            adder.b.eq(Cat(self.right[:31], self.right[31] ^ chosen["subtract"])),
            compare.a.eq(self.left),
            compare.b.eq(self.right),
            at_least.eq(~compare.less & ~compare.unordered),
            other.eq(self.left),
        ]
        with m.If(chosen["maximum"]):
            m.d.comb += other.eq(compare.maximum)
        with m.Elif(chosen["minimum"]):
            m.d.comb += other.eq(compare.minimum)
        with m.Elif(chosen["select"] & ~at_least):
            m.d.comb += other.eq(self.fill)
        adds = chosen["add"] | chosen["subtract"] | chosen["subtract_from"]
        later = delayed(m, other, self.stages, "other")
        m.d.comb += self.result.eq(Mux(adds, adder.result, later))
        return m
