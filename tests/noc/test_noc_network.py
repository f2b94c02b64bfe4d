"""The model of the network on its own, its traffic, and the command that shows it."""

from __future__ import annotations

import numpy as np
import pytest

from poblano.noc.parameters import NocParameters
from poblano.noc.timing import zero_load_latency
from poblano_flow.cli import main
from poblano_golden.errors import PoblanoError
from poblano_sw.noc.network import Network
from poblano_sw.noc.traffic import PATTERNS, Sources, measure_load


@pytest.mark.parametrize(("source", "destination"), [(0, 0), (0, 11), (7, 4), (11, 2)])
def test_one_flit_takes_what_the_formula_says(source, destination):
    parameters = NocParameters(topology="torus", width=4, height=3, channels=2)
    network = Network(parameters)
    nodes = np.arange(12)
    everyone = np.ones(12, np.bool_)
    flit = network.number(nodes, np.full(12, destination), everyone)
    step = network.step(nodes == source, flit, everyone)
    assert step.accepted.tolist() == (nodes == source).tolist()
    while not step.valid.any():
        step = network.step(~everyone, flit, everyone)
    assert np.flatnonzero(step.valid).tolist() == [destination]
    assert network.parts(step.flit)[0][destination] == source
    assert network.cycle - 1 == zero_load_latency(parameters, source, destination)
    network.step(~everyone, flit, everyone)
    assert network.num_held == 0


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_low_load_is_carried_whole(pattern):
    parameters = NocParameters(width=4, height=4, channels=4, depth=4)
    point = measure_load(parameters, pattern, 0.15, cycles=600, warm_up=100)
    assert point.accepted == pytest.approx(0.15, abs=0.03)
    assert 2 <= point.latency < 9


def test_neighbours_share_nothing():
    parameters = NocParameters(topology="torus", width=4, height=4, channels=2, depth=2)
    point = measure_load(parameters, "neighbour", 1.0, cycles=200, warm_up=50)
    assert (point.accepted, point.latency) == (1.0, 3.0)


def test_saturation_needs_channels():
    loads = [
        measure_load(
            NocParameters(width=4, height=4, channels=channels, depth=16 // channels),
            "uniform",
            1.0,
            cycles=400,
            warm_up=200,
        ).accepted
        for channels in (1, 4)
    ]
    assert loads[0] < 0.8 < loads[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("storm", 0.5, 1), "a pattern must be one of uniform, .*; got storm"),
        (("uniform", 1.5, 1), "a load must be above 0 and at most 1 flit a cycle; got 1.5"),
        (("uniform", 0.5, 0), "a packet must have 1 flit at least; got 0"),
        (("transpose", 0.5, 1), "transpose needs as many columns as rows; got 4x3"),
    ],
)
def test_traffic_that_cannot_be(arguments, message):
    with pytest.raises(PoblanoError, match=message):
        Sources(NocParameters(width=4, height=3).shape, *arguments, seed=1)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["noc", *arguments])
    return ended.value.code, *capsys.readouterr()


def test_route_over_the_wrap(capsys):
    code, out, _ = run(capsys, "route", "0", "3", "--size", "4x1", "--topology", "torus")
    assert (code, out.splitlines()) == (
        0,
        ["0 west to 3 on channel 3", "3 cycles for one flit without load"],
    )


def test_files(capsys, tmp_path):
    out = ("--out", str(tmp_path), "--size", "3x2")
    assert run(capsys, "picture", *out)[0] == 0
    assert run(capsys, "channels", *out)[0] == 0
    options = ("--pattern", "uniform", "--points", "2", "--cycles", "50")
    assert run(capsys, "curve", *options, *out)[0] == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"topology.svg", "channels.dot", "curve.csv", "curve.svg"}
    lines = (tmp_path / "curve.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["uniform", "0.5000"],
        ["uniform", "1.0000"],
    ]
    assert '"0.east.' in (tmp_path / "channels.dot").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("channels", "--topology", "torus", "--channels", "1"), "in a circle; got 0.north.0 -> 4"),
        (("route", "0", "99"), "a node must be 0..15; got 99"),
        (("picture", "--size", "4by4"), "a size must be WIDTHxHEIGHT, such as 4x4; got 4by4"),
    ],
)
def test_bad_input_is_one_line(capsys, arguments, message):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
