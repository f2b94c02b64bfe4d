"""The registers of the scalar engine."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.scalar.instructions import NUM_ARGUMENTS, NUM_REGISTERS, REGISTER_WIDTH

__all__ = ["ScalarRegisters"]

_NUMBER = range(NUM_REGISTERS)


class ScalarRegisters(Component):
    """Sixteen registers, of which register 0 is always 0.

    What is written in a cycle is read from the next on.

    Members
    -------
    clear, arguments:
        Sets r1, r2, ... to the arguments and the others to 0.
    write, target, value:
        Writes a register; a write of register 0 is lost.
    first, second, a, b:
        Registers that are read, and their values.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "clear": In(1),
                "arguments": In(data.ArrayLayout(REGISTER_WIDTH, NUM_ARGUMENTS)),
                "write": In(1),
                "target": In(_NUMBER),
                "value": In(REGISTER_WIDTH),
                "first": In(_NUMBER),
                "second": In(_NUMBER),
                "a": Out(REGISTER_WIDTH),
                "b": Out(REGISTER_WIDTH),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        registers = [Signal(REGISTER_WIDTH, name=f"r{number}") for number in _NUMBER]
        for number, register in enumerate(registers[1:], start=1):
            with m.If(self.write & (self.target == number)):
                m.d.sync += register.eq(self.value)
            with m.If(self.clear):
                given = number <= NUM_ARGUMENTS
                m.d.sync += register.eq(self.arguments[number - 1] if given else 0)
        m.d.comb += [
            self.a.eq(Array(registers)[self.first]),
            self.b.eq(Array(registers)[self.second]),
        ]
        return m
