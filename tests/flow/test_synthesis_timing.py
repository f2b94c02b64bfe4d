"""Timing and power of a mapped design: names, constraints, activity of a simulation."""

import json

import pytest
from toy_liberty import TOY
from vcd import VCDWriter

from poblano_flow.cli import main
from poblano_flow.emission import emit
from poblano_flow.synthesis.activity import bit_activity, read_activity
from poblano_flow.synthesis.hierarchy import synthesise
from poblano_flow.synthesis.technology import select_library
from poblano_flow.synthesis.timing import analyse
from poblano_flow.tools import ToolMissingError, find_program
from poblano_flow.wave_file import Changes
from poblano_golden.errors import PoblanoError

needs_sta = pytest.mark.skipif(find_program("sta") is None, reason="OpenSTA is not installed")


@pytest.fixture
def area(tmp_path, monkeypatch, pair):
    """The fixture design in the toy library; its memory is a macro, which ends paths."""
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / "toy.lib"
    path.write_text(TOY)
    return synthesise(emit(pair), *select_library([path], "osu018"), macro_bits=128)


def wave(path, cycles, payload):
    """Write a VCD in which `i.payload` of the fixture design has a value for every cycle."""
    with path.open("w") as file, VCDWriter(file, timescale="1 ns") as writer:
        clk = writer.register_var("top", "clk", "wire", size=1, init=0)
        port = writer.register_var("top", "i__payload", "wire", size=19, init=0)
        for cycle in range(cycles):
            writer.change(port, 10 * cycle + 1, payload(cycle))
            writer.change(clk, 10 * cycle + 5, 1)
            writer.change(clk, 10 * cycle + 10, 0)
    return path


@needs_sta
def test_paths_have_the_names_of_the_design(area):
    timing = analyse(area, area.top, 100_000_000)
    assert timing.period == 10.0
    assert len(timing.paths) == 5
    ends = {path.end for path in timing.paths}
    assert all("leaf_" in end or "taps" in end or "o__payload" in end for end in ends)
    assert [path.slack for path in timing.paths] == sorted(path.slack for path in timing.paths)
    assert timing.shortest_period == pytest.approx(10 - timing.paths[0].slack)
    assert "Startpoint:" in timing.report


@needs_sta
def test_a_faster_clock_has_less_slack(area):
    slow, fast = (analyse(area, area.find("Leaf"), mhz * 10**6) for mhz in (100, 1000))
    assert fast.paths[0].slack < slow.paths[0].slack
    assert fast.default_power.total > slow.default_power.total > 0


@needs_sta
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("create_clock -name c -period 3 [get_ports clock]\n", "port 'clock' not found"),
        ("set_max_fanout 8 [current_design]\n", "create a clock of poblano_pair; got none"),
    ],
)
def test_constraints_without_their_clock_are_an_error(tmp_path, area, text, message):
    path = tmp_path / "own.sdc"
    path.write_text(text)
    with pytest.raises(PoblanoError, match=f"^{path}: an SDC must .*{message}"):
        analyse(area, area.top, None, constraints=path)
    with pytest.raises(PoblanoError, match=r"none\.sdc: an SDC must be a file; got no such file"):
        analyse(area, area.top, None, constraints=tmp_path / "none.sdc")


@needs_sta
def test_own_constraints_are_used(tmp_path, area):
    path = tmp_path / "own.sdc"
    path.write_text("create_clock -name c -period 3.5 [get_ports clk]\n")
    assert analyse(area, area.top, None, constraints=path).period == 3.5


@needs_sta
def test_power_follows_the_activity_of_a_simulation(tmp_path, area):
    powers = []
    for name, payload in (("idle", lambda _: 0), ("busy", lambda c: 0x7FFFF * (c % 2))):
        path = wave(tmp_path / f"{name}.vcd", 20, payload)
        activity = read_activity(path, None, area, area.top)
        assert "20 cycles" in activity.source
        powers.append(analyse(area, area.top, None, activity=activity))
    idle, busy = powers
    assert idle.default_power == busy.default_power
    assert idle.measured_power.total < busy.measured_power.total
    assert idle.measured_power.leakage == busy.measured_power.leakage


def test_activity_is_counted_a_bit(tmp_path, area):
    path = wave(tmp_path / "count.vcd", 9, lambda cycle: cycle % 4)
    found = read_activity(path, "top", area, area.top).of
    assert found["i__payload[0]"][0] == 1.0
    assert found["i__payload[1]"][0] == 0.5
    assert found["i__payload[2]"] == (0.0, 0.0)


def test_a_bit_that_is_unknown_counts_as_zero():
    changes = Changes([0, 10, 20, 30], ["xx", 2, "1x", 0])
    assert bit_activity(changes, 1, 0, 40, 5) == (0.5, 0.5)
    assert bit_activity(changes, 0, 0, 40, 5) == (0.0, 0.0)


def test_a_wave_of_something_else_is_an_error(tmp_path, area):
    path = wave(tmp_path / "a.vcd", 5, lambda _: 0)
    with pytest.raises(PoblanoError, match=r"must have its clk; got none in top\.inner$"):
        read_activity(path, "top.inner", area, area.top)
    path = wave(tmp_path / "b.vcd", 1, lambda _: 0)
    with pytest.raises(PoblanoError, match=r"top\.clk must rise at least twice; got 1$"):
        read_activity(path, None, area, area.top)


def test_without_opensta_the_message_says_so(area, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissingError, match=r"^sta must be installed"):
        analyse(area, area.top, None)


@needs_sta
def test_the_command_times_modules(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))
    path = tmp_path / "toy.lib"
    path.write_text(TOY)
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as done:
        main(["synth", "-b", "fp32_adder", "-l", str(path), "-t", "Fp32Adder", "-o", str(out)])
    assert done.value.code in (0, None)
    assert "Fp32Adder: clock of 1 ns" in capsys.readouterr().out
    [found] = json.loads((out / "timing.json").read_text())["modules"]
    assert found["tool"].startswith("OpenSTA ")
    assert found["shortest_period"] > 0
    with pytest.raises(SystemExit) as done:
        main(["synth", "-b", "fp32_adder", "-l", str(path), "-t", "Adder"])
    assert done.value.code == 2
    assert "a module must be one of Fp32Adder or a module's name" in capsys.readouterr().err
