"""Values of a port, packed and unpacked by the layout that the manifest gives.

A structure is a dictionary, an array a list, an enumeration the name of its member (a number
without a name stays a number), everything else an integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from poblano_golden.errors import PoblanoError

__all__ = ["Layout", "Value", "leaves", "text_of"]

Value = Any
"""An integer, a name, a list of values, or a dictionary of them."""


@dataclass(frozen=True)
class Layout:
    """How the bits of a value are used.

    Parameters
    ----------
    kind:
        `unsigned`, `signed`, `enum`, `struct`, `union` or `array`.
    width:
        Bits of the whole value.
    signed:
        Whether an enumeration is.
    fields:
        Of a structure or union: name to offset and layout.
    names:
        Of an enumeration: value to name.
    element, stride, length:
        Of an array.
    """

    kind: str
    width: int
    signed: bool = False
    fields: Mapping[str, tuple[int, Layout]] = field(default_factory=dict[str, Any])
    names: Mapping[int, str] = field(default_factory=dict[int, str])
    element: Layout | None = None
    stride: int = 0
    length: int = 0

    @staticmethod
    def of(described: Mapping[str, Any] | None, width: int) -> Layout:
        """Return the layout that a manifest describes; plain bits if it describes none."""
        if described is None:
            return Layout("unsigned", width)
        kind, width = str(described["kind"]), int(described["width"])
        if kind in ("struct", "union"):
            items = cast("dict[str, dict[str, Any]]", described["fields"])
            fields = {
                name: (int(item["offset"]), Layout.of(item, int(item["width"])))
                for name, item in items.items()
            }
            return Layout(kind, width, fields=fields)
        if kind == "array":
            stride = int(described["stride"])
            return Layout(
                kind,
                width,
                element=Layout.of(described["element"], stride),
                stride=stride,
                length=int(described["length"]),
            )
        if kind == "enum":
            values = cast("dict[str, int]", described["values"])
            names = {value: name for name, value in values.items()}
            return Layout(kind, width, signed=bool(described.get("signed")), names=names)
        return Layout(kind, width, signed=kind == "signed")

    def pack(self, value: Value) -> int:
        """Return the bits of a value.

        Fields and elements that are not given are 0.

        Raises
        ------
        PoblanoError
            If the value has no place in the layout or does not fit it.
        """
        return self._pack(value, "value")

    def _pack(self, value: Value, path: str) -> int:
        if isinstance(value, Mapping):
            given = cast("Mapping[str, Value]", value)
            unknown = [name for name in given if name not in self.fields]
            if unknown:
                raise PoblanoError(
                    f"{path} must have fields of {', '.join(self.fields) or self.kind}; "
                    f"got {unknown[0]!r}"
                )
            parts = [(self.fields[name], item, f"{path}.{name}") for name, item in given.items()]
        elif isinstance(value, Sequence) and not isinstance(value, str):
            items = cast("Sequence[Value]", value)
            if self.element is None or len(items) > self.length:
                raise PoblanoError(
                    f"{path} must be {self._wanted()}; got a sequence of {len(items)}"
                )
            parts = [
                ((index * self.stride, self.element), item, f"{path}[{index}]")
                for index, item in enumerate(items)
            ]
        else:
            return self._pack_leaf(value, path)
        bits = 0
        for (offset, layout), item, place in parts:
            bits |= layout._pack(item, place) << offset  # noqa: SLF001 (its own class)
        return bits

    def _pack_leaf(self, value: Value, path: str) -> int:
        if isinstance(value, str):
            named = {name: number for number, name in self.names.items()}
            if value not in named:
                raise PoblanoError(f"{path} must be {self._wanted()}; got {value!r}")
            number = named[value]
        else:
            number = int(value)
        lowest, highest = (0, (1 << self.width) - 1)
        if self.signed:
            lowest, highest = -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        if not lowest <= number <= highest:
            raise PoblanoError(f"{path} must be {lowest} to {highest}; got {number}")
        return number & ((1 << self.width) - 1)

    def _wanted(self) -> str:
        if self.names:
            return f"one of {', '.join(self.names.values())}"
        return f"an array of at most {self.length}" if self.element else f"a number ({self.kind})"

    def unpack(self, bits: int) -> Value:
        """Return the value of `bits`, the inverse of `pack`."""
        if self.fields:
            return {
                name: layout.unpack((bits >> offset) & ((1 << layout.width) - 1))
                for name, (offset, layout) in self.fields.items()
            }
        if self.element is not None:
            mask = (1 << self.stride) - 1
            return [
                self.element.unpack((bits >> (index * self.stride)) & mask)
                for index in range(self.length)
            ]
        number = bits
        if self.signed and bits >> (self.width - 1):
            number -= 1 << self.width
        return self.names.get(number, number)

    def random(self, random: Random) -> Value:
        """Return a random value: any bits, but only members of an enumeration."""
        if self.kind == "struct":
            return {name: layout.random(random) for name, (_, layout) in self.fields.items()}
        if self.element is not None:
            return [self.element.random(random) for _ in range(self.length)]
        if self.names:
            return random.choice(list(self.names.values()))
        return self.unpack(random.getrandbits(self.width) if self.width else 0)


def leaves(layout: Layout, bits: int, path: str = "") -> Iterator[tuple[str, Layout, int]]:
    """Yield name, layout and bits of every part of a value that has no parts itself.

    The name of the value itself is empty.
    """
    if layout.fields:
        for name, (offset, part) in layout.fields.items():
            inner = (bits >> offset) & ((1 << part.width) - 1)
            yield from leaves(part, inner, f"{path}.{name}" if path else name)
    elif layout.element is not None:
        for index in range(layout.length):
            inner = (bits >> (index * layout.stride)) & ((1 << layout.stride) - 1)
            yield from leaves(layout.element, inner, f"{path}[{index}]")
    else:
        yield path, layout, bits


def text_of(layout: Layout, bits: int) -> str:
    """Return a value as one line: `name=value` of every part, numbers in hexadecimal."""
    parts: list[str] = []
    for name, leaf, part in leaves(layout, bits):
        value = leaf.unpack(part)
        shown = value if isinstance(value, str) else _number(leaf, value)
        parts.append(f"{name}={shown}" if name else shown)
    return " ".join(parts)


def _number(leaf: Layout, value: int) -> str:
    if leaf.signed:
        return str(value)
    return str(value) if leaf.width == 1 else f"{value:#0{2 + (leaf.width + 3) // 4}x}"
