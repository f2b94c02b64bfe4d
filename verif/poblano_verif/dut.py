"""A block under test, as its manifest describes it: ports with layouts, and streams."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from poblano_golden.errors import PoblanoError
from poblano_verif.clock import PERIOD, ClockDomain
from poblano_verif.layouts import Layout, Value

__all__ = ["MANIFEST_VARIABLE", "Dut", "Port", "StreamPort"]

MANIFEST_VARIABLE = "POBLANO_MANIFEST"
"""Environment variable with the path of the manifest; every simulation run sets it."""


@dataclass(frozen=True)
class Port:
    """A port: its cocotb handle, its layout, and whether it is an input of the block."""

    name: str
    handle: Any
    layout: Layout
    is_input: bool

    @property
    def bits(self) -> int:
        """The value as a number.

        Raises
        ------
        AssertionError
            If a bit is neither 0 nor 1.
        """
        value = self.handle.value
        if not value.is_resolvable:
            raise AssertionError(f"{self.name} must be 0 and 1 only; got {value}")
        return int(value)

    @property
    def value(self) -> Value:
        """The value by its layout."""
        return self.layout.unpack(self.bits)

    def drive(self, value: Value) -> None:
        """Set an input from now on."""
        self.handle.value = self.layout.pack(value)


@dataclass(frozen=True)
class StreamPort:
    """A stream: `payload`, and `valid` and `ready` where the stream is not always so."""

    name: str
    is_input: bool
    payload: Port
    valid: Port | None
    ready: Port | None

    def handshake(self) -> tuple[int, int]:
        """Return valid and ready."""
        return (
            1 if self.valid is None else self.valid.bits,
            1 if self.ready is None else self.ready.bits,
        )


class Dut:
    """A block under test.

    Parameters
    ----------
    handle:
        The cocotb handle of the top.
    manifest:
        The manifest of the emission; by default read from $POBLANO_MANIFEST.
    period:
        Clock period in simulation steps.

    Attributes
    ----------
    ports, streams:
        By name; streams by the name of the component's member, such as `i`.
    clock:
        The clock domain, not started.
    manifest:
        All of it; its `configuration` is what the hardware was made from.
    """

    def __init__(
        self, handle: Any, manifest: Mapping[str, Any] | None = None, *, period: int = PERIOD
    ) -> None:
        self.manifest = read_manifest() if manifest is None else manifest
        modules = cast("list[dict[str, Any]]", self.manifest["modules"])
        top = next(module for module in modules if module["name"] == self.manifest["top"])
        self.ports = {
            str(port["name"]): Port(
                str(port["name"]),
                handle[str(port["name"])],
                Layout.of(port["layout"], int(port["width"])),
                port["direction"] == "input",
            )
            for port in cast("list[dict[str, Any]]", top["ports"])
        }
        streams = cast("dict[str, dict[str, Any]]", top["streams"])
        self.streams = {
            name: StreamPort(
                name,
                stream["direction"] == "input",
                self.ports[stream["payload"]],
                self.ports.get(stream["valid"]),
                self.ports.get(stream["ready"]),
            )
            for name, stream in streams.items()
            if stream["payload"] in self.ports
        }
        clock, reset = (top[role] for role in ("clock", "reset"))
        self.clock = ClockDomain(
            None if clock is None else self.ports[clock].handle,
            None if reset is None else self.ports[reset].handle,
            period,
        )
        self._driven_elsewhere = {clock, reset}

    @property
    def inputs(self) -> list[Port]:
        """The inputs that are neither clock, nor reset, nor part of a stream."""
        return [port for port in self._loose() if port.is_input]

    @property
    def outputs(self) -> list[Port]:
        """The outputs that are not part of a stream."""
        return [port for port in self._loose() if not port.is_input]

    def _loose(self) -> list[Port]:
        parts = {
            part.name
            for stream in self.streams.values()
            for part in (stream.payload, stream.valid, stream.ready)
            if part is not None
        }
        taken = parts | self._driven_elsewhere
        return [port for port in self.ports.values() if port.name not in taken]

    def rest(self) -> None:
        """Set every input, clock and reset apart, to 0."""
        for port in self.ports.values():
            if port.is_input and port.name not in self._driven_elsewhere:
                port.handle.value = 0


def read_manifest() -> dict[str, Any]:
    """Read the manifest that $POBLANO_MANIFEST names."""
    path = os.environ.get(MANIFEST_VARIABLE)
    if not path:
        raise PoblanoError(f"{MANIFEST_VARIABLE} must name the manifest of the block; got nothing")
    return cast("dict[str, Any]", json.loads(Path(path).read_text("utf-8")))
