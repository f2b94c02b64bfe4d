"""Small designs with streams for the tests of the simulation flow."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import data, enum, stream
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once


class Op(enum.Enum, shape=2):
    """What a `Calculator` does."""

    ADD = 0
    SUBTRACT = 1
    SWAP = 2


class Operation(data.Struct):
    """An operation on two bytes."""

    op: Op
    a: unsigned(8)
    b: unsigned(8)


class Outcome(data.Struct):
    """The operation and its result."""

    op: Op
    value: unsigned(8)


class Stage(Component):
    """Holds one outcome; a transfer a cycle; latency 1."""

    latency = 1

    def __init__(self):
        super().__init__({"i": In(stream.Signature(Outcome)), "o": Out(stream.Signature(Outcome))})

    def elaborate(self, _platform):
        m = Module()
        held = Signal(16, name="held")
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                self.o.payload.eq(self.i.payload),
                held.eq(held + self.i.valid),
            ]
        return m


class Calculator(Component):
    """Operates on bytes, through two equal stages.

    `fault` is what is wrong with it: `value` inverts the lowest bit of results above 127,
    `payload` lets a waiting payload change, `hang` never accepts, nothing is right.
    """

    def __init__(self, *, fault=""):
        self.fault = fault
        super().__init__(
            {"i": In(stream.Signature(Operation)), "o": Out(stream.Signature(Outcome))}
        )

    def elaborate(self, platform):
        m = Module()
        first, second = Stage(), Stage()
        m.submodules.first = once(first, platform)
        m.submodules.second = once(second, platform)
        given = self.i.payload
        value = Signal(8)
        with m.Switch(given.op):
            with m.Case(Op.ADD):
                m.d.comb += value.eq(given.a + given.b)
            with m.Case(Op.SUBTRACT):
                m.d.comb += value.eq(given.a - given.b)
            with m.Default():
                m.d.comb += value.eq(given.a[4:8] | (given.a[0:4] << 4))
        wrong = Signal(8)
        m.d.comb += wrong.eq(value[7] if self.fault == "value" else 0)
        counter = Signal(8)
        m.d.sync += counter.eq(counter + 1)
        changing = counter if self.fault == "payload" else 0
        m.d.comb += [
            first.i.payload.op.eq(given.op),
            first.i.payload.value.eq(value ^ wrong),
            first.i.valid.eq(self.i.valid & self.i.ready),
            self.i.ready.eq(0 if self.fault == "hang" else first.i.ready),
            second.i.payload.eq(first.o.payload),
            second.i.valid.eq(first.o.valid),
            first.o.ready.eq(second.i.ready),
            self.o.payload.op.eq(second.o.payload.op),
            self.o.payload.value.eq(second.o.payload.value ^ changing),
            self.o.valid.eq(second.o.valid),
            second.o.ready.eq(self.o.ready),
        ]
        return m


class Constant(Component):
    """A combinational block whose inputs never change: one state, and a constant."""

    def __init__(self):
        super().__init__({"a": Out(1), "state": Out(3)})

    def elaborate(self, _platform):
        m = Module()
        with m.FSM(), m.State("only"):
            m.d.comb += self.a.eq(1)
        with m.Switch(Signal(2)), m.Case(0):
            m.d.comb += self.state.eq(5)
        return m


class Keywords(Component):
    """Ports named like keywords of Verilog, and a register named like one."""

    def __init__(self):
        super().__init__({"input": In(4), "output": Out(4), "begin": In(1), "wire": Out(1)})

    def elaborate(self, _platform):
        m = Module()
        reg = Signal(4, name="reg")
        m.d.sync += reg.eq(self.input)
        m.d.comb += [self.output.eq(reg + 1), self.wire.eq(~self.begin)]
        return m
