"""Lint finds what is wrong, waives only what is named, and never takes a crash for a pass."""

import stat

import pytest

from poblano.config import ConfigurationError
from poblano_flow import lint_tools, tools
from poblano_flow.emission import Emission, Module, Port
from poblano_flow.lint import lint
from poblano_flow.lint_cli import chosen_tools
from poblano_flow.lint_tools import CHECKERS
from poblano_flow.waivers import Waiver, load_waivers, matches
from poblano_golden.errors import PoblanoError

CLEAN = """\
module clean(clk, i, o);
  input clk; input [3:0] i; output reg [3:0] o;
  always @(posedge clk) o <= i;
endmodule
"""


def module(name, text, ports, instances=None):
    return Module(
        name=name,
        kind=name.title(),
        parameters={},
        component=None,
        ports=tuple(Port(*port) for port in ports),
        instances=instances or {},
        verilog=text,
    )


def clean():
    ports = [("clk", "input", 1), ("i", "input", 4), ("o", "output", 4)]
    return module("clean", CLEAN, ports)


def parent(connection=".clk(clk), .i(i), .o(o)"):
    text = f"""\
module parent(clk, i, o);
  input clk; input [3:0] i; output [3:0] o;
  clean child ({connection});
endmodule
"""
    ports = [("clk", "input", 1), ("i", "input", 4), ("o", "output", 4)]
    return module("parent", text, ports, {"child": "clean"})


@pytest.mark.parametrize("tool", CHECKERS)
def test_clean_design_has_no_findings(tool, tmp_path):
    result = lint([Emission((clean(), parent()))], [tool], [], tmp_path)
    assert result.findings == ()
    assert result.modules == 2


@pytest.mark.parametrize("tool", CHECKERS)
def test_syntax_error_is_found_at_its_line(tool, tmp_path):
    broken = module("broken", "module broken(o);\n  output o;\n  assign = ;\nendmodule\n", [])
    findings = lint([Emission((broken,))], [tool], [], tmp_path).findings
    assert findings
    assert {(f.tool, f.kind, f.file) for f in findings} == {(tool, "Broken", tmp_path / "broken.v")}
    assert 3 in {f.line for f in findings}


@pytest.mark.parametrize("tool", CHECKERS)
def test_unknown_module_is_found(tool, tmp_path):
    alone = parent()
    findings = lint([Emission((alone,))], [tool], [], tmp_path).findings
    assert any("clean" in f.message for f in findings), findings


@pytest.mark.parametrize("tool", ["verilator", "icarus"])
def test_port_of_wrong_width_is_found_over_the_stub(tool, tmp_path):
    design = Emission((clean(), parent(".clk(clk), .i(i[2:0]), .o(o)")))
    findings = lint([design], [tool], [], tmp_path).findings
    assert ("parent", 3) in {(f.module, f.line) for f in findings}


@pytest.mark.parametrize("tool", ["verilator", "yosys"])
def test_undriven_wire_is_found(tool, tmp_path):
    text = "module open(o);\n  output o;\n  wire w;\n  assign o = ~w;\nendmodule\n"
    design = Emission((module("open", text, [("o", "output", 1)]),))
    findings = lint([design], [tool], [], tmp_path).findings
    assert any("driven" in f.message or "driver" in f.message for f in findings)


def test_module_that_two_designs_share_is_read_once(tmp_path):
    designs = [Emission((clean(),)), Emission((clean(), parent()))]
    assert lint(designs, ["icarus"], [], tmp_path).modules == 2


UNUSED = "module unused(a, b, o);\n  input a, b; output o;\n  assign o = a;\nendmodule\n"


def unused():
    return Emission((module("unused", UNUSED, [("a", "input", 1), ("b", "input", 1)]),))


def test_finding_names_tool_rule_place_and_port(tmp_path):
    (finding,) = lint([unused()], ["verilator"], [], tmp_path).findings
    assert str(finding) == (
        f"{tmp_path}/unused.v:2: verilator UNUSEDSIGNAL: Signal is not used: 'b' (a port) [Unused]"
    )


