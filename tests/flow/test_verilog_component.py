"""Components that are written in Verilog, on their own and inside others."""

import json

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from poblano.component import Component, once
from poblano.verilog_component import VerilogComponent
from poblano_flow.build_cache import MARKER
from poblano_flow.emission import emit
from poblano_flow.simulate import build

COUNTER = """\
// Counts up by STEP.
module counter #(
  parameter STEP = 1,
  parameter NAME = "none"
) (input clk, input rst, input enable, output reg [7:0] count);
  always @(posedge clk)
    count <= rst ? 0 : count + (enable ? STEP : 0);
endmodule
"""


class Counter(VerilogComponent):
    def __init__(self, *, step, source, name="counter"):
        self.source = source
        self.values = {"STEP": step, "NAME": name}
        super().__init__({"enable": In(1), "count": Out(8)})


class Pair(Component):
    """Two counters of one kind and one of another."""

    def __init__(self, *, source):
        self.source = source
        super().__init__({"enable": In(1), "count": Out(8)})

    def elaborate(self, platform):
        m = Module()
        parts = [Counter(step=step, source=self.source) for step in (3, 3, 5)]
        for index, part in enumerate(parts):
            m.submodules[f"part_{index}"] = once(part, platform)
            m.d.comb += part.enable.eq(self.enable)
        m.d.comb += self.count.eq(sum(part.count for part in parts))
        return m


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "counter.v"
    path.write_text(COUNTER)
    return path


def test_the_text_is_taken_with_its_name_and_parameters(source):
    component = Counter(step=7, source=source)
    wanted = COUNTER.replace("module counter", f"module {component.module_name}")
    wanted = wanted.replace("STEP = 1", "STEP = 7").replace('"none"', '"counter"')
    (module,) = emit(component).modules
    assert module.verilog == wanted
    ports = [(port.name, port.direction, port.width) for port in module.ports]
    assert ports == [
        ("clk", "input", 1),
        ("rst", "input", 1),
        ("enable", "input", 1),
        ("count", "output", 8),
    ]


def test_equal_ones_are_written_once(source):
    emission = emit(Pair(source=source))
    assert [module.kind for module in emission.modules] == ["Counter", "Counter", "Pair"]
    assert sorted(emission.instance_counts().values()) == [1, 1, 2]


@pytest.mark.parametrize(
    ("text", "pattern"),
    [(COUNTER.replace("STEP = 1", "SIZE = 1"), "STEP"), (COUNTER + COUNTER, "module ")],
)
def test_a_text_without_what_is_set_is_refused(source, text, pattern):
    source.write_text(text)
    with pytest.raises(ValueError, match=f"must match .*{pattern}.* once, not [02] times"):
        Counter(step=7, source=source).verilog()


def test_a_build_depends_on_the_text(source, monkeypatch, tmp_path):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    first = build(emit(Pair(source=source)), "icarus")
    again = build(emit(Pair(source=source)), "icarus")
    assert (first.fresh, again.fresh, again.folder) == (True, False, first.folder)
    source.write_text(COUNTER.replace("? STEP : 0", "? STEP : 1"))
    changed = build(emit(Pair(source=source)), "icarus")
    assert changed.fresh
    assert changed.folder != first.folder
    recipe = json.loads((changed.folder / MARKER).read_text())["recipe"]
    assert len([name for name in recipe["files"] if "counter" in name]) == 2
