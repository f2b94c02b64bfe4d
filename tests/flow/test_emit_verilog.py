"""Verilog itself: names that are keywords, constants at time 0, and reading by every tool."""

import subprocess

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano_flow.emission import emit
from poblano_flow.lint import lint
from poblano_flow.lint_tools import CHECKERS
from poblano_flow.tools import program

KEYWORDS = (
    *("input", "output", "logic", "bit", "do", "final", "checker", "priority", "unique", "int"),
    *("byte", "wire", "reg", "module", "always_ff", "interface", "class", "nettype", "let"),
    *("global", "strong", "soft", "implements", "interconnect", "untyped", "config", "cell"),
    *("table", "endmodule", "begin", "end", "case", "signed", "tri", "supply0", "string", "var"),
)


class Keywords(Component):
    """The exclusive or of ports that are named like keywords."""

    def __init__(self):
        super().__init__({**dict.fromkeys(KEYWORDS, In(4)), "always": Out(4)})

    def elaborate(self, _platform):
        m = Module()
        total = self.input
        for name in KEYWORDS[1:]:
            total = total ^ getattr(self, name)
        initial = Signal(4, name="initial")
        m.d.comb += initial.eq(total)
        m.d.sync += self.always.eq(initial + 1)
        return m


class OneState(Component):
    """A state machine of one state that drives a constant."""

    def __init__(self):
        super().__init__({"a": Out(1), "b": Out(8)})

    def elaborate(self, _platform):
        m = Module()
        with m.FSM(), m.State("only one"):
            m.d.comb += [self.a.eq(1), self.b.eq(0xA5)]
        return m


@pytest.mark.parametrize("tool", CHECKERS)
def test_every_tool_reads_names_that_are_keywords(tool, tmp_path):
    result = lint([emit(Keywords())], [tool], [], tmp_path)
    assert [f for f in result.findings if f.rule in ("error", "failed", "sorry")] == []


def test_keywords_work_under_icarus(tmp_path):
    """Port names are escaped, so that a testbench connects to them by name."""
    emission = emit(Keywords())
    connections = ", ".join(f".\\{name} (4'd{i % 16})" for i, name in enumerate(KEYWORDS))
    expected = 0
    for index in range(len(KEYWORDS)):
        expected ^= index % 16
    bench = f"""
        module bench;
          reg clk = 0, rst = 0; wire [3:0] o;
          {emission.top.name} dut ({connections}, .\\always (o), .clk(clk), .rst(rst));
          initial begin #1 clk = 1; #1 $display("%d", o); end
        endmodule"""
    assert int(run_icarus(emission, bench, tmp_path)) == (expected + 1) % 16


def test_constants_stand_from_time_zero(tmp_path):
    emission = emit(OneState())
    ports = ", ".join(f".{p.name}(1'b0)" for p in emission.top.ports if p.direction == "input")
    bench = f"""
        module bench;
          wire a; wire [7:0] b;
          {emission.top.name} dut (.a(a), .b(b){", " * bool(ports)}{ports});
          initial $strobe("%b %h", a, b);
        endmodule"""
    assert run_icarus(emission, bench, tmp_path) == "1 a5"


def run_icarus(emission, bench, folder):
    """Return what a testbench prints."""
    files = emission.write(folder / "rtl")
    (folder / "bench.v").write_text(bench)
    compiled = folder / "bench.vvp"
    command = [program("iverilog"), "-g2012", "-o", compiled, "-s", "bench", folder / "bench.v"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    done = subprocess.run([program("vvp"), compiled], check=True, capture_output=True, text=True)
    return done.stdout.strip()
