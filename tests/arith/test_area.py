"""Area in a cell library: where it is looked for, what a gate equivalent is, what is measured."""

import gzip
import re

import numpy as np
import pytest
from amaranth.sim import Simulator

from poblano.arith.structure import load_structure
from poblano_flow.area import gate_equivalents
from poblano_flow.area_figures import figures
from poblano_flow.arith_figures import PlainDot32
from poblano_flow.optimise.proof import evaluate
from poblano_flow.synthesis.liberty import find_liberty, gate_area
from poblano_golden.errors import PoblanoError

TABLE = """({name}) {{
          index_1("0.001, 0.01, 0.1"); index_2("0.5, 5, 50");
          values("0.010, 0.020, 0.120", "0.012, 0.022, 0.122", "0.030, 0.040, 0.140"); }}"""
TIMING = "".join(
    f"        {kind}{TABLE.format(name='t')}\n"
    for kind in ("cell_rise", "cell_fall", "rise_transition", "fall_transition")
)


def cell(name, area, function, pins):
    inputs = "".join(
        f"    pin({pin}) {{ direction : input; capacitance : 1.0; }}\n" for pin in pins
    )
    arcs = "".join(
        f'      timing() {{\n        related_pin : "{pin}";\n'
        f"        timing_sense : negative_unate;\n{TIMING}      }}\n"
        for pin in pins
    )
    return (
        f"  cell({name}) {{\n    area : {area};\n{inputs}    pin(Y) {{\n      direction : output;\n"
        f'      function : "{function}";\n      max_capacitance : 60.0;\n{arcs}    }}\n  }}\n'
    )


FLIP_FLOP = """  cell(DFF_X1) {
    area : 9.0;
    ff(IQ, IQN) { next_state : "D"; clocked_on : "CK"; }
    pin(D) { direction : input; capacitance : 1.0; }
    pin(CK) { direction : input; clock : true; capacitance : 1.0; }
    pin(Q) { direction : output; function : "IQ"; }
  }
"""

HEADER = """library(small) {
  time_unit : "1ns";
  capacitive_load_unit(1, ff);
  lu_table_template(t) {
    variable_1 : input_net_transition;
    variable_2 : total_output_net_capacitance;
    index_1("0.001, 0.01, 0.1");
    index_2("0.5, 5, 50");
  }
"""

LIBRARY = (
    HEADER
    + cell("INV_X1", 1.0, "!A", "A")
    + cell("BUF_X1", 1.5, "A", "A")
    + cell("NAND2_X2", 3.0, "!(A&B)", "AB")
    + cell("NAND2_X1", 2.0, "!(A&B)", "AB")
    + cell("NOR2_X1", 2.5, "!(A|B)", "AB")
    + FLIP_FLOP
    + "}\n"
)

MODULE = """module top(input clk, input a, input b, output reg q, output y);
  inner i(.a(a), .b(b), .y(y));
  always @(posedge clk) q <= y;
endmodule
module inner(input a, input b, output y);
  assign y = ~(a & b);
endmodule
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / "small.lib"
    path.write_text(LIBRARY)
    return path


def test_a_module_is_flattened_and_its_cells_are_counted(library):
    found = gate_equivalents(MODULE, "top", [library])
    assert found.area == 2.0 + 9.0
    assert found.sequential_area == 9.0
    assert found.gate == 2.0
    assert found.gate_equivalents == 5.5
    assert 5 <= found.delay <= 150


def test_a_gate_equivalent_is_the_smallest_nand(library):
    assert gate_area([library]) == 2.0


def test_a_library_without_a_nand_is_refused(tmp_path):
    path = tmp_path / "none.lib"
    path.write_text(HEADER + cell("INV_X1", 1.0, "!A", "A") + "}\n")
    message = "a library must have a two-input NAND (nand2 in its name); got none.lib"
    with pytest.raises(PoblanoError, match=f"^{re.escape(message)}$"):
        gate_area([path])


@pytest.mark.parametrize("name", ["sky130_fd_sc_hd__nand2_1", "sg13g2_nand2_1", "NAND2xp5_ASAP7"])
def test_nands_of_other_libraries_are_known(name, tmp_path):
    path = tmp_path / "other.lib"
    path.write_text(HEADER + cell(name, 3.75, "!(A&B)", "AB") + cell("NAND2B1", 1, "A", "A") + "}")
    assert gate_area([path]) == 3.75


def test_a_packed_library_is_unpacked(tmp_path, monkeypatch):
    (tmp_path / "small.lib.gz").write_bytes(gzip.compress(LIBRARY.encode()))
    monkeypatch.setenv("POBLANO_LIBERTY_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = find_liberty("small")
    assert found.read_text() == LIBRARY
    assert found.suffix == ".lib"


def test_without_a_library_there_is_a_reason(tmp_path, monkeypatch):
    monkeypatch.delenv("POBLANO_LIBERTY_DIR", raising=False)
    wanted = "POBLANO_LIBERTY_DIR must name a folder with nangate45_typ.lib or .lib.gz; got "
    with pytest.raises(PoblanoError, match=f"^{re.escape(wanted)}nothing$"):
        figures()
    monkeypatch.setenv("POBLANO_LIBERTY_DIR", str(tmp_path))
    with pytest.raises(PoblanoError, match=f"^{re.escape(wanted + str(tmp_path))}$"):
        figures()


def test_a_broken_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "small.lib.gz").write_bytes(b"no gzip")
    monkeypatch.setenv("POBLANO_LIBERTY_DIR", str(tmp_path))
    with pytest.raises(PoblanoError, match=r"small\.lib\.gz: must be a readable gzip file; got "):
        find_liberty("small")


def test_an_error_of_yosys_is_an_error(library):
    with pytest.raises(
        PoblanoError, match=r"^missing: Yosys must end without an error; got ERROR: .*missing"
    ):
        gate_equivalents(MODULE, "missing", [library])


def test_plain_arithmetic_computes_the_same_sum():
    component = PlainDot32()
    numbers = np.random.default_rng(1)
    a, b = numbers.integers(0, 16, (2, 64, 32), dtype=np.uint8)
    a[0] = b[0] = 7
    a[1], b[1] = 15, 7
    wanted = evaluate(load_structure("dot32_mxfp4"), a, b)
    assert wanted[:2].tolist() == [32 * 144, -32 * 144]
    found = []

    async def bench(ctx):
        for row in range(len(a)):
            for port, codes in ((component.a_codes, a[row]), (component.b_codes, b[row])):
                ctx.set(port.as_value(), sum(int(code) << 4 * k for k, code in enumerate(codes)))
            found.append(ctx.get(component.sum.as_signed()))

    simulator = Simulator(component)
    simulator.add_testbench(bench)
    simulator.run()
    assert found == wanted.tolist()
