"""Reading safetensors files: the header is checked against the file before it is believed.

Source: the format description of the safetensors project: eight bytes of little-endian header
length, a JSON header of at most 100,000,000 bytes, then the tensors without gap or overlap.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from poblano_golden.errors import PoblanoError
from poblano_sw.model.cursor import Cursor, map_file

__all__ = ["SafetensorsFile", "SafetensorsInfo"]

_MAX_HEADER = 100_000_000
_DTYPES: dict[str, tuple[str, int]] = {
    "BOOL": ("?", 1), "U8": ("u1", 1), "I8": ("i1", 1), "U16": ("<u2", 2), "I16": ("<i2", 2),
    "U32": ("<u4", 4), "I32": ("<i4", 4), "U64": ("<u8", 8), "I64": ("<i8", 8),
    "F16": ("<f2", 2), "BF16": ("<u2", 2), "F32": ("<f4", 4), "F64": ("<f8", 8),
    "F8_E4M3": ("u1", 1), "F8_E5M2": ("u1", 1), "F8_E8M0": ("u1", 1),
}  # fmt: skip
"""Element type -> numpy type of what is stored, and its bytes."""


@dataclass(frozen=True)
class SafetensorsInfo:
    """Where a tensor lies: its element type, shape, first byte in the file and size in bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    size: int


class SafetensorsFile:
    """An opened safetensors file whose header has been checked as a whole.

    Parameters
    ----------
    path:
        The file. It is mapped, not read.

    Raises
    ------
    PoblanoError
        The header is longer than 100,000,000 bytes or than the file, is no JSON object, or
        describes a tensor with an unknown type, a zero dimension, or a span that is not what its
        shape takes, that overlaps another, leaves a gap, or ends beyond the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = map_file(path)
        cursor = Cursor(path, self._data)
        length: int = cursor.number("Q", "the header length")
        if length > _MAX_HEADER:
            raise cursor.error(f"header length {length:,} must be at most {_MAX_HEADER:,} bytes")
        try:
            header: Any = json.loads(
                cursor.take(length, "the header"), object_pairs_hook=_without_duplicates
            )
        except (ValueError, RecursionError) as error:
            raise cursor.error(f"the header is not valid JSON: {error}") from None
        if not isinstance(header, dict):
            raise cursor.error("the header must be a JSON object")
        entries = cast("dict[str, Any]", header)
        entries.pop("__metadata__", None)
        infos = [self._describe(name, entry, cursor.offset) for name, entry in entries.items()]
        self.tensors = self._check_places(infos, cursor.offset)
        """Every tensor's description, by name."""

    def _describe(self, name: str, entry: Any, start: int) -> SafetensorsInfo:
        def error(text: str) -> PoblanoError:
            return PoblanoError(f"{self.path}: tensor {name!r}: {text}")

        fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
        if set(fields) != {"dtype", "shape", "data_offsets"}:
            raise error("must have exactly dtype, shape and data_offsets")
        dtype = fields["dtype"]
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise error(f"unknown dtype {dtype!r}")
        shape, span = _counts(fields["shape"]), _counts(fields["data_offsets"])
        if shape is None:
            raise error(f"shape must be a list of counts, not {fields['shape']!r}")
        if 0 in shape:
            raise error(f"dimension {shape.index(0)} must be at least 1, not 0 (shape {shape})")
        if span is None or len(span) != 2 or span[0] > span[1]:
            raise error(
                f"data_offsets must be two ascending counts, not {fields['data_offsets']!r}"
            )
        size = math.prod(shape) * _DTYPES[dtype][1]
        if span[1] - span[0] != size:
            raise error(
                f"{dtype} {shape} takes {size:,} bytes, but data_offsets span {span[1] - span[0]:,}"
            )
        return SafetensorsInfo(name, dtype, tuple(shape), start + span[0], size)

    def _check_places(self, infos: list[SafetensorsInfo], start: int) -> dict[str, SafetensorsInfo]:
        """Refuse gaps and overlaps, and a file that is shorter or longer than its tensors."""
        end, previous = start, "the header"
        for info in sorted(infos, key=lambda i: (i.offset, i.name)):
            if info.offset != end:
                fault = "overlaps" if info.offset < end else "leaves a gap after"
                raise PoblanoError(f"{self.path}: tensor {info.name!r} {fault} {previous}")
            end, previous = info.offset + info.size, repr(info.name)
        if end != self._data.size:
            fault = "truncated" if end > self._data.size else "too long"
            raise PoblanoError(
                f"{self.path}: {fault}: the tensors end at byte {end}, "
                f"the file at {self._data.size}"
            )
        return {info.name: info for info in infos}

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """Return a tensor: BF16 as float32, eight-bit floats as their codes in uint8.

        Raises
        ------
        PoblanoError
            No such tensor.
        """
        info = self.tensors.get(name)
        if info is None:
            raise PoblanoError(f"{self.path}: tensor {name!r} is missing")
        raw = self._data[info.offset : info.offset + info.size].tobytes()
        values = np.frombuffer(raw, _DTYPES[info.dtype][0]).reshape(info.shape)
        if info.dtype == "BF16":
            return (values.astype(np.uint32) << 16).view(np.float32)
        return values


def _counts(value: Any) -> list[int] | None:
    """Return a list of integers of at least 0, or None if it is anything else."""
    if not isinstance(value, list):
        return None
    items = cast("list[Any]", value)
    return items if all(type(item) is int and item >= 0 for item in items) else None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} occurs twice")
    return result
