"""Lint: every distinct module of an emission, read by every tool, over stubs of its children.

A module is checked alone, with empty modules in place of those that it instantiates, so that the
work follows the number of distinct modules. The top is checked in the same way, which covers
every connection once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.emission import Emission, Module
from poblano_flow.lint_tools import CHECKERS, Report
from poblano_flow.waivers import PORT_NOTE, Waiver, matches

__all__ = ["Finding", "LintResult", "lint"]

_QUOTED = re.compile(r"'(\S+?)'")
_MODULE = re.compile(r"^module \S+?\((.*?)\);", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Finding:
    """One report of one tool about one module.

    Attributes
    ----------
    tool, rule:
        The tool, and its name of the rule.
    module, kind:
        The module, and the class of its component.
    file, line:
        Where; line 0 stands for the whole file.
    message:
        The tool's words; ` (a port)` follows if they quote the name of a port.
    """

    tool: str
    rule: str
    module: str
    kind: str
    file: Path
    line: int
    message: str

    def __str__(self) -> str:
        """Return the finding in one line."""
        return f"{self.file}:{self.line}: {self.tool} {self.rule}: {self.message} [{self.kind}]"


@dataclass(frozen=True)
class LintResult:
    """What lint found.

    Attributes
    ----------
    modules:
        Number of distinct modules that were read.
    findings:
        The findings that no waiver covers.
    waived:
        Waiver to the number of findings that it covered; 0 for one that was not needed.
    """

    modules: int
    findings: tuple[Finding, ...]
    waived: dict[Waiver, int]


def lint(
    emissions: Iterable[Emission],
    tools: Sequence[str],
    waivers: Sequence[Waiver],
    folder: Path,
    progress: Callable[[str], None] = lambda _: None,
) -> LintResult:
    """Read every distinct module of `emissions` with every tool.

    Parameters
    ----------
    emissions:
        The designs; a module that several share is read once.
    tools:
        Names of `CHECKERS`.
    waivers:
        Accepted findings.
    folder:
        Where the Verilog is written for the tools to read; findings point into it.
    progress:
        Called with a line for every check that is done.

    Raises
    ------
    ToolMissingError
        If a tool is not installed.
    """
    modules: dict[str, Module] = {}
    for emission in emissions:
        modules |= {module.name: module for module in emission.modules}
    _write(folder, modules)
    jobs = [(tool, module) for module in modules.values() for tool in tools]

    def check(job: tuple[str, Module]) -> list[Finding]:
        found = _check(*job, folder, modules)
        progress(f"{job[0]}: {job[1].name}")
        return found

    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        found = [finding for findings in pool.map(check, jobs) for finding in findings]
    used = dict.fromkeys((waiver for waiver in waivers if waiver.tool in tools), 0)
    left: list[Finding] = []
    for finding in found:
        covering = next((waiver for waiver in used if _covers(waiver, finding)), None)
        if covering is None:
            left.append(finding)
        else:
            used[covering] += 1
    return LintResult(len(modules), tuple(left), used)


def _write(folder: Path, modules: dict[str, Module]) -> None:
    stubs = folder / "stubs"
    stubs.mkdir(parents=True, exist_ok=True)
    for module in modules.values():
        (folder / f"{module.name}.v").write_text(module.verilog, encoding="utf-8")
        (stubs / f"{module.name}.v").write_text(_stub(module), encoding="utf-8")


def _check(tool: str, module: Module, folder: Path, modules: dict[str, Module]) -> list[Finding]:
    file = folder / f"{module.name}.v"
    children = dict.fromkeys(module.instances.values())
    stubs = [folder / "stubs" / f"{name}.v" for name in children if name in modules]
    ports = _ports_by_line(module.verilog)
    return [
        Finding(
            tool,
            report.rule,
            module.name,
            module.kind,
            file,
            report.line,
            report.message + _port_note(report, ports),
        )
        for report in CHECKERS[tool](file, stubs, module.name)
    ]


def _covers(waiver: Waiver, finding: Finding) -> bool:
    return (
        (waiver.tool, waiver.rule) == (finding.tool, finding.rule)
        and matches(waiver.kind, finding.kind)
        and matches(waiver.message, finding.message)
    )


def _ports_by_line(verilog: str) -> list[tuple[int, set[str]]]:
    """Return the first line and the port names of every Verilog module in a text."""
    return [
        (
            verilog.count("\n", 0, match.start()) + 1,
            {name.strip().removeprefix("\\") for name in match[1].split(",")},
        )
        for match in _MODULE.finditer(verilog)
    ]


def _port_note(report: Report, ports: list[tuple[int, set[str]]]) -> str:
    around = [names for line, names in ports if line <= report.line]
    quoted = set(_QUOTED.findall(report.message))
    return PORT_NOTE if around and around[-1] & quoted else ""


def _stub(module: Module) -> str:
    """Return an empty module with the ports of `module`; its own findings do not count.

    Outputs are registers that nothing sets: to their surroundings, nets that something drives.
    """
    names = ", ".join(f"\\{port.name} " for port in module.ports)
    directions = {"input": "input", "output": "output reg"}
    ports = "".join(
        f"  {directions[port.direction]} [{port.width - 1}:0] \\{port.name} ;\n"
        for port in module.ports
    )
    return f"(* blackbox *)\nmodule {module.name}({names});\n{ports}endmodule\n"
