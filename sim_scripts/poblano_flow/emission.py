"""From components to Verilog: every distinct module is converted once and instantiated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import ClockSignal, Elaboratable, Instance, ResetSignal, Value
from amaranth.lib import wiring
from poblano.component import Component
from pyosys import libyosys as ys


@dataclass
class Module:
    """One emitted module.

    Attributes
    ----------
    name, parameters:
        The module's name and the parameters of the component that it came from.
    ports:
        Port name to (direction, width); clock and reset included where they exist.
    instances:
        Names of the shared modules instantiated inside, one entry an instance.
    verilog:
        The module's text; submodules that occur once are in it too.
    """

    name: str
    kind: str
    parameters: dict[str, Any]
    ports: dict[str, tuple[str, int]]
    instances: list[str] = field(default_factory=list)
    rtlil: str = ""
    verilog: str = ""
