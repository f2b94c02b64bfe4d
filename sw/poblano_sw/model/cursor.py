"""Bounded reading of a binary file: nothing is taken that the file does not hold."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from poblano_golden.errors import PoblanoError

__all__ = ["Cursor", "map_file"]


def map_file(path: Path) -> npt.NDArray[np.uint8]:
    """Map a file read-only and return its bytes.

    Raises
    ------
    PoblanoError
        The file cannot be opened or is empty.
    """
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                raise PoblanoError(f"{path}: truncated: the file is empty")
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PoblanoError(f"{path}: cannot be read: {reason}") from None


class Cursor:
    """A position in a mapped file that moves only over bytes that exist.

    Parameters
    ----------
    path:
        The file's name, for messages.
    data:
        Its bytes.
    """

    def __init__(self, path: Path, data: npt.NDArray[np.uint8]) -> None:
        self._path = path
        self._data = data.data
        self.offset = 0

    def error(self, text: str) -> PoblanoError:
        """Return an error about this file."""
        return PoblanoError(f"{self._path}: {text}")

    def take(self, size: int, what: str) -> bytes:
        """Return the next `size` bytes."""
        left = len(self._data) - self.offset
        if size > left:
            raise self.error(
                f"truncated: {what} at byte {self.offset} needs {size} bytes, the file has {left}"
            )
        self.offset += size
        return bytes(self._data[self.offset - size : self.offset])

    def number(self, code: str, what: str) -> Any:
        """Return the next little-endian number; `code` is that of `struct`."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}"), what))[0]

    def text(self, what: str) -> str:
        """Return the next length-prefixed UTF-8 text."""
        raw = self.take(self.number("Q", f"the length of {what}"), what)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.error(f"{what} before byte {self.offset} is not UTF-8") from None

    def check_count(self, count: int, smallest: int, what: str) -> None:
        """Refuse a count of things that take at least `smallest` bytes each and cannot all fit."""
        left = len(self._data) - self.offset
        if count * smallest > left:
            raise self.error(
                f"{what} {count} needs at least {count * smallest} bytes, the file has {left} left"
            )
