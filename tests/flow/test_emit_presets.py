"""Presets through the command line: emitted whole, the same twice, and clean under every tool."""

import json
import subprocess
import sys

import pytest
from test_cli import run

from poblano.config import load
from poblano.resources import preset_paths
from poblano_flow.emission import emit
from poblano_flow.emit import emission_files
from poblano_flow.output import is_whole
from poblano_flow.tools import program, program_environment
from poblano_verif import registry


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The preset tiny, emitted by the command."""
    folder = tmp_path_factory.mktemp("emit") / "tiny"
    command = [sys.executable, "-m", "poblano_flow", "emit", "--preset", "tiny", "-o", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_folder_is_whole_and_named_in_the_manifest(tiny):
    manifest = json.loads((tiny / "manifest.json").read_text())
    assert is_whole(tiny)
    assert manifest["configuration"]["hash"] == load("tiny").hash
    assert manifest["modules"][-1]["kind"] == "Slice"
    assert load(tiny / "configuration.yaml") == load("tiny")
    written = {str(path.relative_to(tiny)) for path in tiny.rglob("*") if path.is_file()}
    assert written == {*manifest["files"], "manifest.json"}
    memories = [module for module in manifest["modules"] if module["kind"] == "Sram"]
    assert (
        sum(
            memory["parameters"]["depth"] * memory["parameters"]["width"] * memory["count"]
            for memory in memories
        )
        == 8 * load("tiny").slice.l1.size
    )


def test_bytes_are_the_same_again(tiny):
    from poblano.slice import Slice

    configuration = load("tiny")
    again = emission_files(emit(Slice(configuration=configuration)), configuration)
    for name, text in again.items():
        assert (tiny / name).read_text() == text, name


def test_verilator_reads_the_folder_with_its_waivers_and_no_warning(tiny):
    """The whole design at once, as a user's own flow does it."""
    top = json.loads((tiny / "manifest.json").read_text())["top"]
    command = [program("verilator"), "--lint-only", "-Wall", "--top-module", top]
    done = subprocess.run(
        [*command, "verilator.vlt", "-F", "filelist.f"],
        cwd=tiny,
        env=program_environment(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_icarus_compiles_the_file_list(tiny):
    command = [program("iverilog"), "-g2005", "-Wall", "-t", "null", "-c", "filelist.f"]
    done = subprocess.run(command, cwd=tiny, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "preset",
    ["tiny", *(pytest.param(p, marks=pytest.mark.nightly) for p in preset_paths() if p != "tiny")],
)
def test_preset_is_clean(capsys, tmp_path, monkeypatch, preset):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "lint", "--preset", preset)
    assert status == 0, out
    assert out.count("clean") == 4


@pytest.mark.nightly
def test_every_block_is_clean_and_every_waiver_needed(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "lint", "--all")
    assert status == 0, out


def test_block_alone(capsys, tmp_path):
    name = registry.names()[0]
    status, out, err = run(capsys, "emit", "--block", name, "-o", str(tmp_path / "block"))
    assert (status, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'block'}: poblano_")
    manifest = json.loads((tmp_path / "block" / "manifest.json").read_text())
    assert manifest["configuration"] is None
    assert "configuration.yaml" not in manifest["files"]


def test_unknown_block_names_the_known_ones(capsys, tmp_path):
    status, out, err = run(capsys, "emit", "--block", "adder", "-o", str(tmp_path / "block"))
    assert (status, out) == (2, "")
    assert err.startswith("a block must be one of ")
    assert err.endswith("; got 'adder'\n")
    assert not (tmp_path / "block").exists()


def test_full_disk_is_one_line_and_leaves_nothing(capsys, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        folder = disk / "out"
        status, out, err = run(capsys, "emit", "--block", registry.names()[0], "-o", str(folder))
        assert (status, out) == (1, "")
        assert err == f"poblano: {folder}: no space left on device\n"
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_unwritable_folder_is_one_line(capsys):
    status, out, err = run(capsys, "emit", "--block", registry.names()[0], "-o", "/proc/out")
    assert (status, out) == (1, "")
    assert err.startswith("poblano: /proc/out: ")
    assert err.count("\n") == 1
