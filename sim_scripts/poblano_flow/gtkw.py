"""GTKWave save files: the clock first, then each stream and the other ports in groups.

Enumerations are shown by name, through a translation file beside the save file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from vcd.gtkw import GTKWSave

from poblano_verif.layouts import Layout

__all__ = ["write_gtkw"]


def write_gtkw(waveform: Path, manifest: Mapping[str, Any], marker: int | None = None) -> Path:
    """Write `<waveform>.gtkw` for the ports of a design; return its path.

    Parameters
    ----------
    waveform:
        The FST or VCD file of a run.
    manifest:
        The design's manifest.
    marker:
        Time in the file's units at which GTKWave puts its marker.
    """
    path = waveform.with_suffix(".gtkw")
    modules = cast("list[dict[str, Any]]", manifest["modules"])
    top = next(module for module in modules if module["name"] == manifest["top"])
    ports = {str(port["name"]): port for port in cast("list[dict[str, Any]]", top["ports"])}
    with path.open("w", encoding="utf-8") as file:
        save = GTKWSave(file)
        save.dumpfile(str(waveform.resolve()))
        save.savefile(str(path.resolve()))
        if marker is not None:
            save.zoom_markers(marker=marker)
        save.treeopen(f"{top['name']}.")
        writer = _Writer(save, str(top["name"]), path)
        for role in ("clock", "reset"):
            if top[role] is not None:
                writer.port(ports.pop(top[role]))
        for name, stream in cast("dict[str, dict[str, Any]]", top["streams"]).items():
            with save.group(f"{name} ({stream['direction']} stream)"):
                for part in ("valid", "ready", "payload"):
                    if stream[part] in ports:
                        writer.port(ports.pop(stream[part]))
        for title, direction in (("inputs", "input"), ("outputs", "output")):
            rest = [port for port in ports.values() if port["direction"] == direction]
            if rest:
                with save.group(title):
                    for port in rest:
                        writer.port(port)
    return path


class _Writer:
    """Writes ports, and below each the parts that its layout names."""

    def __init__(self, save: GTKWSave, top: str, path: Path) -> None:
        self._save = save
        self._top = top
        self._path = path

    def port(self, port: Mapping[str, Any]) -> None:
        """Write a port: its bits, then one vector for every part."""
        name = str(port["name"])
        layout = Layout.of(port["layout"], int(port["width"]))
        full = f"{self._top}.{name}"
        if layout.width > 1:
            full += f"[{layout.width - 1}:0]"
        self._trace(full, name, layout, alias=name)
        for path, offset, part in _parts(layout):
            top_bit = layout.width - offset - part.width
            bits = " ".join(f"({top_bit + index}){full}" for index in range(part.width))
            title = f"{name}{path}" if path.startswith("[") else f"{name}.{path}"
            self._trace(f"#{{{title}}} {bits}", title, part)

    def _trace(self, line: str, title: str, layout: Layout, alias: str | None = None) -> None:
        self._save.trace(
            line,
            alias=alias,
            datafmt="signed" if layout.kind == "signed" else "hex",
            translate_filter_file=self._translation(title, layout),
        )

    def _translation(self, title: str, layout: Layout) -> str | None:
        """Write the names of an enumeration; return the file that holds them."""
        if not layout.names:
            return None
        digits = (layout.width + 3) // 4
        mask = (1 << layout.width) - 1
        path = self._path.with_suffix("." + re.sub(r"\W+", "_", title) + ".txt")
        lines = [f"{value & mask:0{digits}x} {text}" for value, text in layout.names.items()]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path.resolve())


def _parts(layout: Layout, path: str = "", offset: int = 0) -> Iterator[tuple[str, int, Layout]]:
    """Yield name, offset and layout of the parts that get a line; long arrays stay whole."""
    if layout.fields:
        for name, (start, part) in layout.fields.items():
            yield from _parts(part, f"{path}.{name}" if path else name, offset + start)
    elif layout.element is not None and layout.length <= _LONGEST_ARRAY:
        for index in range(layout.length):
            yield from _parts(layout.element, f"{path}[{index}]", offset + index * layout.stride)
    elif path and layout.width:
        yield path, offset, layout


_LONGEST_ARRAY = 16
