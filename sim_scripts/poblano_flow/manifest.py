"""The manifest: a JSON description of everything an emission wrote.

Testbenches, waveform tools and foreign flows read it instead of the Amaranth sources.
`build_manifest` gives plain dictionaries, lists, texts and integers; every offset and width is in
bits, every latency in clock cycles. Keys:

    manifest        version of this layout
    generator       tool name to version
    configuration   name, hash, hash64 and values; null for a block emitted alone
    top             name of the outermost module
    files           file to its SHA-256, this file apart (of an output folder only)
    modules         one entry a distinct module, children before their parents:
        name, kind, parameters, count (occurrences in the whole design), file
        clock, reset    port names, or null
        latency         cycles as the component states them, 0 without a clock, or null
        ports           name, direction, width, member (path in the component's signature, or null),
                        layout (null for clock and reset)
        streams         member path to {direction, payload, valid, ready}: the ports of a stream
        name_map        {members: member path to port, instances: instance path to module}
"""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any, cast

from amaranth.hdl import Shape, ShapeCastable
from amaranth.lib import data, stream, wiring
from pydantic import BaseModel

from poblano.config import Configuration
from poblano.l1.sram import Sram
from poblano_flow.emission import Emission, Module, Port

__all__ = [
    "MANIFEST_VERSION",
    "build_manifest",
    "describe_shape",
    "generator_versions",
    "manifest_text",
    "module_file",
]

MANIFEST_VERSION = 1
_GENERATORS = ("poblano", "amaranth", "pyosys")


def build_manifest(
    emission: Emission, configuration: Configuration | None = None
) -> dict[str, Any]:
    """Describe `emission` as the module's docstring lays down.

    Parameters
    ----------
    emission:
        What `poblano_flow.emission.emit` returned.
    configuration:
        The configuration that the design was made from, or None for a block alone.
    """
    counts = emission.instance_counts()
    return {
        "manifest": MANIFEST_VERSION,
        "generator": generator_versions(),
        "configuration": None if configuration is None else _describe(configuration),
        "top": emission.top.name,
        "modules": [_module(module, counts[module.name]) for module in emission.modules],
    }


def module_file(module: Module) -> str:
    """Return where a module's Verilog stands in an output folder.

    SRAMs have a folder of their own: what stands there are models of memories that a memory
    compiler or a technology library provides.
    """
    return f"{'sram' if isinstance(module.component, Sram) else 'rtl'}/{module.name}.v"


def manifest_text(manifest: Mapping[str, Any]) -> str:
    """Return the manifest as JSON text, in a fixed layout."""
    return json.dumps(manifest, indent=1, allow_nan=False) + "\n"


def generator_versions() -> dict[str, str]:
    """Return the versions of the packages whose output the Verilog is."""
    return {name: metadata.version(name) for name in _GENERATORS}


def describe_shape(shape: Any) -> dict[str, Any]:
    """Return the layout of a value of `shape`, an Amaranth shape, as plain data.

    `kind` is `unsigned`, `signed`, `enum` (with `values`), `struct` or `union` (with `fields`,
    each with its `offset`), or `array` (with `length`, `stride` and the layout of an `element`).
    """
    width = Shape.cast(shape).width
    if isinstance(shape, type) and issubclass(shape, (data.Struct, data.Union)):
        shape = data.Layout.cast(shape)
    if isinstance(shape, data.ArrayLayout):
        stride = Shape.cast(shape.elem_shape).width
        return {
            "kind": "array",
            "width": width,
            "length": shape.length,
            "stride": stride,
            "element": describe_shape(shape.elem_shape),
        }
    if isinstance(shape, data.Layout):
        kind = "union" if isinstance(shape, data.UnionLayout) else "struct"
        members = cast("Iterable[tuple[str | int, data.Field]]", shape)
        fields = {
            str(name): {"offset": field.offset, **describe_shape(field.shape)}
            for name, field in members
        }
        return {"kind": kind, "width": width, "fields": fields}
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return {
            "kind": "enum",
            "width": width,
            "signed": Shape.cast(shape).signed,
            "values": {member.name: member.value for member in shape},
        }
    if isinstance(shape, ShapeCastable) and not isinstance(shape, type):
        return describe_shape(shape.as_shape())
    return {"kind": "signed" if Shape.cast(shape).signed else "unsigned", "width": width}


def _describe(configuration: Configuration) -> dict[str, Any]:
    return {
        "name": configuration.name,
        "hash": configuration.hash,
        "hash64": f"0x{configuration.hash64:016x}",
        "values": configuration.model_dump(mode="json"),
    }


def _module(module: Module, count: int) -> dict[str, Any]:
    members = {port_name: (path, shape) for path, port_name, shape in _leaves(module)}
    ports = {port.name for port in module.ports}
    clocked = "clk" in ports - members.keys()
    latency = module.component.latency
    return {
        "name": module.name,
        "kind": module.kind,
        "file": module_file(module),
        "parameters": {name: _plain(value) for name, value in module.parameters.items()},
        "count": count,
        "clock": "clk" if clocked else None,
        "reset": "rst" if "rst" in ports - members.keys() else None,
        "latency": 0 if latency is None and not clocked else latency,
        "ports": [_port(port, members) for port in module.ports],
        "streams": dict(_streams(module.component.signature, (), ports)),
        "name_map": {
            "members": {path: name for name, (path, _) in members.items() if name in ports},
            "instances": dict(module.instances),
        },
    }


def _port(port: Port, members: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    path, shape = members.get(port.name, (None, None))
    return {
        "name": port.name,
        "direction": port.direction,
        "width": port.width,
        "member": path,
        "layout": None if path is None else describe_shape(shape),
    }


def _leaves(module: Module) -> Iterator[tuple[str, str, Any]]:
    for path, member, _ in module.component.signature.flatten(module.component):
        yield _dotted(path), _port_name(path), member.shape


def _streams(
    signature: wiring.Signature, prefix: tuple[str | int, ...], ports: set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, member in _signature_members(signature, prefix):
        inner = member.signature
        if isinstance(inner, stream.Signature):
            names = {part: _port_name((*path, part)) for part in ("payload", "valid", "ready")}
            yield (
                _dotted(path),
                {
                    "direction": "input" if member.flow is wiring.In else "output",
                    **{part: name if name in ports else None for part, name in names.items()},
                },
            )
        else:
            yield from _streams(inner, path, ports)


def _signature_members(
    signature: wiring.Signature, prefix: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], wiring.Member]]:
    for name, member in signature.members.items():
        if member.is_signature:
            paths: list[tuple[str | int, ...]] = [(*prefix, name)]
            for size in member.dimensions:
                paths = [(*path, index) for path in paths for index in range(size)]
            for path in paths:
                yield path, member


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path))


def _port_name(path: tuple[str | int, ...]) -> str:
    return "__".join(map(str, path))


def _plain(value: Any) -> Any:
    """Return a parameter as JSON data."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return repr(value)
