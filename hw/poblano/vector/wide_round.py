"""Rounds the numbers of a beat to the wide formats."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_to_bf16 import Fp32ToBf16
from poblano.arith.fp32_to_fp16 import Fp32ToFp16
from poblano.arith.fp32_to_int8 import Fp32ToInt8
from poblano.component import Component, once

__all__ = ["WideRound"]


class WideRound(Component):
    """Rounds the numbers of a beat to a wide format, by its index. Combinational.

    Parameters
    ----------
    lanes:
        Numbers of a beat.

    Members
    -------
    values:
        Binary32 numbers, lane 0 lowest.
    format:
        Index in `poblano.vector.job.NUMBER_ORDER`.
    packed:
        The rounded numbers one behind the other.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        super().__init__({"values": In(32 * lanes), "format": In(2), "packed": Out(32 * lanes)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        parts: list[list[Value]] = [[], [], []]
        for lane in range(self.lanes):
            value = self.values.word_select(lane, 32)
            for number, kind in enumerate((Fp32ToBf16, Fp32ToFp16, Fp32ToInt8)):
                convert: Any = kind()
                m.submodules[f"{kind.__name__.lower()}_{lane}"] = once(convert, platform)
                m.d.comb += convert.i.eq(value)
                parts[number].append(Value.cast(convert.o).as_unsigned())
        with m.Switch(self.format):
            with m.Case(0):
                m.d.comb += self.packed.eq(self.values)
            for number, values in enumerate(parts, 1):
                with m.Case(number):
                    m.d.comb += self.packed.eq(Cat(values))
        return m
