"""Structures: what their checks refuse, what proves them, and how a search changes them."""

import re
from dataclasses import replace
from random import Random

import pytest

from poblano.arith.structure import (
    CompressorTree,
    Lane,
    PrefixGraph,
    from_json,
    load_structure,
    read_structure,
    to_json,
)
from poblano_flow.optimise import proof
from poblano_flow.optimise import search as searching
from poblano_flow.optimise.construct import GRAPHS, Delays, compressor_tree, graph_of
from poblano_flow.optimise.moves import changed, changed_graph, changed_tree
from poblano_flow.optimise.proof import prove, prove_adder
from poblano_flow.optimise.search import Point, Question, search, structure_file
from poblano_golden.errors import PoblanoError

OWN = load_structure("dot32_mxfp4")


def test_the_generators_structure_is_proved():
    found = prove(OWN, vectors=1 << 20)
    assert found.codes == 256
    assert found.vectors >= 10**6
    assert from_json(to_json(OWN)) == OWN


@pytest.mark.parametrize(
    ("adders", "message"),
    [
        ([(0, (0, 1, 2)), (0, (2, 3))], "adder 1 must take bits of column 0 that no other took"),
        ([(0, (0, 1, 5))], "adder 0 must take bits of column 0 that no other took, not 5"),
        ([(1, (0, 1))], "adder 0 must take bits of column 1 that no other took, not 0"),
        ([(0, (0, 1, 2, 3))], "adder 0 must have 2 or 3 bits of a column, not 4 of 0"),
        ([(2, (0, 1))], "adder 0 must have 2 or 3 bits of a column, not 2 of 2"),
        ([(0, (0, 1))], "column 0 must be left with 2 bits, not 3"),
    ],
)
def test_wrong_trees_are_refused(adders, message):
    with pytest.raises(PoblanoError, match=f"^{re.escape(message)}"):
        CompressorTree((4, 1), tuple(adders)).left()


def test_a_trees_rest_is_named():
    tree = CompressorTree((4, 1), ((0, (0, 1, 2)),))
    assert tree.left() == ((3, 5), (4, 6))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([(1, 1, 0)], "the prefix graph must give the carry of column 2"),
        ([(2, 2, 0)], "prefix node 2:0 must be new and join two earlier ones at 2"),
        ([(1, 1, 0), (1, 1, 0)], "prefix node 1:0 must be new and join two earlier ones at 1"),
    ],
)
def test_wrong_graphs_are_refused(nodes, message):
    with pytest.raises(PoblanoError, match=f"^{re.escape(message)}$"):
        PrefixGraph(4, tuple(nodes)).check()


def test_a_wrong_lane_is_refused():
    kind, inputs = OWN.lane.gates[3]
    other = {"nand2": "nor2", "and": "or"}.get(kind, "nand2")
    gates = (*OWN.lane.gates[:3], (other, inputs[:2]), *OWN.lane.gates[4:])
    with pytest.raises(PoblanoError, match=r"^a lane must give 0x"):
        Lane(gates, OWN.lane.outputs).check()
    with pytest.raises(PoblanoError, match=r"^gate 0 must read bits below 8, not 8$"):
        Lane((("inv", (8,)),), (8,) * 9).check()
    with pytest.raises(PoblanoError, match=r"^gate 0 must be a known kind with all its inputs"):
        Lane((("aoi21", (0, 1)),), (8,) * 9).check()


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("width", [2, 3, 6, 14, 17])
def test_graphs_to_begin_with_add(name, width):
    prove_adder(graph_of(name, width))


def test_sat_finds_a_graph_that_does_not_add(monkeypatch):
    monkeypatch.setattr(
        "poblano_flow.optimise.proof._adder_verilog",
        lambda _: "module adder(input a, output wrong); assign wrong = a; endmodule",
    )
    with pytest.raises(PoblanoError, match=r"^the prefix graph of 6 columns must add; SAT says"):
        prove_adder(graph_of("serial", 6))


def test_vectors_find_a_wrong_wire():
    outputs = (OWN.lane.outputs[1], OWN.lane.outputs[0], *OWN.lane.outputs[2:])
    wrong = replace(OWN, lane=replace(OWN.lane, outputs=outputs))
    with pytest.raises(PoblanoError, match=r"^vector \d+: the sum must be -?\d+ quarters, not "):
        proof._try_vectors(wrong, 1 << 14, 1)


@pytest.mark.parametrize("two_rows", [False, True])
def test_constructed_trees_keep_the_rules(two_rows):
    tree = compressor_tree((9, 4, 0, 1), {3: 5.0}, Delays(two_rows=two_rows))
    assert all(1 <= len(left) <= 2 for left in tree.left())


def test_changes_keep_what_is_computed():
    random = Random(1)
    structure = OWN
    for _ in range(12):
        structure = changed(structure, random)
    assert structure != OWN
    prove(structure, vectors=1 << 14)
    tree, graph = OWN.total, OWN.total_prefix
    for _ in range(200):
        tree, graph = changed_tree(tree, random), changed_graph(graph, random)
    assert tree != OWN.total
    tree.left()
    graph.check()


class FakeLibrary:
    name = "fake"


def fake_measure(structure, _library, _delay_ps, step=0):
    digest = sum(bits[0] * k for k, (_, bits) in enumerate(structure.total.adders))
    return Point(step, 4 + digest % 1000 / 1000, 900.0)


def test_a_search_goes_on_where_it_was_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(searching, "measure", fake_measure)
    question = Question("dot32_mxfp4", "x", 1000, 3, 12)
    seen = []
    whole = search(question, FakeLibrary(), tmp_path / "whole", lambda s: seen.append(s.step))
    assert seen == list(range(1, 13))

    def killed(state):
        if state.step == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(question, FakeLibrary(), tmp_path / "parts", killed)
    later = []
    parts = search(question, FakeLibrary(), tmp_path / "parts", lambda s: later.append(s.step))
    assert later == list(range(8, 13))
    assert parts == whole
    costs = [point.cost(1000) for point in whole.curve]
    assert costs == sorted(costs, reverse=True)
    path = tmp_path / "dot32_mxfp4.json"
    path.write_text(structure_file(question, whole, FakeLibrary()))
    assert read_structure(path) == whole.best[0]
    other = replace(question, seed=4)
    with pytest.raises(PoblanoError, match=r"state\.json: must be of the same search; got that of"):
        search(other, FakeLibrary(), tmp_path / "parts", seen.append)


def test_a_delay_too_long_costs():
    assert Point(0, 4.0, 1030).cost(1000) == pytest.approx(4.0)
    assert Point(0, 4.0, 1130).cost(1000) == pytest.approx(8.0)


def test_an_unknown_unit_and_broken_files_are_refused(tmp_path):
    with pytest.raises(PoblanoError, match=r"^a unit must be one of dot32_mxfp4; got fp7$"):
        search(Question("fp7", "x", 1000, 1, 1), FakeLibrary(), tmp_path, print)
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(PoblanoError, match=r"x\.json: must be a structure; got "):
        read_structure(path)
    (tmp_path / "state.json").write_text("[]")
    with pytest.raises(PoblanoError, match=r"state\.json: must be the state of a search; got "):
        search(Question("dot32_mxfp4", "x", 1000, 1, 1), FakeLibrary(), tmp_path, print)
