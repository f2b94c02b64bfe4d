"""Places for tensors: a stack in L1, and a stack in every HBM port's memory."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from poblano_golden.errors import PoblanoError

__all__ = ["Stack"]


class Stack:
    """Gives out bytes in ascending order; what a scope took is free again when it ends.

    Parameters
    ----------
    place:
        What it is, for messages.
    size:
        Bytes.
    """

    def __init__(self, place: str, size: int) -> None:
        self.place = place
        self.size = size
        self.top = 0
        self.peak = 0

    def take(self, length: int, alignment: int, name: str) -> int:
        """Return the address of `length` bytes.

        Raises
        ------
        PoblanoError
            If they do not fit.
        """
        address = -(-self.top // alignment) * alignment
        if address + length > self.size:
            raise PoblanoError(
                f"{name} takes {length} bytes of {self.place} at {address}, "
                f"{address + length - self.size} more than its {self.size}"
            )
        self.top = address + length
        self.peak = max(self.peak, self.top)
        return address

    @contextmanager
    def scope(self) -> Generator[None]:
        """Free on leaving what was taken inside."""
        top = self.top
        try:
            yield
        finally:
            self.top = top
