"""Builds and runs of both simulators, with designs that are right and designs that are wrong."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sim_designs import Calculator, Constant, Keywords

from poblano_flow.build_cache import BuildError
from poblano_flow.emission import emit
from poblano_flow.sim_options import SIMULATORS, SimOptions
from poblano_flow.simulate import build, run
from poblano_flow.wave_file import open_wave
from poblano_golden.errors import PoblanoError

BENCHES = Path(__file__).parent / "sim_benches"
WAVES = SimOptions(waves=True)


@pytest.fixture(autouse=True)
def benches_importable(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHES), *sys.path])


@pytest.fixture(scope="module")
def emissions():
    """Every design once."""
    made = {f"calculator {fault}".strip(): Calculator(fault=fault) for fault in ("", "value")}
    made |= {f"calculator {fault}": Calculator(fault=fault) for fault in ("payload", "hang")}
    made |= {"constant": Constant(), "keywords": Keywords()}
    return {name: emit(component) for name, component in made.items()}


def only(*names):
    """Return a filter of test names."""
    return r"\.(" + "|".join(names) + r")(/|$)"


def failure(result):
    """Return the message of the one failed case."""
    (case,) = [case for case in result.cases if case.status == "failed"]
    return case.message


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_right_design_passes(simulator, emissions, tmp_path):
    made = build(emissions["calculator"], simulator, jobs=2)
    result = run(made, "calculator_bench", tmp_path, seed=3)
    assert [case.status for case in result.cases] == ["passed"] * 3
    assert result.passed
    assert result.waveform is None
    assert all(case.end_ns > 0 for case in result.cases)


def test_same_seed_repeats_and_another_does_not(emissions, tmp_path):
    made = build(emissions["calculator"], "icarus")
    ends = [
        [case.end_ns for case in run(made, "calculator_bench", tmp_path, seed=seed).cases]
        for seed in (3, 3, 4)
    ]
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_wrong_value_is_reported_with_transaction_cycle_and_fields(simulator, emissions, tmp_path):
    made = build(emissions["calculator value"], simulator, jobs=2)
    result = run(made, "calculator_bench", tmp_path, seed=3, test_filter=only("random_operations"))
    assert not result.passed
    message = result.cases[0].message
    head, header, op, value = message.splitlines()
    assert re.fullmatch(r"transaction \d+ of o, cycle \d+: not as expected", head)
    assert header.split() == ["field", "expected", "actual"]
    assert op.split()[0] == "op"
    assert "<-" not in op
    name, expected, actual, mark = value.split()
    assert (name, mark) == ("value", "<-")
    assert int(expected, 16) ^ int(actual, 16) == 1
    assert int(expected, 16) >= 128


def test_payload_that_does_not_hold_still_is_reported(emissions, tmp_path):
    made = build(emissions["calculator payload"], "icarus")
    result = run(made, "calculator_bench", tmp_path, seed=1, test_filter=only("random_operations"))
    messages = [case.message for case in result.cases if case.status == "failed"]
    assert any("a payload that waits must hold still" in message for message in messages)


def test_hang_is_reported_with_every_handshake(emissions, tmp_path):
    made = build(emissions["calculator hang"], "icarus")
    result = run(made, "calculator_bench", tmp_path, seed=1, test_filter=only("one_addition"))
    lines = failure(result).splitlines()
    assert "something must move within 50 cycles" in lines[0]
    assert lines[1:] == [
        "  in  i: valid 1 ready 0 waits for ready",
        "  out o: valid 0 ready 1 waits for valid",
    ]


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(
    ("design", "test"),
    [("constant", "constants_at_time_zero"), ("keywords", "keywords_as_names")],
)
def test_time_zero_and_names(simulator, design, test, emissions, tmp_path):
    made = build(emissions[design], simulator, jobs=2)
    assert run(made, "port_checks", tmp_path, seed=1, test_filter=only(test)).passed


@pytest.mark.parametrize(
    "options",
    [WAVES, replace(WAVES, wave_format="vcd"), replace(WAVES, hierarchical=("Stage",))],
    ids=["fst", "vcd", "hierarchical"],
)
def test_waveform_holds_the_signals_of_every_instance(options, emissions, tmp_path):
    made = build(emissions["calculator"], options=options, jobs=2)
    result = run(
        made, "calculator_bench", tmp_path, seed=1, waves=True, test_filter=only("one_addition")
    )
    assert result.passed
    wave = open_wave(result.waveform)
    inside = [f"{wave.top}.{name}.held" for name in ("first", "second")]
    changes = wave.load([*inside, f"{wave.top}.o__valid"])
    for name in inside:
        assert list(changes[name].values)[-1] == 1, name
    assert 1 in changes[f"{wave.top}.o__valid"].values
    text = result.signals.read_text()
    assert text.index("+{clk}") < text.index("i (input stream)") < text.index("o (output stream)")
    assert "#{i__payload.op}" in text
    translated = result.signals.with_suffix(".i__payload_op.txt").read_text()
    assert translated.splitlines() == ["0 ADD", "1 SUBTRACT", "2 SWAP"]


def test_debug_build_shows_every_signal(emissions, tmp_path):
    for debug in (False, True):
        made = build(emissions["calculator"], options=SimOptions(debug=debug), jobs=2)
        result = run(made, "endings", tmp_path, seed=1, test_filter=only("reads_inside"))
        assert result.passed == debug


def test_wave_window(emissions, tmp_path):
    made = build(emissions["calculator"], options=WAVES, jobs=2)
    result = run(
        made,
        "endings",
        tmp_path,
        seed=1,
        waves=True,
        wave_window=(3000, 6000),
        test_filter=only("passes"),
    )
    wave = open_wave(result.waveform)
    (clock,) = wave.load([f"{wave.top}.clk"]).values()
    assert clock.times[1] >= 3000
    assert clock.times[-1] <= 6000


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ("interrupted_while_simulating", "exit status 130"),
        ("interrupted_while_stuck", "exit status 143"),
    ],
)
def test_interrupted_run_fails_and_leaves_a_readable_waveform(test, message, emissions, tmp_path):
    made = build(emissions["calculator"], options=WAVES, jobs=2)
    result = run(made, "endings", tmp_path, seed=1, waves=True, test_filter=only(test))
    assert message in failure(result)
    wave = open_wave(result.waveform)
    (clock,) = wave.load([f"{wave.top}.clk"]).values()
    assert len(clock.rising_edges()) >= 25


def test_interrupted_run_of_icarus(emissions, tmp_path):
    made = build(emissions["calculator"], "icarus", options=WAVES)
    result = run(
        made,
        "endings",
        tmp_path,
        seed=1,
        waves=True,
        test_filter=only("interrupted_while_simulating"),
    )
    assert not result.passed
    wave = open_wave(result.waveform)
    (clock,) = wave.load([f"{wave.top}.clk"]).values()
    assert len(clock.rising_edges()) >= 25


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(
    ("bench", "test", "message"),
    [
        ("endings", "crashes", "the simulator crashed with signal 9 without results"),
        ("endings", "leaves", "the simulation ended without results"),
        ("endings", "no_such_test", "no test was run"),
        ("no_tests", "any", "without results"),
        ("broken", "any", "without results"),
        ("endings", "reaches_its_limit", ""),
    ],
)
def test_bad_ending_is_a_failure(simulator, bench, test, message, emissions, tmp_path):
    made = build(emissions["calculator"], simulator, jobs=2)
    result = run(made, bench, tmp_path, seed=1, test_filter=only(test))
    assert not result.passed
    assert message in failure(result)


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_wall_time_limit(simulator, emissions, tmp_path):
    made = build(emissions["calculator"], simulator, jobs=2)
    result = run(made, "endings", tmp_path, seed=1, test_filter=only("never_ends"), limit=3.0)
    assert not result.passed
    assert "ended after its limit" in failure(result)


def test_results_of_an_earlier_run_are_gone(emissions, tmp_path):
    made = build(emissions["calculator"], "icarus")
    assert run(made, "endings", tmp_path, seed=1, test_filter=only("passes")).passed
    assert not run(made, "endings", tmp_path, seed=1, test_filter=only("leaves")).passed


def test_waves_need_a_build_with_waves(emissions, tmp_path):
    made = build(emissions["calculator"], "icarus")
    with pytest.raises(PoblanoError, match="needs a build with waves"):
        run(made, "endings", tmp_path, seed=1, waves=True)


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_verilog_that_is_wrong_is_a_build_error(simulator, emissions, tmp_path, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path))
    good = emissions["calculator"]
    top = replace(good.top, verilog=good.top.verilog.replace("endmodule", "oops\nendmodule"))
    with pytest.raises(BuildError, match="must end with exit status 0; got"):
        build(replace(good, modules=(*good.modules[:-1], top)), simulator)


@pytest.mark.parametrize(
    ("simulator", "missing"),
    [("verilator", "c++"), ("verilator", "make"), ("icarus", "iverilog"), ("icarus", "vvp")],
)
def test_missing_tool(simulator, missing, emissions, monkeypatch):
    from poblano_flow import tools

    found = tools.find_program
    monkeypatch.setattr(
        tools, "find_program", lambda name: None if name == missing else found(name)
    )
    with pytest.raises(PoblanoError, match=re.escape(f"{missing} must be installed")):
        build(emissions["calculator"], simulator)


def test_unknown_simulator(emissions):
    with pytest.raises(PoblanoError, match="must be one of verilator, icarus; got 'spice'"):
        build(emissions["calculator"], "spice")
