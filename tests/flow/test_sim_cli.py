"""`poblano test` from end to end: exit status, summary, reports of failures, the merged file."""

import re
import shlex
import sys
import threading
import xml.etree.ElementTree as ET
from functools import partial
from pathlib import Path

import pytest
from sim_designs import Calculator
from typer.testing import CliRunner

from poblano_flow import regression
from poblano_flow.build_cache import build_root
from poblano_flow.cli import build_app
from poblano_flow.selection import plan
from poblano_flow.wave_file import open_wave
from poblano_verif import registry
from poblano_verif.block_types import Block, Variant

BENCHES = Path(__file__).parent / "sim_benches"
ICARUS = {"icarus": {}}


class BrokenBlock:
    """A component that cannot be made."""

    def __init__(self):
        raise ValueError("width must be at least 2, not 1")


def blocks(*found):
    return {block.name: block for block in found}


@pytest.fixture(autouse=True)
def some_blocks(monkeypatch, tmp_path):
    """A small registry, its benches, and a build folder for the runs."""
    monkeypatch.setattr(sys, "path", [str(BENCHES), *sys.path])
    monkeypatch.setenv("COLUMNS", "200")
    variants = {
        "right": Variant(Calculator, ICARUS),
        "wrong": Variant(partial(Calculator, fault="value"), ICARUS),
        "long": Variant(Calculator, ICARUS, nightly=True),
    }
    table = blocks(
        Block("calculator", "operates on bytes", variants, bench="calculator_bench"),
        Block("ordered", "a bad bench", {"only": variants["right"]}, bench="order_dependent"),
        Block("ending", "bad ends", {"only": variants["right"]}, bench="endings"),
        Block("broken", "no block", {"only": Variant(BrokenBlock, ICARUS)}, bench="endings"),
        Block("unreadable", "no bench", {"only": variants["right"]}, bench="no_tests"),
    )
    monkeypatch.setattr(registry, "BLOCKS", table)
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(tmp_path / "build"))


def poblano(*arguments):
    return CliRunner().invoke(build_app(), arguments)


def test_everything_passes():
    result = poblano("test", "-k", "calculator:right", "--jobs", "2")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert re.fullmatch(r"passed  calculator:right/icarus  3 tests, [\d.]+ s", lines[0])
    path = build_root() / "test" / "results.xml"
    assert lines[-1] == f"3 passed, 0 failed: {path}"
    (suite,) = ET.parse(path).getroot()
    assert suite.get("name") == "calculator:right/icarus"
    assert [case.get("name") for case in suite] == [
        "random_operations/pause=0.0",
        "random_operations/pause=0.4",
        "one_addition",
    ]


def test_failure_is_reported_with_everything_needed():
    result = poblano("test", "-k", "calculator:", "--seed", "5", "--jobs", "2")
    assert result.exit_code == 1
    lines = result.output.splitlines()
    assert lines[-1].startswith("4 passed, 2 failed: ")
    start = next(n for n, line in enumerate(lines) if line.startswith("FAILED") and "seed" in line)
    name = "calculator:wrong/icarus/random_operations/pause=0.0"
    assert lines[start] == f"FAILED {name} (seed 5)"
    found = re.fullmatch(
        r"  transaction (\d+) of o, cycle (\d+): not as expected", lines[start + 1]
    )
    assert found
    assert lines[start + 2].split() == ["field", "expected", "actual"]
    assert lines[start + 4].split()[0::3] == ["value", "<-"]
    entries = dict(line.split(maxsplit=1) for line in lines[start + 5 : start + 10])
    assert list(entries) == ["log", "waveform", "signals", "look", "repeat"]

    wave = open_wave(Path(entries["waveform"]))
    assert f"{wave.top}.second.held" in wave.widths
    save = Path(entries["signals"]).read_text()
    assert "o (output stream)" in save
    marker = re.search(r"^\*[-\d.]+ (\d+)", save, re.MULTILINE)
    assert int(marker[1]) == int(found[2]) * 1000 + 500

    look = shlex.split(entries["look"])
    assert look == ["poblano", "waves", entries["waveform"], "--around", found[2]]
    shown = poblano(*look[1:])
    assert shown.exit_code == 0
    expected, actual = lines[start + 4].split()[1:3]
    assert f"{found[2]:>8}  o         op=" in shown.output
    assert any(actual in line and expected not in line for line in shown.output.splitlines())

    repeat = shlex.split(entries["repeat"])
    assert repeat == ["poblano", "test", "-k", name, "--seed", "5", "--waves"]
    again = poblano(*repeat[1:])
    assert again.exit_code == 1
    assert found[0] in again.output.splitlines()
    assert again.output.splitlines()[-1].startswith("0 passed, 1 failed")


