"""Runs tests of a bench, or other commands, on a copy of the hardware with one text replaced."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import poblano


def run_bench(
    folder: Path, selection: str, file: str = "", old: str = "", new: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run what `-k selection` names; `old` must stand once in `file` of the package."""
    return run_poblano(folder, ["test", "-k", selection], file, old, new, **environment)


def run_poblano(
    folder: Path,
    arguments: list[str],
    file: str = "",
    old: str = "",
    new: str = "",
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command of `poblano`; `old` must stand once in `file` of the package."""
    copy = folder / "hw" / "poblano"
    shutil.copytree(Path(poblano.__file__).parent, copy)
    if file:
        source = (copy / file).read_text("utf-8")
        assert source.count(old) == 1, f"{old!r} must stand once in {file}"
        (copy / file).write_text(source.replace(old, new), "utf-8")
    constraints = Path(poblano.__file__).parents[2] / "constraints"
    if constraints.is_dir():
        (folder / "constraints").symlink_to(constraints)
    return subprocess.run(
        [sys.executable, "-m", "poblano_flow", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": str(copy.parent),
            "POBLANO_BUILD_DIR": str(folder / "build"),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
