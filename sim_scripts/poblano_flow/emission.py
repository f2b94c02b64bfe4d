"""From components to Verilog: every distinct module is converted once and instantiated.

Amaranth alone emits one module for every instance. Here a component that its parent wraps in
`poblano.component.once` is converted when it is met first, and every further occurrence of the
same class with the same parameters becomes an instance of that module.
"""

from __future__ import annotations

import gc
import re
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amaranth.hdl import ClockSignal, Const, Elaboratable, Instance, ResetSignal, Value
from amaranth.hdl._ir import PortDirection
from amaranth.lib.wiring import In
from pyosys import libyosys as ys  # pyright: ignore[reportAttributeAccessIssue]

from poblano.component import Component
from poblano.l1.sram import Sram
from poblano.verilog_component import VerilogComponent
from poblano_flow.netlist import rtlil_text
from poblano_flow.sram_model import sram_ports, sram_verilog
from poblano_flow.verilog_text import readable

__all__ = ["Emission", "Module", "Port", "emit"]

_PORT = re.compile(r"^  wire width (\d+) (input|output) (\d+) +(?:signed +)?\\(\S+)$", re.MULTILINE)
_MODULE = re.compile(r"^module \\(\S+)$")
_CELL = re.compile(r"^  cell \\(\S+) \\(\S+)$")

_PASSES = (
    "proc -nomux -norom",
    "memory_collect",
    "attrmap -remove generator -remove top -remove src -remove amaranth.decoding",
    "attrmap -modattr -remove generator -remove top -remove src -remove amaranth.hierarchy",
    "delete */s:0",
)
"""What `amaranth.back.verilog` runs, in process and without the source attributes. Wires of no
width go too: Verilog would take `[-1:0]` for two bits."""


@dataclass(frozen=True)
class Port:
    """A port of an emitted module; `direction` is `input` or `output`."""

    name: str
    direction: str
    width: int


@dataclass(frozen=True)
class Module:
    """One emitted module.

    Attributes
    ----------
    name:
        The Verilog module name; `kind` is the name of the component's class.
    parameters:
        The keyword parameters of the component.
    component:
        The first component that the module was emitted for; its signature describes the ports.
    ports:
        The ports in declaration order, clock and reset included where the module has them.
    instances:
        Instance name (with the path of submodules that occur once) to shared module name.
    verilog:
        The text of the module and of the submodules inside that occur once.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    component: Component
    ports: tuple[Port, ...]
    instances: dict[str, str]
    verilog: str


@dataclass(frozen=True)
class Emission:
    """The distinct modules of a design, children before their parents; the last is the top."""

    modules: tuple[Module, ...]

    @property
    def top(self) -> Module:
        """The outermost module."""
        return self.modules[-1]

    def module(self, name: str) -> Module:
        """Return the module of that name."""
        return next(module for module in self.modules if module.name == name)

    def instance_counts(self) -> dict[str, int]:
        """How often each module occurs in the whole design."""
        counts: Counter[str] = Counter({self.top.name: 1})
        for module in reversed(self.modules):
            for child in module.instances.values():
                counts[child] += counts[module.name]
        return {module.name: counts[module.name] for module in self.modules}

    def write(self, directory: Path, header: str = "") -> list[Path]:
        """Write one `.v` file a module into `directory`, children first; return their paths."""
        directory.mkdir(parents=True, exist_ok=True)
        paths: list[Path] = []
        for module in self.modules:
            path = directory / f"{module.name}.v"
            path.write_text(header + module.verilog)
            paths.append(path)
        return paths


class _EmissionPlatform:
    """Passed to `elaborate`; answers `once` with instances of modules emitted so far."""

    def __init__(self) -> None:
        self.modules: dict[str, Module] = {}

    def instance(self, component: Component, given: Mapping[str, Any]) -> Elaboratable:
        name = component.module_name
        if name not in self.modules:
            self.modules[name] = self._convert(component)
        _mark_used(component)
        ports = {
            "__".join(map(str, path)): Value.cast(given.get(str(path[0]), value))
            for path, _, value in component.signature.flatten(component)
        }
        connections: dict[str, Value] = {}
        for port in self.modules[name].ports:
            prefix = "i" if port.direction == "input" else "o"
            if port.name in ports:
                connections[f"{prefix}_{port.name}"] = ports[port.name]
            elif port.name == "clk":
                connections["i_clk"] = ClockSignal()
            elif port.name == "rst":
                connections["i_rst"] = ResetSignal()
            else:
                raise ValueError(
                    f"module {name} has a port {port.name} that is not its component's"
                )
        instance: Any = Instance  # its type has no room for ports
        return instance(name, **connections)

    def emit(self, component: Component) -> Emission:
        top = self._convert(component)
        return Emission((*self.modules.values(), top))

    def _convert(self, component: Component) -> Module:
        name = component.module_name
        if isinstance(component, Sram):
            return _memory(name, component)
        if isinstance(component, VerilogComponent):
            return _written(name, component)
        text = rtlil_text(component, name, self, _directed_ports(component))
        text = _number_ports_from_one(_flat_module_names(text))
        ports, cells = _read_top(text, name)
        return Module(
            name=name,
            kind=type(component).__name__,
            parameters=component.parameters,
            component=component,
            ports=ports,
            instances={inst: kind for inst, kind in cells.items() if kind in self.modules},
            verilog=_verilog(text),
        )


def emit(component: Component) -> Emission:
    """Convert `component` and everything below it, each distinct module once.

    The garbage collector rests meanwhile: netlists are millions of small live objects, and
    walking them again and again would take a third of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _EmissionPlatform().emit(component)
    finally:
        if enabled:
            gc.enable()


