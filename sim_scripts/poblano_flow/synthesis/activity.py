"""Switching activity of a mapped module, read from a waveform of the emitted design."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from poblano_flow.synthesis.hierarchy import DesignArea, ModuleArea
from poblano_flow.synthesis.timing import Activity
from poblano_flow.wave_file import Changes, open_wave
from poblano_golden.errors import PoblanoError

__all__ = ["bit_activity", "read_activity"]

_WIRE = re.compile(r"^  wire (?:\[(\d+):0\] )?(\S+) ?;$", re.MULTILINE)


def read_activity(path: Path, scope: str | None, design: DesignArea, area: ModuleArea) -> Activity:
    """Read the transitions a cycle of every net that keeps its name from the emitted design.

    Parameters
    ----------
    path:
        An FST or VCD of a simulation.
    scope:
        Where the module stands in it, scopes joined by dots; None for the outermost one.
    design, area:
        The design and the module.

    Raises
    ------
    PoblanoError
        If the file cannot be read, has no such scope or no clock in it, or no net of the module.
    """
    wave = open_wave(path)
    prefix = wave.top if scope is None else scope
    clock = f"{prefix}.clk"
    if clock not in wave.widths:
        raise PoblanoError(f"{path}: a scope of the module must have its clk; got none in {prefix}")
    edges = wave.load([clock])[clock].rising_edges()
    if len(edges) < 2:
        raise PoblanoError(f"{path}: {clock} must rise at least twice; got {len(edges)}")
    by_name = {part.module.name: part for part in design.modules}
    names = {
        name: (signal, bit)
        for name, signal, bit in _nets(area, by_name, "", "")
        if f"{prefix}.{signal}" in wave.widths
    }
    if not names:
        raise PoblanoError(f"{path}: {prefix} must hold a signal of {area.module.name}; got none")
    changes = wave.load(sorted({f"{prefix}.{signal}" for signal, _ in names.values()}))
    return Activity(
        {
            name: bit_activity(changes[f"{prefix}.{signal}"], bit, edges[0], edges[-1], len(edges))
            for name, (signal, bit) in names.items()
        },
        f"{path.name}, {prefix}, {len(edges)} cycles, {len(names)} nets",
    )


def bit_activity(
    changes: Changes, bit: int, begin: int, end: int, edges: int
) -> tuple[float, float]:
    """Return a bit's transitions a clock cycle, and the part of the time that it is 1.

    Parameters
    ----------
    changes, bit:
        The signal, and which of its bits; unknown values count as 0.
    begin, end, edges:
        Times of the first and last of so many rising clock edges.
    """
    toggles, high, last, since = 0, 0, _bit(changes.at(begin), bit), begin
    for time, value in zip(changes.times, changes.values, strict=True):
        if not begin < time <= end:
            continue
        now = _bit(value, bit)
        if now != last:
            toggles += 1
            high += (time - since) * last
            last, since = now, time
    high += (end - since) * last
    return toggles / (edges - 1), high / (end - begin)


def _bit(value: int | str | None, bit: int) -> int:
    if isinstance(value, int):
        return value >> bit & 1
    return 0 if value is None or bit >= len(value) else int(value[-1 - bit] == "1")


def _nets(
    area: ModuleArea, by_name: Mapping[str, ModuleArea], path: str, scopes: str
) -> Iterator[tuple[str, str, int]]:
    """Yield net in the netlist, signal in the simulation and bit, of a module and all below it."""
    if area.mapped is not None:
        for high, plain in _WIRE.findall(area.mapped.netlist.read_text("utf-8")):
            signal = plain.removeprefix("\\")
            for bit in range(int(high or 0) + 1):
                net = f"{signal}[{bit}]" if high else signal
                yield path + net, scopes + signal, bit
    for instance, module in area.module.instances.items():
        yield from _nets(by_name[module], by_name, f"{path}{instance}/", f"{scopes}{instance}.")
