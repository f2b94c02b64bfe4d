"""Starter testbenches: a file that drives a block at once, and in which the model is missing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from jinja2 import Environment, StrictUndefined

from poblano_flow.emission import emit
from poblano_flow.manifest import build_manifest
from poblano_golden.errors import PoblanoError
from poblano_verif import registry

__all__ = ["write_bench"]


def write_bench(block: str, path: Path | None = None) -> Path:
    """Write a starter testbench for `NAME` or `NAME:VARIANT`; return its path.

    Parameters
    ----------
    block:
        A block of the registry.
    path:
        The file; by default `NAME_bench.py` in the current folder.

    Raises
    ------
    PoblanoError
        If there is no such block, the file exists, or its name is no module's.
    """
    found, variant = registry.find(block)
    path = path or Path(f"{found.name}_bench.py")
    if not path.stem.isidentifier() or path.suffix != ".py":
        raise PoblanoError(f"{path}: a testbench must be named like a Python module, NAME.py")
    if path.exists():
        raise PoblanoError(f"{path}: a new testbench must not replace a file; it exists")
    emission = emit(found.variants[variant].make())
    manifest = build_manifest(emission)
    top = cast("dict[str, Any]", manifest["modules"][-1])
    text = _render(f"{found.name}:{variant}", found.summary, top)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


def _render(block: str, summary: str, top: Mapping[str, Any]) -> str:
    streams = cast("dict[str, dict[str, Any]]", top["streams"])
    directions = {name: str(stream["direction"]) for name, stream in streams.items()}
    kind = "stream" if "input" in directions.values() else "port"
    ports = {str(port["name"]): port for port in top["ports"]}
    if kind == "port":
        clocks = {top["clock"], top["reset"]}
        directions = {n: str(p["direction"]) for n, p in ports.items() if n not in clocks}
    described = {
        name: f"{name}: {_layout(ports[streams[name]['payload'] if kind == 'stream' else name])}"
        for name in directions
    }
    templates = Environment(undefined=StrictUndefined, autoescape=False)  # noqa: S701 (Python)
    source = files("poblano_flow") / "templates" / f"{kind}_bench.py.j2"
    return (
        templates.from_string(source.read_text("utf-8")).render(
            block=block,
            summary=summary,
            inputs=[described[n] for n, d in directions.items() if d == "input"],
            outputs=[described[n] for n, d in directions.items() if d == "output"],
            latency=top["latency"] or 0,
        )
        + "\n"
    )


def _layout(port: Mapping[str, Any]) -> str:
    layout: Mapping[str, Any] = port["layout"] or {"kind": "unsigned"}
    if layout["kind"] in ("struct", "union"):
        return f"{{{', '.join(layout['fields'])}}}"
    if layout["kind"] == "array":
        return f"a list of {layout['length']}"
    if layout["kind"] == "enum":
        return f"one of {', '.join(layout['values'])}"
    return f"{port['width']} bits, {layout['kind']}"
