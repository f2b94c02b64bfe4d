"""Small designs that every emission test uses."""

import pytest
from amaranth.hdl import Module, Signal, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.l1.sram import Sram


class Kind(enum.Enum, shape=2):
    """An enumeration inside a payload."""

    ADD = 0
    MULTIPLY = 2


class Operation(data.Struct):
    """A payload with every sort of field."""

    kind: Kind
    value: signed(5)
    digits: data.ArrayLayout(4, 3)


class Leaf(Component):
    """Passes a payload on, one cycle later."""

    def __init__(self, *, offset):
        self.offset = offset
        super().__init__(
            {
                "i": In(stream.Signature(Operation, always_ready=True)),
                "o": Out(stream.Signature(Operation, always_valid=True, always_ready=True)),
            }
        )

    @property
    def latency(self):
        return 1

    def elaborate(self, _platform):
        m = Module()
        total = Signal(5)
        m.d.comb += total.eq(self.i.payload.value + self.offset)
        with m.If(self.i.valid):
            m.d.sync += [self.o.payload.eq(self.i.payload), self.o.payload.value.eq(total)]
        return m


class Pair(Component):
    """Two equal leaves, one different, and a memory."""

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(Operation, always_ready=True)),
                "o": Out(stream.Signature(Operation, always_valid=True, always_ready=True)),
                "taps": Out(8).array(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        leaves = [Leaf(offset=1), Leaf(offset=1), Leaf(offset=2)]
        for index, leaf in enumerate(leaves):
            m.submodules[f"leaf_{index}"] = once(leaf, platform)
            if index == 0:
                wiring.connect(m, wiring.flipped(self.i), leaf.i)
            else:
                m.d.comb += [
                    leaf.i.payload.eq(leaves[index - 1].o.payload),
                    leaf.i.valid.eq(1),
                ]
        m.d.comb += self.o.payload.eq(leaves[-1].o.payload)
        words = Sram(depth=16, width=8)
        m.submodules.words = once(words, platform)
        m.d.comb += [
            words.read_enable.eq(1),
            words.read_address.eq(self.i.payload.digits[0]),
            words.write_strobe.eq(self.i.valid),
            words.write_address.eq(self.i.payload.digits[1]),
            words.write_data.eq(self.i.payload.digits.as_value()),
            self.taps[0].eq(words.read_data),
            self.taps[1].eq(self.i.payload.digits[2]),
        ]
        return m


@pytest.fixture
def pair():
    """A design of four distinct modules, two of them memories or leaves that occur twice."""
    return Pair()
