"""Notices that a memory does not answer."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component

__all__ = ["Watch"]


class Watch(Component):
    """Counts the cycles in which the engine has waited for its memory and nothing came.

    Members
    -------
    patience:
        Cycles after which `silent` rises; 0 for never.
    waiting:
        The engine waits for the memory in this cycle; the count begins anew where it does not.
    silent:
        `patience` cycles of waiting have passed in a row.
    """

    def __init__(self) -> None:
        super().__init__({"patience": In(32), "waiting": In(1), "silent": Out(1)})

    def elaborate(self, platform) -> Module:
        m = Module()
        count = Signal(32)
        m.d.comb += self.silent.eq(self.waiting & (self.patience != 0) & (count >= self.patience))
        with m.If(~self.waiting):
            m.d.sync += count.eq(0)
        with m.Elif(~self.silent):
            m.d.sync += count.eq(count + 1)
        return m
