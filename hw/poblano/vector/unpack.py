"""Elements of any format as binary32."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.fp32_fields import canonical, is_nan
from poblano.arith.to_fp32 import Bf16ToFp32, Fp16ToFp32, Int8ToFp32
from poblano.component import Component, once

__all__ = ["Unpack"]


class Unpack(Component):
    """Converts one element to binary32, exactly; every NaN is 0x7FC00000. Combinational.

    Members
    -------
    i:
        The element in the low bits.
    format:
        Index in `poblano.vector.job.NUMBER_ORDER`.
    o:
        The number.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(32), "format": In(2), "o": Out(32)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        bf16, fp16, int8 = Bf16ToFp32(), Fp16ToFp32(), Int8ToFp32()
        converters: dict[str, Any] = {"bf16": bf16, "fp16": fp16, "int8": int8}
        for name, converter in converters.items():
            m.submodules[name] = once(converter, platform)
            m.d.comb += converter.i.eq(self.i)
        with m.Switch(self.format):
            with m.Case(0):
                m.d.comb += self.o.eq(canonical(self.i, is_nan(self.i)))
            for number, converter in enumerate(converters.values(), 1):
                with m.Case(number):
                    m.d.comb += self.o.eq(converter.o)
        return m
