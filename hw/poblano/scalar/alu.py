"""Functions of two numbers, and conditions of branches."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.scalar.instructions import REGISTER_WIDTH, Alu, Condition

__all__ = ["ScalarAlu"]


class ScalarAlu(Component):
    """Computes an `Alu` function and a `Condition` of two 64-bit numbers. Combinational.

    Members
    -------
    a, b:
        The numbers.
    operation:
        An `Alu` or a `Condition`.
    result:
        The function's value, modulo 2**64.
    total:
        a + b modulo 2**64, whatever the function: the address of an access.
    holds:
        Whether the condition does.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "a": In(REGISTER_WIDTH),
                "b": In(REGISTER_WIDTH),
                "operation": In(Shape.cast(Alu)),
                "result": Out(REGISTER_WIDTH),
                "total": Out(REGISTER_WIDTH),
                "holds": Out(1),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        difference = Signal(REGISTER_WIDTH + 1)
        amount = self.b[: (REGISTER_WIDTH - 1).bit_length()]
        equal, less, less_unsigned = Signal(), Signal(), Signal()
        m.d.comb += [
            self.total.eq(self.a + self.b),
            difference.eq(self.a - self.b),
            equal.eq(self.a == self.b),
            less_unsigned.eq(difference[REGISTER_WIDTH]),
            less.eq(less_unsigned ^ self.a[-1] ^ self.b[-1]),
        ]
        values = {
            Alu.ADD: self.total,
            Alu.SUB: difference,
            Alu.AND: self.a & self.b,
            Alu.OR: self.a | self.b,
            Alu.XOR: self.a ^ self.b,
            Alu.SHL: self.a << amount,
            Alu.SHR: self.a >> amount,
            Alu.SLT: less,
            Alu.SLTU: less_unsigned,
        }
        with m.Switch(self.operation):
            for function, value in values.items():
                with m.Case(function):
                    m.d.comb += self.result.eq(value)
        conditions = {
            Condition.EQ: equal,
            Condition.NE: ~equal,
            Condition.LT: less,
            Condition.GE: ~less,
            Condition.LTU: less_unsigned,
            Condition.GEU: ~less_unsigned,
        }
        with m.Switch(self.operation):
            for condition, value in conditions.items():
                with m.Case(condition):
                    m.d.comb += self.holds.eq(value)
        return m
