"""Timing and power of a mapped module by OpenSTA, with wires of the technology's model."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poblano_flow.emission import Emission
from poblano_flow.manifest import build_manifest
from poblano_flow.process import supervise
from poblano_flow.sidefiles import sdc
from poblano_flow.synthesis.hierarchy import DesignArea, ModuleArea
from poblano_flow.synthesis.technology import Technology
from poblano_flow.tools import program
from poblano_golden.errors import PoblanoError

__all__ = ["DEFAULT_ACTIVITY", "Activity", "Power", "TimedPath", "Timing", "analyse", "subtree"]

DEFAULT_ACTIVITY = 0.1
"""Transitions a clock cycle of every net, where nothing is known."""

LIMIT = 600.0
"""Seconds that OpenSTA may take."""

_SCRIPT = """
read_liberty {liberty}
{wire}
{netlists}
link_design {top}
set_cmd_units -time ns -capacitance fF -resistance kOhm -power W
puts "poblano sdc begin"
read_sdc {sdc}
puts "poblano sdc end"
puts "poblano version [sta::version]"
puts "poblano clocks [llength [all_clocks]]"
{wire_load}
puts "poblano period [get_property [lindex [all_clocks] 0] period]"
foreach path [find_timing_paths -path_delay max -group_count {count}] {{
  set from [get_full_name [get_property $path startpoint]]
  set to [get_full_name [get_property $path endpoint]]
  puts "poblano path [get_property $path slack] $from $to"
}}
report_checks -path_delay max -format full -fields {{net}} -digits 4 -group_count {count} > report
{activity}
puts "poblano power"
report_power -digits 9
"""

_MEASURED = """
{activities}
set_power_activity -input -activity {mean} -duty 0.5
foreach net [get_nets -hierarchical *] {{
  set name [get_full_name $net]
  if {{[info exists active($name)]}} {{
    foreach pin [get_pins -of_objects $net] {{
      ::sta::set_power_pin_activity $pin [lindex $active($name) 0] [lindex $active($name) 1]
    }}
  }}
}}
foreach port [all_inputs] {{
  set name [get_full_name $port]
  if {{[info exists active($name)]}} {{
    set_power_activity -input_ports $port -activity [lindex $active($name) 0] \\
      -duty [lindex $active($name) 1]
  }}
}}
"""
"""The activity of every net that the simulation names, on all of its pins; elsewhere their mean.
`set_power_activity -pins` of OpenSTA 2.0.17 calls a procedure that it lacks: what it would call is
called directly."""

_WIRE_LIBRARY = """library(poblano_wire) {{
  time_unit : "1ns";
  voltage_unit : "1V";
  current_unit : "1uA";
  capacitive_load_unit(1, ff);
  pulling_resistance_unit : "1kohm";
  slew_lower_threshold_pct_rise : 20; slew_upper_threshold_pct_rise : 80;
  slew_lower_threshold_pct_fall : 20; slew_upper_threshold_pct_fall : 80;
  input_threshold_pct_rise : 50; input_threshold_pct_fall : 50;
  output_threshold_pct_rise : 50; output_threshold_pct_fall : 50;
  wire_load("fanout") {{
    resistance : {resistance}; capacitance : {capacitance}; area : 0;
    slope : {length}; fanout_length(1, {length});
  }}
}}
"""

_POWER = re.compile(r"^Total\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class TimedPath:
    """A path that is short of time: its ends in the design's names, slack in nanoseconds."""

    start: str
    end: str
    slack: float


@dataclass(frozen=True)
class Power:
    """Watts at the clock of the constraints."""

    internal: float
    switching: float
    leakage: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.internal + self.switching + self.leakage


@dataclass(frozen=True)
class Activity:
    """Transitions a clock cycle, and the part of the time at 1, by net of the netlist."""

    of: Mapping[str, tuple[float, float]]
    source: str

    @property
    def mean(self) -> float:
        """Mean of the transitions a cycle."""
        return sum(toggles for toggles, _ in self.of.values()) / len(self.of)


@dataclass(frozen=True)
class Timing:
    """What OpenSTA says of a module.

    Attributes
    ----------
    module, tool:
        Its kind, and OpenSTA's version.
    period:
        Of the clock, in nanoseconds.
    paths:
        The worst, worst first.
    default_power, measured_power:
        With `DEFAULT_ACTIVITY`, and with the activity of a simulation if there is one.
    activity_source:
        That simulation.
    report:
        OpenSTA's own report of the paths.
    """

    module: str
    tool: str
    period: float
    paths: tuple[TimedPath, ...]
    default_power: Power
    measured_power: Power | None
    activity_source: str | None
    report: str

    @property
    def shortest_period(self) -> float:
        """The period with no slack, in nanoseconds, if the delays outside stay the same."""
        return self.period - min(path.slack for path in self.paths) if self.paths else 0.0


def subtree(design: DesignArea, area: ModuleArea) -> tuple[ModuleArea, ...]:
    """Return a module and every distinct module below it, children before parents."""
    wanted = {area.module.name}
    found: list[ModuleArea] = []
    for candidate in reversed(design.modules):
        if candidate.module.name in wanted:
            wanted |= set(candidate.module.instances.values())
            found.append(candidate)
    return tuple(reversed(found))


