"""The command line: what it prints where, and its exit status."""

import json
import os
import subprocess
import sys

import pytest
import typer

from poblano.config import Configuration, load
from poblano_flow import cli
from poblano_golden.errors import PoblanoError


def run(capsys, *arguments):
    """Run the command line in this process; return exit status, stdout and stderr."""
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    output = capsys.readouterr()
    return caught.value.code or 0, output.out, output.err


def test_version_and_help(capsys):
    assert run(capsys, "--version") == (0, "poblano 0.1.0\n", "")
    status, out, err = run(capsys, "--help")
    assert (status, err) == (0, "")
    for word in ("config", "emit", "lint", "doctor", "-P slice.tensor.rows=8", "POBLANO_DEBUG=1"):
        assert word in out


@pytest.mark.parametrize(
    "command", [["emit"], ["lint"], ["doctor"], ["config", "show"], ["config", "diff"]]
)
def test_every_help_page_has_examples(capsys, command):
    status, out, _ = run(capsys, *command, "--help")
    assert status == 0
    assert "Example" in out
    assert f"poblano {' '.join(command)}" in out


@pytest.mark.parametrize("arguments", [["emitt"], ["emit", "--presett", "x"], ["config", "show"]])
def test_wrong_usage_is_status_2(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert "Usage: poblano" in err


def test_show_prints_a_file_that_reads_back(capsys, tmp_path):
    status, out, err = run(capsys, "config", "show", "bench", "-P", "slice.tensor.rows=4")
    path = tmp_path / "mine.yaml"
    path.write_text(out)
    assert (status, err) == (0, "")
    assert load(path) == load("bench", ["slice.tensor.rows=4"])
    assert f"# hash                        {load(path).hash}\n" in out
    assert "# peak mxfp4*mxfp4            2,048 MAC/cycle a slice, 0.0041 PFLOP/s the chip\n" in out


def test_show_prints_the_figures_of_the_chip(capsys):
    _, out, _ = run(capsys, "config", "show", "jalapeno")
    for line in (
        "# slices                      64",
        "# peak mxfp4*mxfp4            61,440 MAC/cycle a slice, 13.4 PFLOP/s the chip",
        "# peak mxfp8_e4m3*mxfp4       30,720 MAC/cycle a slice, 6.68 PFLOP/s the chip",
        "# L1 of the chip              32 MiB",
        "# HBM capacity                216 GiB",
        "# HBM bandwidth of the pins   15.36 TB/s",
    ):
        assert f"{line}\n" in out


def test_show_as_json(capsys):
    status, out, _ = run(capsys, "config", "show", "tiny", "--format", "json")
    record = json.loads(out)
    assert status == 0
    assert record["hash"] == load("tiny").hash
    assert Configuration.model_validate(record["configuration"]) == load("tiny")
    assert record["derived"]["slice_peak_macs_per_cycle"]["mxfp4*mxfp4"] == 128


def test_validate(capsys, tmp_path):
    status, out, err = run(capsys, "config", "validate", "tiny")
    assert (status, out, err) == (0, f"tiny: valid, tiny, hash {load('tiny').hash}\n", "")
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nrows: 2\n")
    status, out, err = run(capsys, "config", "validate", str(path))
    assert (status, out) == (2, "")
    assert f"{path}:2:1: unknown key in the configuration (known: name, notes," in err
    assert len(err.splitlines()) == 4


def test_schema(capsys):
    status, out, _ = run(capsys, "config", "schema")
    assert status == 0
    assert json.loads(out) == Configuration.model_json_schema()


def test_diff(capsys):
    assert run(capsys, "config", "diff", "tiny", "tiny") == (0, "", "")
    status, out, err = run(capsys, "config", "diff", "tiny", "jalapeno")
    assert (status, err) == (1, "")
    assert 'slice.l1.size: "64 KiB" -> "512 KiB"\n' in out
    assert 'slice.hbm.pin_rate: absent -> "10 Gb/s"\n' in out
    assert "slice.tensor.pipeline.add" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config", "show", "bnch"],
         ("a preset must be one of bench, jalapeno, small, tiny (did you mean 'bench'?); "
         "got 'bnch'")),
        (["emit"], "give one of --preset, --config and --block; got none"),
        (["emit", "-p", "tiny", "-c", "x.yaml"],
         "give one of --preset and --config; got --preset tiny and --config x.yaml"),
        (["emit", "-p", "tiny", "-b", "adder"],
         "give one of --preset, --config and --block; got --block adder beside a configuration"),
        (["emit", "-P", "name=x"], "-P needs --preset or --config; got -P name=x alone"),
        (["emit", "-p", "tiny", "-P", "slice.tensor.rows=0"],
         "-P slice.tensor.rows: slice.tensor.rows must be an integer of at least 1; got 0"),
        (["lint", "-p", "tiny", "--tools", "spyglass"],
         "--tools must name some of verilator, icarus, yosys, slang; got spyglass"),
    ],
)  # fmt: skip
def test_users_mistake_is_one_line_and_status_2(capsys, arguments, message):
    assert run(capsys, *arguments) == (2, "", f"{message}\n")


def failing_app(error):
    def fail():
        raise error

    app = typer.Typer()
    app.command()(fail)
    return app


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (PoblanoError("a rule; got 3"), 2, "a rule; got 3\n"),
        (OSError(28, "No space left on device", "/mnt/x"), 1,
         "poblano: /mnt/x: no space left on device\n"),
        (PermissionError(13, "Permission denied", "out"), 1, "poblano: out: permission denied\n"),
        (ZeroDivisionError("division by zero"), 1,
         "poblano: internal error, please report it: ZeroDivisionError: division by zero\n"),
    ],
)  # fmt: skip
def test_error_shows_its_traceback_only_on_request(capsys, monkeypatch, error, status, line):
    monkeypatch.setattr(cli, "build_app", lambda: failing_app(error))
    monkeypatch.delenv("POBLANO_DEBUG", raising=False)
    assert run(capsys) == (status, "", line)
    monkeypatch.setenv("POBLANO_DEBUG", "1")
    again, _, err = run(capsys)
    assert again == status
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith(line)


def test_installed_command_has_the_exit_status():
    command = [sys.executable, "-m", "poblano_flow", "config", "validate", "bnch"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_reader_that_stops_early_is_no_error():
    script = f"{sys.executable} -m poblano_flow config schema | head -1"
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ}
    )
    assert (done.stdout, done.stderr) == ("{\n", "")
