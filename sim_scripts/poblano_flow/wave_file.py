"""Waveforms: signals by name and their changes, from FST (pywellen) and VCD (vcdvcd)."""

from __future__ import annotations

import bisect
import importlib
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poblano_golden.errors import PoblanoError

__all__ = ["Changes", "WaveFile", "open_wave", "wave_fault"]

_ROOT_PORTS = "$rootio."
"""Verilator lists the ports of the top a second time here."""


@dataclass(frozen=True)
class Changes:
    """The values of a signal over time.

    Attributes
    ----------
    times:
        When it changed, in units of the file's timescale, ascending.
    values:
        What it changed to: a number, or a string of 0, 1, x and z, most significant bit first.
    """

    times: Sequence[int]
    values: Sequence[int | str]

    def at(self, time: int) -> int | str | None:
        """Return the value at a time, after the changes of that time; None before the first."""
        index = bisect.bisect_right(self.times, time) - 1
        return None if index < 0 else self.values[index]

    def before(self, time: int) -> int | str | None:
        """Return the value just before a time, such as a register sees it at a clock edge."""
        return self.at(time - 1)

    def rising_edges(self) -> list[int]:
        """Return the times at which a one-bit signal went from another value to 1."""
        pairs = zip(self.times[1:], self.values, self.values[1:], strict=False)
        return [time for time, old, new in pairs if new == 1 and old != 1]


class WaveFile(ABC):
    """An open waveform.

    Attributes
    ----------
    path:
        The file.
    widths:
        Signal name, scopes joined by dots, to its width in bits.
    step_ps:
        Picoseconds of a time unit.
    """

    path: Path
    widths: dict[str, int]
    step_ps: float

    @abstractmethod
    def load(self, names: Iterable[str]) -> dict[str, Changes]:
        """Return the changes of the named signals."""

    @property
    def top(self) -> str:
        """The outermost scope."""
        return next(iter(self.widths)).partition(".")[0]


def open_wave(path: Path) -> WaveFile:
    """Open a waveform.

    Raises
    ------
    PoblanoError
        If the file is missing, is no FST or VCD, or is not whole.
    """
    if not path.is_file():
        raise PoblanoError(f"{path}: a waveform must be a file; got no such file")
    try:
        with path.open("rb") as file:
            start = file.read(64)
            file.seek(max(0, path.stat().st_size - 1))
            end = file.read(1)
    except OSError as error:
        raise PoblanoError(f"{path}: a waveform must be readable; got {error.strerror}") from None
    if not start:
        raise PoblanoError(f"{path}: a waveform must have content; got an empty file")
    wave = _Vcd(path, end) if start.lstrip()[:1] == b"$" else _Fst(path)
    if not wave.widths:
        raise _not_whole(path, "no signals")
    return wave


def wave_fault(path: Path) -> str:
    """Say what is wrong with a waveform; empty if it can be read."""
    try:
        open_wave(path)
    except PoblanoError as error:
        return str(error)
    return ""


def _not_whole(path: Path, what: str) -> PoblanoError:
    return PoblanoError(f"{path}: a waveform must be a whole FST or VCD file; got {what}")


class _Fst(WaveFile):
    def __init__(self, path: Path) -> None:
        pywellen: Any = importlib.import_module("pywellen")
        self.path = path
        try:
            self._wave: Any = pywellen.Waveform(str(path))
            variables: list[Any] = list(self._wave.all_vars())
        except RuntimeError as error:
            raise _not_whole(path, str(error).replace("\n", " ").lower()) from None
        self._variables: dict[str, Any] = {}
        for variable in variables:
            name = _plain_name(str(variable.full_name))
            if not name.startswith(_ROOT_PORTS) and variable.bitwidth:
                self._variables.setdefault(name, variable)
        self.widths = {name: int(item.bitwidth) for name, item in self._variables.items()}
        scale = self._wave.timescale
        self.step_ps = int(scale.factor) * _PICOSECONDS[str(scale.unit)]

    def load(self, names: Iterable[str]) -> dict[str, Changes]:
        found: dict[str, Changes] = {}
        for name in names:
            changes: list[tuple[int, Any]] = list(self._variables[name].tv)
            found[name] = Changes(
                [time for time, _ in changes], [_plain(value) for _, value in changes]
            )
        return found


class _Vcd(WaveFile):
    def __init__(self, path: Path, end: bytes) -> None:
        self.path = path
        if end != b"\n":
            raise _not_whole(path, "a file that ends within a line")
        listed = self._read(only_sigs=True)
        self._full_names: dict[str, str] = {}
        self.widths = {}
        for full in listed.signals:
            if full.startswith(_ROOT_PORTS):
                continue
            name = _plain_name(full.rpartition("[")[0] if full.endswith("]") else full)
            self._full_names[name] = full
            self.widths[name] = int(listed[full].size)
        self.step_ps = float(listed.timescale.get("timescale", 0)) * 1e12

    def _read(self, **options: Any) -> Any:
        vcdvcd = _vcdvcd()
        try:
            return vcdvcd.VCDVCD(str(self.path), **options)
        except (ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
            raise _not_whole(self.path, str(error)) from None

    def load(self, names: Iterable[str]) -> dict[str, Changes]:
        wanted = list(names)
        read = self._read(signals=[self._full_names[name] for name in wanted])
        found: dict[str, Changes] = {}
        for name in wanted:
            changes: list[tuple[int, str]] = read[self._full_names[name]].tv
            found[name] = Changes(
                [time for time, _ in changes],
                [_number(text.lower(), self.widths[name]) for _, text in changes],
            )
        return found


def _vcdvcd() -> Any:
    """Import vcdvcd and keep what it changes: the process would end when a pipe breaks."""
    before = signal.getsignal(signal.SIGPIPE)
    module = importlib.import_module("vcdvcd")
    signal.signal(signal.SIGPIPE, before)
    return module


def _number(text: str, width: int) -> int | str:
    """Return a VCD value; one that is too short is extended by 0, or by its leading x or z."""
    if set(text) <= {"0", "1"}:
        return int(text, 2)
    return text.rjust(width, "0" if text[0] == "1" else text[0])


_PICOSECONDS = {"fs": 1e-3, "ps": 1.0, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}


def _plain_name(name: str) -> str:
    """Return a name without the marks of an escaped identifier."""
    return name.replace("\\", "").rstrip()


def _plain(value: Any) -> int | str:
    return value if isinstance(value, int) else str(value)
