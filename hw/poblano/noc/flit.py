"""The fields of a flit, declared once; imports no Amaranth.

Every flit carries the whole header, so a router needs no memory of a packet but which flit is its
last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from poblano.noc.parameters import NocParameters

__all__ = ["Fields", "flit_fields", "flit_places", "flit_width", "header_width"]

Fields: TypeAlias = "Mapping[str, int | Fields]"
"""Name to width in bits, or to the fields inside; the first is lowest."""


def flit_fields(parameters: NocParameters) -> Fields:
    """Return the fields of a flit.

    `last` marks the last flit of a packet; `kind` is the ends' own; `destination` and `source` are
    positions of nodes; `payload` is what is carried.
    """
    position = {
        "x": max(1, (parameters.width - 1).bit_length()),
        "y": max(1, (parameters.height - 1).bit_length()),
    }
    return {
        "last": 1,
        "kind": parameters.kind_width,
        "destination": position,
        "source": position,
        "payload": parameters.payload_width,
    }


def flit_places(parameters: NocParameters) -> dict[str, tuple[int, int]]:
    """Return the lowest bit and the width of every field, the parts of positions as `source.x`."""
    return dict(_places("", 0, flit_fields(parameters)))


def _places(path: str, offset: int, fields: Fields) -> Iterator[tuple[str, tuple[int, int]]]:
    for name, inside in fields.items():
        if isinstance(inside, int):
            yield path + name, (offset, inside)
            offset += inside
        else:
            for found in _places(f"{path}{name}.", offset, inside):
                yield found
                offset = sum(found[1])


def flit_width(parameters: NocParameters) -> int:
    """Return the bits of a flit."""
    return sum(width for _, width in flit_places(parameters).values())


def header_width(parameters: NocParameters) -> int:
    """Return the bits of a flit beside its payload."""
    return flit_width(parameters) - parameters.payload_width
