"""Mapping to a library: what is counted, how often, and what bad input is told."""

import hashlib
import json
import re

import pytest
from toy_liberty import BUFFER, DFF, DFFE, INVERTER, NAND, NOR, TOY, library

from poblano_flow.cli import main
from poblano_flow.emission import emit
from poblano_flow.synthesis.hierarchy import synthesise
from poblano_flow.synthesis.liberty import read_library
from poblano_flow.synthesis.mapping import Source, map_module
from poblano_flow.synthesis.technology import load_technology, select_library, technology_paths
from poblano_golden.errors import PoblanoError

ENABLED = """module top(input clk, input en, input [7:0] d, output reg [7:0] q);
  always @(posedge clk) if (en) q <= d;
endmodule
"""


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    for variable in ("PDK_ROOT", "POBLANO_LIBERTY_DIR"):
        monkeypatch.delenv(variable, raising=False)


def written(folder, name, *cells):
    path = folder / f"{name}.lib"
    path.write_text(library(*cells, name=name))
    return path


@pytest.fixture
def toy(tmp_path):
    path = tmp_path / "toy.lib"
    path.write_text(TOY)
    return path


def test_cells_of_every_library_are_used(tmp_path):
    files = [written(tmp_path, "one", NAND, DFF), written(tmp_path, "two", INVERTER, BUFFER)]
    text = "module top(input a, input b, output y, output z);\n"
    text += "  assign y = ~(a & b);\n  assign z = ~a;\nendmodule\n"
    for order in (files, files[::-1]):
        mapped = map_module(Source("top", text), read_library(order))
        assert dict(mapped.cells) == {"INV": 1, "NAND2": 1}
        assert mapped.area == 3.0


def test_a_netlist_repeats(tmp_path, monkeypatch, toy):
    text = "module top(input clk, input [15:0] a, input [15:0] b, output reg [15:0] s);\n"
    text += "  always @(posedge clk) s <= s + (a ^ (b * 3));\nendmodule\n"
    digests = set()
    for run in range(3):
        monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / f"build{run}"))
        monkeypatch.setenv("YOSYS_MAX_THREADS", str(run + 1))
        mapped = map_module(Source("top", text), read_library([toy]))
        assert mapped.fresh
        digests.add(hashlib.sha256(mapped.netlist.read_bytes()).hexdigest())
    assert len(digests) == 1


def test_flip_flops_with_enable_are_used_where_the_library_has_them(tmp_path):
    cells = (INVERTER, BUFFER, NAND, NOR, DFF)
    without = map_module(Source("top", ENABLED), read_library([written(tmp_path, "a", *cells)]))
    assert without.cells["DFF"] == 8
    assert without.cells["NAND2"] + without.cells.get("NOR2", 0) >= 16
    files = [written(tmp_path, "b", *cells, DFFE)]
    assert dict(map_module(Source("top", ENABLED), read_library(files)).cells) == {"DFFE": 8}


def test_the_same_input_is_mapped_once(toy):
    first, second = (map_module(Source("top", ENABLED), read_library([toy])) for _ in range(2))
    assert (first.fresh, second.fresh) == (True, False)
    assert first.area == second.area
    toy.write_text(TOY.replace("area : 9.0", "area : 8.0"))
    third = map_module(Source("top", ENABLED), read_library([toy]))
    assert third.fresh
    assert third.area == first.area - 8


def test_a_module_is_mapped_once_and_counted_as_often_as_it_occurs(pair, toy):
    area = synthesise(emit(pair), *select_library([toy], "osu018"), macro_bits=1 << 20)
    by_kind = {}
    for module in area.modules:
        by_kind.setdefault(module.module.kind, []).append(module)
    assert sorted(leaf.count for leaf in by_kind["Leaf"]) == [1, 2]
    leaves = sum(leaf.own_logic * leaf.count for leaf in by_kind["Leaf"])
    [sram] = by_kind["Sram"]
    assert area.top.logic == pytest.approx(area.top.own_logic + leaves + sram.own_logic)
    assert sram.mapped.cells["DFF"] == 16 * 8 + 8
    assert area.top.memory == 0
    assert area.cells == sum(module.cells * module.count for module in area.modules)


def test_large_memories_are_macros(pair, toy):
    model = load_technology("osu018").sram
    area = synthesise(emit(pair), *select_library([toy], "osu018"), macro_bits=128)
    [sram] = [module for module in area.modules if module.module.kind == "Sram"]
    assert sram.mapped is None
    assert sram.own_memory == area.top.memory == model.area(16 * 8, 2) > 0
    with pytest.raises(PoblanoError, match="must have a model of their area: --tech names"):
        synthesise(emit(pair), *select_library([toy], None), macro_bits=128)


