"""Rounds binary32 to BF16."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component

__all__ = ["Fp32ToBf16"]


class Fp32ToBf16(Component):
    """Rounds an IEEE 754 binary32 number to BF16. Combinational.

    To nearest, ties to even; subnormals are kept; overflow gives infinity; any NaN gives 0x7FC0.

    Members
    -------
    i:
        The binary32 number.
    o:
        The BF16 number.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(32), "o": Out(16)})

    def elaborate(self, platform) -> Module:
        m = Module()
        # BF16 is the upper half of binary32: a carry out of the fraction lands in the exponent.
        kept = self.i[16:]
        round_up = Signal()
        m.d.comb += round_up.eq(self.i[15] & (self.i[:15].any() | kept[0]))
        is_nan = Signal()
        m.d.comb += is_nan.eq(self.i[23:31].all() & self.i[:23].any())
        m.d.comb += self.o.eq(Mux(is_nan, 0x7FC0, kept + round_up))
        return m