def analyse(
    design: DesignArea,
    area: ModuleArea,
    frequency: int | None,
    *,
    constraints: Path | None = None,
    paths: int = 5,
    activity: Activity | None = None,
) -> Timing:
    """Time a module with everything below it; memory macros end paths.

    Parameters
    ----------
    design, area:
        The design, and which of its modules.
    frequency:
        Hertz of the emitted constraints; None for their default.
    constraints:
        An SDC file in place of the emitted constraints.
    paths:
        How many of the worst paths to report.
    activity:
        Of a simulation, for a second power figure.

    Raises
    ------
    ToolMissingError
        If OpenSTA is not installed.
    PoblanoError
        If it fails, or the constraints lack a clock or name what is not there.
    """
    default = f"set_power_activity -global -activity {DEFAULT_ACTIVITY} -duty 0.5"
    said, report = _run(design, area, frequency, constraints, paths, default)
    period = re.search(r"^poblano period (\S+)$", said, re.MULTILINE)
    version = re.search(r"^poblano version (\S+)$", said, re.MULTILINE)
    found = re.findall(r"^poblano path (\S+) (\S+) (\S+)$", said, re.MULTILINE)
    if period is None:
        raise PoblanoError(f"{area.module.name}: OpenSTA must say a period; got {said[-200:]}")
    default_power, measured = _power(area, said), None
    if activity is not None:
        said, _ = _run(design, area, frequency, constraints, 1, _measured(activity))
        measured = _power(area, said)
    return Timing(
        module=area.module.kind,
        tool=f"OpenSTA {version[1] if version else 'of unknown version'}",
        period=float(period[1]),
        paths=tuple(
            TimedPath(_plain(start), _plain(end), float(slack)) for slack, start, end in found
        ),
        default_power=default_power,
        measured_power=measured,
        activity_source=None if activity is None else activity.source,
        report=report,
    )


def _run(
    design: DesignArea,
    area: ModuleArea,
    frequency: int | None,
    constraints: Path | None,
    paths: int,
    activity: str,
) -> tuple[str, str]:
    """Run OpenSTA; return what it said and its report of paths."""
    sta = program("sta")
    below = subtree(design, area)
    with tempfile.TemporaryDirectory(prefix="poblano-sta-") as scratch:
        folder = Path(scratch)
        if constraints is None:
            manifest = build_manifest(Emission(tuple(part.module for part in below)))
            constraints = folder / "constraints.sdc"
            constraints.write_text(sdc(manifest, frequency), encoding="utf-8")
        elif not constraints.is_file():
            raise PoblanoError(f"{constraints}: an SDC must be a file; got no such file")
        wire, wire_load = _wire_model(folder, design.technology)
        netlists = [part.mapped.netlist for part in below if part.mapped is not None]
        script = _SCRIPT.format(
            liberty=design.library.merged,
            wire=wire,
            wire_load=wire_load,
            netlists="\n".join(f"read_verilog {path}" for path in netlists),
            top=area.module.name,
            sdc=constraints.resolve(),
            count=paths,
            activity=activity,
        )
        (folder / "sta.tcl").write_text(script, encoding="utf-8")
        done = supervise(
            [str(sta), "-no_init", "-no_splash", "-exit", "sta.tcl"],
            folder=folder,
            environment=dict(os.environ),
            limit=LIMIT,
        )
        _check(done.output, constraints, area.module.name)
        return done.output, (folder / "report").read_text(encoding="utf-8")


def _wire_model(folder: Path, technology: Technology | None) -> tuple[str, str]:
    """Return the commands that read and use the wire model, which is a Liberty wire load."""
    if technology is None:
        return "", ""
    wire = technology.wire
    text = _WIRE_LIBRARY.format(
        resistance=wire.resistance.value,
        capacitance=wire.capacitance.value,
        length=wire.length.value,
    )
    (folder / "wire.lib").write_text(text, encoding="utf-8")
    return "read_liberty wire.lib", (
        "set_wire_load_mode top\nset_wire_load_model -name fanout -library poblano_wire"
    )


def _measured(activity: Activity) -> str:
    lines = [
        f"set {{active({name})}} {{{toggles:.6f} {duty:.6f}}}"
        for name, (toggles, duty) in activity.of.items()
    ]
    return _MEASURED.format(activities="\n".join(lines), mean=activity.mean)


def _check(said: str, constraints: Path, top: str) -> None:
    """Raise if OpenSTA said that something is wrong."""
    begin, _, rest = said.partition("poblano sdc begin")
    errors = [line for line in begin.splitlines() if line.startswith("Error")]
    if errors or not rest:
        raise PoblanoError(f"{top}: OpenSTA must read the netlist; got {(errors or [said])[0]}")
    inside, _, after = rest.partition("poblano sdc end")
    wrong = [line for line in inside.splitlines() if line.startswith(("Error", "Warning"))]
    if wrong:
        raise PoblanoError(
            f"{constraints}: an SDC must name clocks and ports of {top}; got {wrong[0]}"
        )
    if re.search(r"^poblano clocks 0$", after, re.MULTILINE):
        raise PoblanoError(f"{constraints}: an SDC must create a clock of {top}; got none")
    errors = [line for line in after.splitlines() if line.startswith("Error")]
    if errors:
        raise PoblanoError(f"{top}: OpenSTA must end without an error; got {errors[0]}")


def _power(area: ModuleArea, said: str) -> Power:
    match = _POWER.search(said, said.index("poblano power"))
    if match is None:
        raise PoblanoError(f"{area.module.name}: OpenSTA must say a power; got {said[-200:]}")
    return Power(float(match[1]), float(match[2]), float(match[3]))


def _plain(name: str) -> str:
    """Return a pin's name without the escapes of OpenSTA."""
    return name.replace("\\", "")
