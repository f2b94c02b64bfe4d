"""The wheel carries presets and waivers, and works where no source tree is."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel, without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-q"]
    subprocess.run([*command, "-w", folder, ROOT], check=True)
    (path,) = folder.glob("poblano-*.whl")
    return path


def test_wheel_carries_every_preset(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "constraints").rglob("*.yaml"):
        assert f"poblano/_constraints/{path.relative_to(ROOT / 'constraints')}" in names
    for package in ("poblano", "poblano_golden", "poblano_sw", "poblano_verif", "poblano_flow"):
        assert f"{package}/__init__.py" in names
    assert {f"poblano_verif/hdl/{name}.v" for name in ("ideal_memory", "event_log")} <= names
    assert not any(name.startswith(("tests/", "build/")) for name in names)


def test_wheel_works_when_installed(wheel, tmp_path):
    """Installed into an environment of its own, in front of this one's other packages."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    site = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    others = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "others.pth").write_text("\n".join(others))
    python = tmp_path / "venv" / "bin" / "python"

    def run(*arguments):
        done = subprocess.run(
            [python, "-m", "poblano_flow", *arguments], capture_output=True, text=True, cwd=tmp_path
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    code = "import poblano.resources as r; print(r.constraints())"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(site / "poblano" / "_constraints")
    for preset in ("tiny", "bench", "small", "jalapeno"):
        assert run("config", "validate", preset).startswith(f"{preset}: valid, {preset}, hash ")
    assert run("--version") == "poblano 0.1.0\n"
