"""RTLIL of components: the same as Amaranth's own, with the same errors, and fewer names."""

import re

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, Module, Signal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.hdl._nir import CombinationalCycle
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.config import load
from poblano.l1.line_writer import LineWriter
from poblano.tensor.geometry import Geometry
from poblano.tensor.panel import OperandPanel
from poblano.tensor.results import ResultPath
from poblano.tensor.unit import TensorUnit
from poblano_flow.netlist import rtlil_text

SLICE = load("tiny", []).slice


class Loop(Component):
    """Two signals that depend on each other, through an inverter or directly."""

    def __init__(self, *, inverts):
        self.inverts = inverts
        super().__init__({"o": Out(4)})

    def elaborate(self, _platform):
        m = Module()
        first, second = Signal(4, name="first"), Signal(4, name="second")
        source = ~second if self.inverts else second
        m.d.comb += [first.eq(source), second.eq(first), self.o.eq(second)]
        return m


class Ripple(Component):
    """A word each bit of which depends on the bit below: no cycle, if one looks at bits."""

    def __init__(self):
        super().__init__({"i": In(1), "o": Out(8)})

    def elaborate(self, _platform):
        m = Module()
        word = Signal(8)
        m.d.comb += [word[0].eq(self.i), self.o.eq(word)]
        m.d.comb += [word[bit + 1].eq(~word[bit]) for bit in range(7)]
        return m


class Fields(Component):
    """A structure with a field, and with an array of structures."""

    def __init__(self):
        pair = data.StructLayout({"left": 3, "right": 5})
        layout = data.StructLayout({"tag": 4, "pairs": data.ArrayLayout(pair, 2)})
        super().__init__({"i": In(layout), "o": Out(layout)})

    def elaborate(self, _platform):
        m = Module()
        m.d.sync += self.o.eq(self.i)
        return m


@pytest.mark.parametrize(
    "make",
    [
        Ripple,
        lambda: LineWriter(line=64, most=32, lines=512),
        lambda: OperandPanel(side=Geometry(SLICE).b),
        lambda: ResultPath(configuration=SLICE),
        lambda: TensorUnit(formats=SLICE.tensor.formats),
    ],
    ids=["ripple", "shifts", "memory", "submodules", "arithmetic"],
)
def test_netlist_is_the_one_that_amaranth_makes(make):
    """But for the mark of the top, which conversion to Verilog drops, and elements of arrays."""
    component = make()
    wanted = rtlil.convert(component, name="top", emit_src=False, ports=ports(component))
    element = re.compile(r" *(wire|connect) [^{]*\\\S+\[\d+\]")
    assert [line for line in text(make()).splitlines() if line] == [
        line
        for line in wanted.splitlines()
        if line and line != r"attribute \top 1" and not element.match(line)
    ]


@pytest.mark.parametrize("inverts", [False, True])
def test_signals_that_depend_on_each_other_are_named(inverts):
    with pytest.raises(
        CombinationalCycle, match=r"(?s)signal (first|second).*signal (first|second)"
    ):
        text(Loop(inverts=inverts))


def test_fields_have_names_and_elements_of_arrays_have_none():
    assert set(re.findall(r"wire width \d+ \\(i\S+)", text(Fields()))) == {"i.tag", "i.pairs"}


def text(component):
    """Return the RTLIL of a component with all its ports."""
    return rtlil_text(component, "top", None, ports(component))


def ports(component):
    """Return the ports of a component that are not constants."""
    return {
        "__".join(map(str, path)): (
            Value.cast(value),
            PortDirection.Input if member.flow == In else PortDirection.Output,
        )
        for path, member, value in component.signature.flatten(component)
        if not isinstance(Value.cast(value), Const)
    }