def _mark_used(component: Component) -> None:
    """Tell Amaranth that an instance stands for `component` and for the parts that it made."""
    vars(component)["_MustUse__used"] = True
    for part in vars(component).values():
        if isinstance(part, Component):
            _mark_used(part)


def _memory(name: str, sram: Sram) -> Module:
    """Return the module of a memory, for which a technology's macro may stand in."""
    _mark_used(sram)
    ports = sram_ports(sram).items()
    return Module(
        name=name,
        kind=type(sram).__name__,
        parameters=sram.parameters,
        component=sram,
        ports=tuple(Port(port, direction, width) for port, (direction, width) in ports),
        instances={},
        verilog=sram_verilog(name, sram),
    )


def _written(name: str, component: VerilogComponent) -> Module:
    """Return the module of a component that is written in Verilog."""
    _mark_used(component)
    ports = [
        Port(port, "input" if direction is PortDirection.Input else "output", len(value))
        for port, (value, direction) in _directed_ports(component).items()
    ]
    return Module(
        name=name,
        kind=type(component).__name__,
        parameters=component.parameters,
        component=component,
        ports=(Port("clk", "input", 1), Port("rst", "input", 1), *ports),
        instances={},
        verilog=component.verilog(),
    )


def _directed_ports(component: Component) -> dict[str, tuple[Value, PortDirection]]:
    """Return the component's ports; the constant `ready` or `valid` of a stream is none."""
    ports: dict[str, tuple[Value, PortDirection]] = {}
    for path, member, value in component.signature.flatten(component):
        signal = Value.cast(value)
        if not isinstance(signal, Const):
            direction = PortDirection.Input if member.flow is In else PortDirection.Output
            ports["__".join(map(str, path))] = (signal, direction)
    return ports


def _flat_module_names(text: str) -> str:
    """Turn the dots of nested module names into double underscores: plain identifiers."""

    def flatten(match: re.Match[str]) -> str:
        return match[1] + match[2].replace(".", "__") + match[3]

    return re.sub(r"^((?:module|  cell) \\)(\S+)(.*)$", flatten, text, flags=re.MULTILINE)


def _read_top(text: str, top: str) -> tuple[tuple[Port, ...], dict[str, str]]:
    """Return the top module's ports, and instance path to module name of all cells below it."""
    ports: list[Port] = []
    cells: dict[str, str] = {}
    current = ""
    for line in text.splitlines():
        if match := _MODULE.match(line):
            current = match[1]
        elif current == top and (match := _PORT.match(line)):
            ports.append(Port(match[4], match[2], int(match[1])))
        elif match := _CELL.match(line):
            path = current.removeprefix(top).lstrip("_").replace("__", ".")
            cells[f"{path}.{match[2]}" if path else match[2]] = match[1]
    return tuple(ports), cells


def _number_ports_from_one(text: str) -> str:
    """Give ports numbers from 1: Yosys takes number 0 for none and sorts that port last."""

    def renumber(match: re.Match[str]) -> str:
        start = match.start(3) - match.start(), match.end(3) - match.start()
        line = match[0]
        return line[: start[0]] + str(int(match[3]) + 1) + line[start[1] :]

    return _PORT.sub(renumber, text)


def _verilog(text: str) -> str:
    with tempfile.TemporaryDirectory(prefix="poblano-") as folder:
        source, target = Path(folder, "in.il"), Path(folder, "out.v")
        source.write_text(text)
        design = ys.Design()
        for command in (f"read_rtlil {source}", *_PASSES, f"write_verilog -norename {target}"):
            ys.Pass.call(design, f"tee -q {command}")
        return readable(target.read_text())
