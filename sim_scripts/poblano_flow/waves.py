"""Waveforms as text: a table of values by clock cycle, and the transfers of the streams.

A cycle is numbered by its rising edge, from 0; what stands in its column is what registers see at
that edge. A stream transfers in a cycle if valid and ready are 1 in its column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from poblano_flow.wave_file import Changes, WaveFile, open_wave
from poblano_golden.errors import PoblanoError
from poblano_verif.layouts import Layout, text_of

__all__ = ["Transfer", "View", "cycle_at", "find_manifest", "view"]

_LONGEST_TEXT = 12
"""Characters of a value in the table; of a longer one the last are shown."""


@dataclass(frozen=True)
class Transfer:
    """A transfer of a stream: cycle, name of the stream with its scopes, and the payload."""

    cycle: int
    stream: str
    text: str


@dataclass(frozen=True)
class View:
    """A part of a waveform.

    Attributes
    ----------
    wave:
        The file.
    clock:
        Name of the clock; None if the design has none, and columns are times.
    columns:
        Numbers of the cycles that are shown, or times in units of the file.
    last:
        Number of the last cycle, or the last time.
    rows:
        Name of each signal and its value in each column, as text.
    transfers:
        Transfers of the streams in these cycles.
    """

    wave: WaveFile
    clock: str | None
    columns: Sequence[int]
    last: int
    rows: Sequence[tuple[str, Sequence[str]]]
    transfers: Sequence[Transfer]


@dataclass(frozen=True)
class _Stream:
    name: str
    payload: str
    valid: str | None
    ready: str | None
    layout: Layout


def find_manifest(waveform: Path) -> dict[str, Any] | None:
    """Return the manifest beside a waveform, where a run leaves it; None if there is none."""
    path = waveform.parent / "manifest.json"
    try:
        found: Any = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def cycle_at(waveform: Path, time_ns: float) -> int:
    """Return the number of the cycle that a time of a run is in; -1 before the first edge."""
    wave = open_wave(waveform)
    edges = _edges(wave, _clock_name(wave, find_manifest(waveform), None))
    time = time_ns * 1000 / wave.step_ps
    return sum(edge <= time for edge in edges) - 1


def view(
    waveform: Path,
    *,
    around: int | None = None,
    span: int = 8,
    pattern: str | None = None,
    clock: str | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> View:
    """Read a part of a waveform.

    Parameters
    ----------
    waveform:
        An FST or VCD file.
    around:
        The cycle in the middle; the end of the file by default.
    span:
        Cycles before and after it.
    pattern:
        Which signals: a part of the name, or a pattern with `*` and `?`. The ports of the top by
        default.
    clock:
        Name of the clock, with or without its scopes; by default what the manifest says, else a
        signal named `clk`.
    manifest:
        Describes the streams; by default the one beside the file.

    Raises
    ------
    PoblanoError
        If the file is not whole, or no signal or clock of that name is in it.
    """
    wave = open_wave(waveform)
    manifest = manifest or find_manifest(waveform)
    clock_name = _clock_name(wave, manifest, clock)
    names = _selected(wave, pattern, clock_name, manifest)
    streams = [s for s in _streams(wave, manifest) if pattern is None or _shown(s, names)]
    parts = [p for s in streams for p in (s.payload, s.valid, s.ready) if p is not None]
    changes = wave.load(dict.fromkeys([*names, *parts]))
    edges = _edges(wave, clock_name)
    if clock_name is None:
        edges = sorted({time for name in names for time in changes[name].times})
    if not edges:
        raise PoblanoError(f"{waveform}: a waveform must hold a clock edge; got none")
    middle = len(edges) - 1 if around is None else around
    if not 0 <= middle < len(edges):
        raise PoblanoError(f"--around must be 0 to {len(edges) - 1}; got {middle}")
    first, stop = max(0, middle - span), min(len(edges), middle + span + 1)
    numbers = range(first, stop)
    sample = _sample_at if clock_name is None else _sample_before
    rows = [
        (name, [_text(sample(changes[name], edges[n]), wave.widths[name]) for n in numbers])
        for name in names
    ]
    return View(
        wave,
        clock_name,
        list(numbers) if clock_name is not None else [edges[n] for n in numbers],
        len(edges) - 1 if clock_name is not None else edges[-1],
        rows,
        [t for s in streams for t in _transfers(s, changes, edges, numbers)]
        if clock_name is not None
        else [],
    )


def _sample_before(changes: Changes, edge: int) -> int | str | None:
    return changes.before(edge)


def _sample_at(changes: Changes, time: int) -> int | str | None:
    return changes.at(time)


def _clock_name(
    wave: WaveFile, manifest: Mapping[str, Any] | None, wanted: str | None
) -> str | None:
    top = wave.top
    if wanted is not None:
        for name in (wanted, f"{top}.{wanted}"):
            if wave.widths.get(name) == 1:
                return name
        raise PoblanoError(f"--clock must name a one-bit signal; got {wanted!r}")
    if manifest is not None and manifest.get("top") == top:
        module = _modules(manifest)[top]
        return None if module["clock"] is None else f"{top}.{module['clock']}"
    return f"{top}.clk" if f"{top}.clk" in wave.widths else None


def _edges(wave: WaveFile, clock: str | None) -> list[int]:
    return [] if clock is None else wave.load([clock])[clock].rising_edges()


def _selected(
    wave: WaveFile, pattern: str | None, clock: str | None, manifest: Mapping[str, Any] | None
) -> list[str]:
    if pattern is None and manifest is not None and manifest.get("top") == wave.top:
        ports = [f"{wave.top}.{port['name']}" for port in _modules(manifest)[wave.top]["ports"]]
        found = [name for name in ports if name in wave.widths and name != clock]
    elif pattern is None:
        named = [name for name in wave.widths if not _invented(name)]
        found = [name for name in named if name.count(".") == 1 and name != clock]
    elif any(character in pattern for character in "*?"):
        found = sorted(name for name in wave.widths if fnmatchcase(name, pattern))
    else:
        found = sorted(n for n in wave.widths if pattern in n and not _invented(n))
    if not found:
        raise PoblanoError(
            f"--signals must match a signal of {wave.path}; {pattern!r} matches none of "
            f"{len(wave.widths)}"
        )
    return found


def _invented(name: str) -> bool:
    """Whether a name stands in no source: the Verilog writer made it up. Only `*` shows it."""
    last = name.rpartition(".")[2]
    made_up = last == "time_zero" or last.startswith(("net_", "_")) or "_net_" in last
    return made_up or "$" in name


def _shown(stream: _Stream, names: Sequence[str]) -> bool:
    return any(part in names for part in (stream.payload, stream.valid, stream.ready))


def _modules(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    modules = cast("list[dict[str, Any]]", manifest["modules"])
    return {str(module["name"]): module for module in modules}


def _streams(wave: WaveFile, manifest: Mapping[str, Any] | None) -> list[_Stream]:
    """Return the streams of the top and of every module instance that the file holds."""
    if manifest is None or manifest.get("top") != wave.top:
        return []
    modules = _modules(manifest)
    found: list[_Stream] = []
    waiting = [(wave.top, str(manifest["top"]))]
    while waiting:
        scope, name = waiting.pop(0)
        module = modules.get(name)
        if module is None:
            continue
        ports = {str(port["name"]): port for port in module["ports"]}
        for member, stream in cast("dict[str, dict[str, Any]]", module["streams"]).items():
            named = {
                part: None if stream[part] is None else f"{scope}.{stream[part]}"
                for part in ("payload", "valid", "ready")
            }
            payload = named["payload"]
            if payload in wave.widths:
                port = ports[stream["payload"]]
                layout = Layout.of(port["layout"], int(port["width"]))
                title = f"{scope}.{member}".removeprefix(f"{wave.top}.")
                found.append(_Stream(title, payload, named["valid"], named["ready"], layout))
        instances = cast("dict[str, str]", module["name_map"]["instances"])
        waiting += [(f"{scope}.{path}", inner) for path, inner in instances.items()]
    return found


def _transfers(
    stream: _Stream, changes: Mapping[str, Changes], edges: Sequence[int], numbers: Sequence[int]
) -> Iterator[Transfer]:
    for number in numbers:
        handshake = [
            1 if name is None else changes[name].before(edges[number])
            for name in (stream.valid, stream.ready)
        ]
        if handshake == [1, 1]:
            bits = changes[stream.payload].before(edges[number])
            known = text_of(stream.layout, bits) if isinstance(bits, int) else f"unknown: {bits}"
            yield Transfer(number, stream.name, known)


def _text(value: int | str | None, width: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        text = value if width <= _LONGEST_TEXT else f"{value[:4]}.."
    else:
        text = f"{value:0{(width + 3) // 4}x}"
    return text if len(text) <= _LONGEST_TEXT else f"..{text[2 - _LONGEST_TEXT :]}"