def test_failure_that_needs_its_neighbours():
    result = poblano("test", "-k", "ordered")
    assert result.exit_code == 1
    assert "something was left behind" in result.output
    assert "it passes alone; this waveform shows it among the others" in result.output
    assert "1 passed, 1 failed" in result.output


def test_block_that_cannot_be_made_does_not_stop_the_others():
    result = poblano("test", "-k", "broken or calculator:right", "--jobs", "2")
    assert result.exit_code == 1
    assert "ValueError: width must be at least 2, not 1" in result.output
    assert "3 passed, 1 failed" in result.output


def test_crash_is_reported():
    result = poblano("test", "-k", "ending:only/icarus/crashes")
    assert result.exit_code == 1
    assert "FAILED ending:only/icarus" in result.output
    assert "the simulator crashed with signal 9 without results" in result.output


@pytest.mark.parametrize("expression", ["unreadable", "nothing"])
def test_selecting_nothing_is_an_error(expression):
    result = poblano("test", "-k", expression)
    assert result.exit_code != 0
    assert "selects none" in str(result.exception)


def test_list():
    result = poblano("test", "--list", "-k", "calculator")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) == 6
    assert "calculator:wrong/icarus/one_addition" in result.output.splitlines()
    assert "long" not in result.output
    nightly = poblano("test", "--list", "-k", "calculator", "--nightly")
    assert "calculator:long/icarus/one_addition" in nightly.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sim", "spice"], "must be one of verilator, icarus; got 'spice'"),
        (["--block", "calculator"], "--bench and --block belong together"),
        (["--bench", "none.py", "--block", "calculator"], "none.py: a testbench must be"),
        (["--bench", str(BENCHES / "endings.py"), "--block", "nothing"], "got 'nothing'"),
    ],
)
def test_bad_arguments(arguments, message):
    result = poblano("test", *arguments)
    assert result.exit_code != 0
    assert message in str(result.exception)


def test_bench_in_a_file():
    path = BENCHES / "calculator_bench.py"
    result = poblano("test", "--bench", str(path), "--block", "calculator", "-k", "one_addition")
    assert result.exit_code == 0, result.output
    assert "1 passed, 0 failed" in result.output
    result = poblano("test", "--bench", str(path), "--block", "calculator:wrong", "-k", "0.0")
    assert f"poblano test --bench {path} --block calculator:wrong -k" in result.output


def test_repeating_a_nightly_test_takes_the_option(monkeypatch):
    variant = Variant(partial(Calculator, fault="value"), ICARUS, nightly=True)
    block = Block("nightly", "long", {"only": variant}, bench="calculator_bench")
    monkeypatch.setattr(registry, "BLOCKS", blocks(block))
    result = poblano("test", "-k", "nightly and 0.0", "--nightly")
    assert result.exit_code == 1
    (repeat,) = [line for line in result.output.splitlines() if line.startswith("  repeat")]
    assert repeat.endswith("--waves --nightly")


def test_interrupt_ends_what_runs_and_fails_what_is_left(monkeypatch):
    jobs = plan("ending:only/icarus/never_ends or calculator:right", ("icarus",))
    running = threading.Event()
    real = regression.run

    def run(*arguments, **options):
        running.set()
        return real(*arguments, **options)

    def interrupt(futures):
        assert running.wait(60)
        raise KeyboardInterrupt
        yield futures

    monkeypatch.setattr(regression, "run", run)
    monkeypatch.setattr(regression, "as_completed", interrupt)
    results = regression.run_all(jobs, regression.Settings(jobs=1))
    assert [result.passed for result in results] == [False, False]
    assert all("interrupted" in result.reports[0] for result in results)
    suites = ET.parse(regression.results_path()).getroot()
    assert [suite.get("failures") for suite in suites] == ["1", "1"]


def test_missing_simulator_is_one_clear_line(monkeypatch):
    from poblano_flow import tools

    monkeypatch.setattr(tools, "find_program", lambda _: None)
    result = poblano("test", "-k", "calculator:right")
    assert result.exit_code != 0
    assert "must be installed (poblano doctor prints how)" in str(result.exception)
