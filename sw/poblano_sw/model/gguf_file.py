"""Reading GGUF files: every count, length and extent is checked before it is believed.

The layout is that of the GGUF specification, versions 2 and 3, little endian. The `gguf` package
supplies the table of block sizes and the dequantisation; the header is read here, because that
package trusts what a file says about itself.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from poblano_golden.errors import PoblanoError
from poblano_golden.formats import SCALE_NAN
from poblano_sw.model.cursor import Cursor, map_file

__all__ = ["GgufFile", "TensorInfo"]

_Value = TypeVar("_Value", int, float, str, bool, list[Any])

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_MAX_DIMENSIONS = 4
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}  # fmt: skip
"""Value type number -> `struct` code."""
_STRING, _ARRAY = 8, 9
_SMALLEST_ENTRY = 8 + 4 + 1
"""Bytes of the shortest metadata entry: key length, value type, one byte."""
_SMALLEST_TENSOR = 8 + 4 + 8 + 4 + 8
"""Bytes of the shortest tensor description: name length, count, one dimension, type, offset."""


@dataclass(frozen=True)
class TensorInfo:
    """Where a tensor lies and how it is stored.

    Parameters
    ----------
    name:
        Name in the file.
    shape:
        Lengths in numpy order, slowest first (the file lists them fastest first).
    type:
        Storage type.
    offset, size:
        First byte in the file, and how many.
    """

    name: str
    shape: tuple[int, ...]
    type: GGMLQuantizationType
    offset: int
    size: int


class GgufFile:
    """An opened GGUF file whose header has been checked as a whole.

    Parameters
    ----------
    path:
        The file. It is mapped, not read: tensors cost memory when they are asked for.

    Raises
    ------
    PoblanoError
        The file cannot be read, is truncated, is no GGUF of a known version, or describes a
        tensor that cannot exist (zero dimension, unknown type, ragged row, extent beyond the
        file, overlap). The message names the file, the tensor and the value.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._data = map_file(path)
        cursor = Cursor(path, self._data)
        tensors, entries = self._read_prologue(cursor)
        self.metadata: dict[str, Any] = {}
        """Every metadata entry: numbers, text, or a list of either."""
        for _ in range(entries):
            key = cursor.text("a metadata key")
            if key in self.metadata:
                raise cursor.error(f"metadata key {key!r} occurs twice")
            self.metadata[key] = _read_value(cursor, key)
        alignment = self.get("general.alignment", int, _DEFAULT_ALIGNMENT)
        if alignment < 1 or alignment & (alignment - 1):
            raise cursor.error(f"general.alignment must be a power of two, not {alignment}")
        infos = [_read_tensor_info(cursor, alignment) for _ in range(tensors)]
        self.tensors = self._place(infos, -(-cursor.offset // alignment) * alignment)
        """Every tensor's description, by name."""

    @staticmethod
    def _read_prologue(cursor: Cursor) -> tuple[int, int]:
        """Check magic and version; return the numbers of tensors and of metadata entries."""
        magic = cursor.take(4, "the magic number")
        if magic != _MAGIC:
            raise cursor.error(f"not a GGUF file: it begins with {magic!r}, not {_MAGIC!r}")
        version = cursor.number("I", "the version")
        if version not in _VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            note = " (a big-endian file)" if swapped in _VERSIONS else ""
            raise cursor.error(f"GGUF version must be one of {_VERSIONS}, not {version}{note}")
        tensors = cursor.number("Q", "the tensor count")
        entries = cursor.number("Q", "the metadata count")
        cursor.check_count(tensors, _SMALLEST_TENSOR, "tensor count")
        cursor.check_count(entries, _SMALLEST_ENTRY, "metadata count")
        return tensors, entries

    def _place(self, infos: list[TensorInfo], start: int) -> dict[str, TensorInfo]:
        """Turn offsets into file positions; refuse what overlaps or does not fit."""
        placed: dict[str, TensorInfo] = {}
        end, previous = start, "the header"
        for info in sorted(infos, key=lambda i: (i.offset, i.name)):
            if info.name in placed:
                raise PoblanoError(f"{self.path}: tensor {info.name!r} occurs twice")
            offset = start + info.offset
            if offset < end:
                raise PoblanoError(f"{self.path}: tensor {info.name!r} overlaps {previous}")
            end, previous = offset + info.size, repr(info.name)
            if end > self._data.size:
                raise PoblanoError(
                    f"{self.path}: truncated: tensor {info.name!r} ({info.type.name} "
                    f"{list(info.shape)}, {info.size} bytes) must lie within the file, but ends "
                    f"at byte {end} of {self._data.size}"
                )
            placed[info.name] = TensorInfo(info.name, info.shape, info.type, offset, info.size)
        return placed

    def get(self, key: str, kind: type[_Value], default: _Value | None = None) -> _Value:
        """Return a metadata entry of a stated kind.

        Raises
        ------
        PoblanoError
            The entry is missing and there is no default, or is of another kind.
        """
        if key not in self.metadata:
            if default is None:
                raise PoblanoError(f"{self.path}: metadata key {key!r} is missing")
            return default
        value = self.metadata[key]
        if type(value) is not kind:
            raise PoblanoError(
                f"{self.path}: metadata key {key!r} must be {kind.__name__}, "
                f"not {type(value).__name__}"
            )
        return value

    def tensor(self, name: str, rows: npt.ArrayLike | None = None) -> npt.NDArray[np.float32]:
        """Return a tensor, or some of its rows, as float32.

        Parameters
        ----------
        name:
            Name in the file.
        rows:
            Indices along the first axis of a two-dimensional tensor; everything by default.

        Raises
        ------
        PoblanoError
            No such tensor; a type that nothing here can decode; a NaN or an infinity in it.
        """
        info = self.tensors.get(name)
        if info is None:
            raise PoblanoError(f"{self.path}: tensor {name!r} is missing")
        raw = self._data[info.offset : info.offset + info.size]
        raw = raw.reshape(-1, info.size // math.prod(info.shape[:-1]))
        shape = info.shape
        if rows is not None:
            raw = raw[np.asarray(rows)]
            shape = (raw.shape[0], info.shape[-1])
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                values = np.asarray(dequantize(np.ascontiguousarray(raw), info.type), np.float32)
        except NotImplementedError:
            raise PoblanoError(
                f"{self.path}: tensor {name!r} has type {info.type.name}, which cannot be decoded"
            ) from None
        nan_scale = info.type == GGMLQuantizationType.MXFP4 and bool(
            np.any(raw.reshape(-1, 17)[:, 0] == SCALE_NAN)
        )
        if nan_scale or not np.isfinite(values).all():
            raise PoblanoError(f"{self.path}: tensor {name!r} holds a NaN or an infinity")
        return values.reshape(shape)


def _read_value(cursor: Cursor, key: str) -> Any:
    kind = cursor.number("I", f"the type of {key!r}")
    if kind == _STRING:
        return cursor.text(key)
    if kind != _ARRAY:
        return cursor.number(_scalar(cursor, key, kind), key)
    kind = cursor.number("I", f"the element type of {key!r}")
    count = cursor.number("Q", f"the length of {key!r}")
    if kind == _STRING:
        cursor.check_count(count, 8, f"length of {key!r}")
        return [cursor.text(key) for _ in range(count)]
    code = _scalar(cursor, key, kind)
    cursor.check_count(count, struct.calcsize(f"<{code}"), f"length of {key!r}")
    return list(struct.unpack(f"<{count}{code}", cursor.take(count * struct.calcsize(code), key)))


def _scalar(cursor: Cursor, key: str, kind: int) -> str:
    if kind == _ARRAY:
        raise cursor.error(f"metadata key {key!r} holds an array of arrays, which is not supported")
    if kind not in _SCALARS:
        raise cursor.error(f"metadata key {key!r} has the unknown value type {kind}")
    return _SCALARS[kind]


def _read_tensor_info(cursor: Cursor, alignment: int) -> TensorInfo:
    """Read one description; its offset is still relative to the data section."""
    name = cursor.text("a tensor name")
    dimensions = cursor.number("I", f"the number of dimensions of {name!r}")
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise cursor.error(
            f"tensor {name!r} must have 1 to {_MAX_DIMENSIONS} dimensions, not {dimensions}"
        )
    lengths = [cursor.number("Q", f"the dimensions of {name!r}") for _ in range(dimensions)]
    if 0 in lengths:
        raise cursor.error(
            f"tensor {name!r}: dimension {lengths.index(0)} must be at least 1, not 0 "
            f"(dimensions {lengths})"
        )
    number = cursor.number("I", f"the type of {name!r}")
    try:
        kind = GGMLQuantizationType(number)
        block, block_bytes = GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError):
        raise cursor.error(f"tensor {name!r} has the unknown type {number}") from None
    if lengths[0] % block:
        raise cursor.error(
            f"tensor {name!r}: a row of {kind.name} must be a multiple of {block} elements, "
            f"not {lengths[0]}"
        )
    offset = cursor.number("Q", f"the offset of {name!r}")
    if offset % alignment:
        raise cursor.error(
            f"tensor {name!r}: offset {offset} must be a multiple of the alignment {alignment}"
        )
    size = math.prod(lengths) // block * block_bytes
    return TensorInfo(name, tuple(reversed(lengths)), kind, offset, size)
