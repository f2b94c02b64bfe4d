"""The four programs that read emitted Verilog, each as a function from files to reports.

Every function takes the Verilog file of one module, stubs of the modules that it instantiates,
and the module's name. It returns what the program said about that file: nothing if all is well.
A program that fails without saying where gives a report of the rule `failed`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.tools import program, program_environment

__all__ = ["CHECKERS", "Checker", "Report"]

TIME_LIMIT = 600
"""Seconds that one program may take for one module."""


@dataclass(frozen=True, order=True)
class Report:
    """What a program said: where (line 0 for the whole file), under which rule, and what."""

    line: int
    rule: str
    message: str


Checker = Callable[[Path, Sequence[Path], str], list[Report]]

_VERILATOR = re.compile(
    r"^%(?:Warning|Error)(?:-(\w+))?: (?:(.+?):(\d+):\d+: )?(.*)$", re.MULTILINE
)
_ICARUS = re.compile(r"^(.+?):(\d+): (?:(warning|error|sorry): )?(.*)$", re.MULTILINE)
_YOSYS = re.compile(r"^(?:(.+?):(\d+): )?(Warning|ERROR): (.*)$", re.MULTILINE)


def check_verilator(source: Path, stubs: Sequence[Path], top: str) -> list[Report]:
    """Run `verilator --lint-only -Wall`."""
    arguments = ["--lint-only", "-Wall", "-Wno-fatal", "--top-module", top]
    done = _run([program("verilator"), *arguments, *_names(source, stubs)], source)
    reports = [
        Report(int(line or 0), rule or "error", message)
        for rule, file, line, message in _VERILATOR.findall(done.stderr)
        if not file or Path(file).name == source.name
    ]
    return _with_failure(reports, done)


def check_icarus(source: Path, stubs: Sequence[Path], top: str) -> list[Report]:
    """Run `iverilog -Wall` with SystemVerilog's keywords."""
    arguments = ["-Wall", "-g2012", "-t", "null", "-s", top]
    done = _run([program("iverilog"), *arguments, *_names(source, stubs)], source)
    reports = [
        Report(int(line), kind or "error", message)
        for file, line, kind, message in _ICARUS.findall(done.stderr)
        if Path(file).name == source.name
    ]
    return _with_failure(reports, done)


_YOSYS_SCRIPT = """
import sys
from pyosys import libyosys as ys
log, top, *files = sys.argv[1:]
design = ys.Design()
for command in (
    *(f"read_verilog {file}" for file in files),
    f"hierarchy -check -top {top}",
    "proc",
    "check -assert",
):
    ys.run_pass(f"tee -q -a {log} {command}", design)
"""


def check_yosys(source: Path, stubs: Sequence[Path], top: str) -> list[Report]:
    """Run Yosys: `read_verilog`, `hierarchy -check`, `proc`, `check -assert`."""
    log = source.with_suffix(".yosys.log")
    log.unlink(missing_ok=True)
    arguments = ["-c", _YOSYS_SCRIPT, log.name, top]
    done = _run([sys.executable, *arguments, *_names(source, stubs)], source)
    text = log.read_text(encoding="utf-8") if log.is_file() else ""
    reports = [
        Report(int(line or 0), kind.lower(), message)
        for file, line, kind, message in _YOSYS.findall(text)
        if not file or Path(file).name == source.name
    ]
    return _with_failure(reports, done)


_SLANG_SCRIPT = """
import json, sys
from pyslang import DiagnosticSeverity
from pyslang.driver import Driver
top, *files = sys.argv[1:]
driver = Driver()
driver.addStandardArgs()
parsed = driver.parseCommandLine(f"slang -Wextra -Wunused --top {top} {' '.join(files)}")
if not parsed or not driver.processOptions() or not driver.parseAllSources():
    driver.reportParseDiags()
    sys.exit(1)
compilation = driver.createCompilation()
analysis = driver.runAnalysis(compilation)
engine, manager = driver.diagEngine, driver.sourceManager
reports = []
for diagnostic in [*compilation.getAllDiagnostics(), *analysis.getDiagnostics()]:
    severity = engine.getSeverity(diagnostic.code, diagnostic.location)
    if severity.value > DiagnosticSeverity.Note.value:
        rule = engine.getOptionName(diagnostic.code) or str(diagnostic.code)
        reports.append((
            str(manager.getFileName(diagnostic.location)),
            manager.getLineNumber(diagnostic.location),
            rule,
            engine.formatMessage(diagnostic),
        ))
print(json.dumps(reports))
"""


def check_slang(source: Path, stubs: Sequence[Path], top: str) -> list[Report]:
    """Run slang: parse, elaborate, analyse, with the groups `extra` and `unused`."""
    arguments = ["-c", _SLANG_SCRIPT, top]
    done = _run([sys.executable, *arguments, *_names(source, stubs)], source)
    found = json.loads(done.stdout) if done.returncode == 0 else []
    reports = {
        Report(line, rule, message)
        for file, line, rule, message in found
        if Path(file).name == source.name
    }
    return _with_failure(sorted(reports), done)


CHECKERS: dict[str, Checker] = {
    "verilator": check_verilator,
    "icarus": check_icarus,
    "yosys": check_yosys,
    "slang": check_slang,
}
"""Every checker by the name of its program."""


def _names(source: Path, stubs: Sequence[Path]) -> list[str]:
    """Return the files relative to the folder of `source`, where the programs run."""
    return [str(file.relative_to(source.parent)) for file in (source, *stubs)]


def _run(command: Iterable[str | Path], source: Path) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    try:
        return subprocess.run(
            words,
            cwd=source.parent,
            env=program_environment(),
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 1, "", f"no answer in {TIME_LIMIT} s")


def _with_failure(reports: list[Report], done: subprocess.CompletedProcess[str]) -> list[Report]:
    if done.returncode == 0 or reports:
        return reports
    said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
    return [Report(0, "failed", f"exit status {done.returncode}: {said[-1]}")]
