"""The verdict of a run, read from its JUnit XML and from nothing else."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from poblano_flow.process import ProcessResult

__all__ = ["Case", "judge", "write_merged"]

_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Case:
    """One test of a run.

    Attributes
    ----------
    name:
        Full name of the test: module, a dot, function and parameters. A run that ended without
        results has one case, named after its module.
    status:
        `passed`, `failed` or `skipped`.
    message, trace:
        Why it failed, and the Python traceback.
    seconds:
        Wall time.
    start_ns, end_ns:
        Simulated time at its start and at its end, if it ended.
    """

    name: str
    status: str
    message: str = ""
    trace: str = ""
    seconds: float = 0.0
    start_ns: float = 0.0
    end_ns: float | None = None


def judge(results: Path, bench: str, process: ProcessResult) -> tuple[Case, ...]:
    """Return the cases of a run; at least one of them failed unless tests ran and all passed.

    Parameters
    ----------
    results:
        The XML file that cocotb writes at the end of a run.
    bench:
        Name of the module, for a run that left no results.
    process:
        How the simulator ended. A simulator that failed cannot have passed a test.
    """
    cases = read_cases(results)
    ending = _ending(process)
    if cases is None:
        reason = ending or "the simulation ended"
        return (Case(bench, "failed", f"{reason} without results", seconds=process.seconds),)
    if not any(case.status != "skipped" for case in cases):
        return (*cases, Case(bench, "failed", "no test was run", seconds=process.seconds))
    if ending and not any(case.status == "failed" for case in cases):
        return (*cases, Case(bench, "failed", ending, seconds=process.seconds))
    if ending:
        return tuple(
            replace(case, message=f"{ending}: {case.message}") if case.status == "failed" else case
            for case in cases
        )
    return cases


def _ending(process: ProcessResult) -> str:
    """Say what was wrong with the simulator's end; empty if nothing was."""
    if process.timed_out:
        return f"the simulation was ended after its limit of {process.seconds:.0f} s"
    if process.cancelled:
        return "the simulation was interrupted"
    if process.status < 0:
        return f"the simulator crashed with signal {-process.status}"
    if process.status > 0:
        return f"the simulator ended with exit status {process.status}"
    return ""


def read_cases(results: Path) -> tuple[Case, ...] | None:
    """Read the cases in a JUnit XML file; None if there is no such file or it is not whole."""
    try:
        root = ET.parse(results).getroot()  # noqa: S314 (our own simulator wrote it)
    except (OSError, ET.ParseError):
        return None
    return tuple(map(_case, root.iter("testcase")))


def _case(element: ET.Element) -> Case:
    classname = element.get("classname", "")
    name = element.get("name", "")
    properties = {item.get("name"): item.get("value") for item in element.iter("property")}
    end = properties.get("sim_time_stop")
    case = Case(
        f"{classname}.{name}" if classname else name,
        "passed",
        seconds=float(element.get("time", "0")),
        start_ns=float(properties.get("sim_time_start") or 0),
        end_ns=None if end is None else float(end),
    )
    for kind in ("failure", "error"):
        found = element.find(kind)
        if found is not None:
            return replace(
                case,
                status="failed",
                message=found.get("message") or found.get("type") or kind,
                trace=found.text or "",
            )
    return case if element.find("skipped") is None else replace(case, status="skipped")


def write_merged(path: Path, suites: Iterable[tuple[str, Iterable[Case]]]) -> None:
    """Write one JUnit XML file for many runs; it is there whole or not at all.

    Parameters
    ----------
    path:
        The file.
    suites:
        Name and cases of every run.
    """
    root = ET.Element("testsuites", name="poblano")
    for name, cases in suites:
        suite = ET.SubElement(root, "testsuite", name=name)
        counts = dict.fromkeys(("tests", "failures", "skipped"), 0)
        seconds = 0.0
        for case in cases:
            counts["tests"] += 1
            seconds += case.seconds
            element = ET.SubElement(
                suite, "testcase", classname=name, name=case.name, time=f"{case.seconds:.3f}"
            )
            if case.status == "failed":
                counts["failures"] += 1
                failure = ET.SubElement(element, "failure", message=_xml_text(case.message))
                failure.text = _xml_text(case.trace)
            elif case.status == "skipped":
                counts["skipped"] += 1
                ET.SubElement(element, "skipped")
        for key, value in counts.items():
            suite.set(key, str(value))
        suite.set("errors", "0")
        suite.set("time", f"{seconds:.3f}")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".xml.new")
    ET.ElementTree(root).write(scratch, encoding="utf-8", xml_declaration=True)
    scratch.replace(path)


def _xml_text(text: str) -> str:
    """Return a text with `?` for the characters that XML cannot hold."""
    return _NOT_IN_XML.sub("?", text)