def test_waiver_covers_only_what_it_names(tmp_path):
    fitting = Waiver("verilator", "UNUSEDSIGNAL", "for the test", "Unused", "*'b' (a port)")
    result = lint([unused()], ["verilator"], [fitting], tmp_path)
    assert (result.findings, result.waived) == ((), {fitting: 1})
    for changed in (
        Waiver("slang", "UNUSEDSIGNAL", "another tool"),
        Waiver("verilator", "UNDRIVEN", "another rule"),
        Waiver("verilator", "UNUSEDSIGNAL", "another kind", "Used"),
        Waiver("verilator", "UNUSEDSIGNAL", "another message", "Unused", "*'a' (a port)"),
    ):
        result = lint([unused()], ["verilator"], [changed], tmp_path)
        assert len(result.findings) == 1
        assert sum(result.waived.values()) == 0


def test_patterns_know_star_and_question_mark_only():
    assert matches("a[0]*", "a[0] b")
    assert not matches("a[0]", "a0")
    assert matches("a?c", "abc")
    assert not matches("A", "a")


def test_tool_that_fails_without_a_word_is_a_finding(tmp_path, monkeypatch):
    broken = tmp_path / "verilator"
    broken.write_text("#!/bin/sh\nexit 139\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(lint_tools, "program", lambda _: broken)
    (finding,) = lint([unused()], ["verilator"], [], tmp_path / "rtl").findings
    assert (finding.rule, finding.line) == ("failed", 0)
    assert finding.message == "exit status 139: no message"


def test_tool_that_hangs_is_a_finding(tmp_path, monkeypatch):
    slow = tmp_path / "iverilog"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(lint_tools, "program", lambda _: slow)
    monkeypatch.setattr(lint_tools, "TIME_LIMIT", 0.2)
    (finding,) = lint([unused()], ["icarus"], [], tmp_path / "rtl").findings
    assert (finding.rule, finding.message) == ("failed", "exit status 1: no answer in 0.2 s")


def test_missing_tool_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda _: None)
    with pytest.raises(tools.ToolMissingError) as caught:
        lint([unused()], ["icarus"], [], tmp_path)
    assert str(caught.value) == (
        "iverilog must be installed (poblano doctor prints how); got no such program"
    )


def test_chosen_tools():
    assert chosen_tools("slang, verilator,slang") == ["slang", "verilator"]
    for text, got in (("slang,spyglass", "spyglass"), ("", "none"), (" , ", "none")):
        with pytest.raises(PoblanoError) as caught:
            chosen_tools(text)
        assert str(caught.value) == (
            f"--tools must name some of verilator, icarus, yosys, slang; got {got}"
        )


def test_waiver_file_of_the_project_gives_reasons():
    waivers = load_waivers()
    assert waivers
    assert all(len(waiver.reason.split()) > 4 for waiver in waivers)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tool: slang", "1:1: a waiver file must be a list; got none"),
        (
            "- {tool: slang, rule: x}",
            (
                "1:3: a waiver must have texts for tool, rule and reason, and may have kind and "
                "message; got tool, rule"
            ),
        ),
        (
            "- {tool: slang, rule: x, reason: y, line: z}",
            (
                "1:3: a waiver must have texts for tool, rule and reason, and may have kind and "
                "message; got tool, rule, reason, line"
            ),
        ),
        (
            "- {tool: slang, rule: x, reason: ''}",
            (
                "1:3: a waiver must have texts for tool, rule and reason, and may have kind and "
                "message; got tool, rule, reason"
            ),
        ),
        (
            "\n- {tool: lint, rule: x, reason: y}",
            "2:3: a waiver's tool must be one of verilator, icarus, yosys, slang; got 'lint'",
        ),
    ],
)
def test_bad_waiver_file(tmp_path, text, line):
    path = tmp_path / "waivers.yaml"
    path.write_text(text)
    with pytest.raises(PoblanoError) as caught:
        load_waivers(path)
    assert str(caught.value) == f"{path}:{line}"


def test_missing_waiver_file(tmp_path):
    with pytest.raises(ConfigurationError, match="must be a readable file; got no such file"):
        load_waivers(tmp_path / "absent.yaml")