def test_a_memory_inside_a_module_is_a_macro(toy):
    text = """module top(input clk, input we, input [5:0] a, input [31:0] d, output reg [31:0] q);
      reg [31:0] words [63:0];
      always @(posedge clk) begin q <= words[a]; if (we) words[a] <= d; end
    endmodule
    """
    mapped = map_module(Source("top", text, macro_bits=2048), read_library([toy]))
    [macro] = mapped.macros
    assert (macro.depth, macro.width, macro.reads, macro.writes) == (64, 32, 1, 1)
    assert macro.name == "words"
    assert f"{macro.kind} words (" in mapped.netlist.read_text()
    assert mapped.area < 100
    mapped = map_module(Source("top", text, macro_bits=2049), read_library([toy]))
    assert mapped.macros == ()
    assert mapped.cells["DFF"] == 64 * 32 + 32


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{path}: a Liberty file must hold a library group; got none"),
        ("library(a) {\n  cell(b) {\n", "{path}:2: every group of a Liberty file must begin and"),
        ("library(a) {\n}\n}\n", "{path}:3: every group of a Liberty file must begin and end; got"),
        (library(INVERTER, NAND), "a library must have a flip-flop (a cell with an ff group); got"),
        (library(INVERTER, DFF), "a library must have a two-input NAND (nand2 in its name); got"),
        (TOY.replace("1ns", ""), "toy.lib: the files of a library must agree on a time_unit; got"),
    ],
)
def test_a_library_that_cannot_be_used_is_named(toy, text, message):
    toy.write_text(text)
    with pytest.raises(PoblanoError, match=f"^{re.escape(message.format(path=toy))}"):
        read_library([toy])


def test_broken_liberty_syntax_is_an_error(toy):
    toy.write_text(TOY.replace('function : "!A"', 'function : "!A(("'))
    with pytest.raises(PoblanoError, match=r"^top: Yosys must end without an error; got "):
        map_module(Source("top", ENABLED), read_library([toy]))


def test_a_missing_library_is_named(tmp_path):
    path = tmp_path / "none.lib"
    with pytest.raises(PoblanoError, match=f"^{re.escape(str(path))}: a Liberty file must be"):
        read_library([path])


PDK_FILE = "libs.ref/sky130_fd_sc_hd/lib/sky130_fd_sc_hd__tt_025C_1v80.lib"


@pytest.mark.parametrize(
    "folder",
    ["sky130A", "ciel/sky130/versions/0fe599b/sky130A", "volare/sky130/versions/0fe599b/sky130A"],
)
def test_a_pdk_is_found_where_ciel_and_volare_put_it(tmp_path, monkeypatch, folder):
    path = tmp_path / folder / PDK_FILE
    path.parent.mkdir(parents=True)
    path.write_text(TOY)
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    found, technology = select_library(None, None)
    assert found.files == (path,)
    assert technology.name == "sky130hd"


def test_a_pdk_that_is_not_there_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PDK_ROOT", str(tmp_path))
    with pytest.raises(PoblanoError, match=f"^PDK_ROOT must name a folder .*{tmp_path}$"):
        select_library(None, None)
    with pytest.raises(PoblanoError, match=r"^technology sky130hd must have its library; got none"):
        select_library(None, "sky130hd")


def test_units_of_library_and_technology_must_agree(toy):
    with pytest.raises(PoblanoError, match="time_unit must be 1 ps, as technology asap7 says"):
        select_library([toy], "asap7")


def test_every_technology_can_be_read():
    assert {"asap7", "nangate45", "osu018", "sky130hd"} <= technology_paths().keys()
    for name in technology_paths():
        technology = load_technology(name)
        assert technology.name == name
        assert technology.sram.area(8192, 2) > 8192 * technology.sram.bit_area.value > 0


def test_a_technology_that_breaks_a_rule_is_told(tmp_path):
    path = tmp_path / "bad.yaml"
    text = technology_paths()["osu018"].read_text()
    path.write_text(text.replace("value: 9.3", "value: -1").replace("corner:", "korner:"))
    with pytest.raises(PoblanoError) as error:
        load_technology(str(path))
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert f"{path}: sram.bit_area.value: input should be greater than or equal to 0" in lines[1]
    with pytest.raises(
        PoblanoError, match=r"^--tech must be one of asap7, .* or a file; got 'osu'"
    ):
        load_technology("osu")


def test_the_command_writes_tables_and_pictures(tmp_path, toy, capsys):
    out = tmp_path / "out"
    main_args = ["synth", "--block", "fp32_adder", "-l", str(toy), "--tech", "osu018"]
    with pytest.raises(SystemExit) as done:
        main([*main_args, "-o", str(out)])
    assert done.value.code in (0, None)
    said = capsys.readouterr().out
    assert "before layout" in said
    assert "Fp32Adder" in said
    found = json.loads((out / "area.json").read_text())
    assert found["stage"] == "before layout"
    [row] = found["modules"]
    assert row["gate_equivalents"] == found["logic_area"] / 2.0 > 500
    assert (out / "area.csv").read_text().splitlines()[1].startswith(found["top"] + ",Fp32Adder,1,")
    assert "<svg" in (out / "treemap.svg").read_text()
    assert f"module {found['top']}" in (out / "netlist" / f"{found['top']}.v").read_text()
