"""Moves between HBM and L1: what a DMA engine must leave in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import U8

__all__ = ["Move", "load", "read_indices", "store"]


@dataclass(frozen=True)
class Move:
    """`planes` x `rows` rows of `length` bytes, at a place in HBM and one in L1.

    Parameters
    ----------
    hbm, l1:
        Byte addresses of the first row, or with `indices`, of a row of index 0 in HBM.
    length:
        Bytes of a row.
    rows, planes:
        Rows of a plane, and planes.
    hbm_row_stride, l1_row_stride, hbm_plane_stride, l1_plane_stride:
        Bytes from one row or plane to the next.
    indices:
        L1 address of one little-endian uint32 a row, which takes the place of the row's number
        in HBM; None for rows in order. A load must not write there.
    """

    hbm: int
    l1: int
    length: int
    rows: int = 1
    hbm_row_stride: int = 0
    l1_row_stride: int = 0
    planes: int = 1
    hbm_plane_stride: int = 0
    l1_plane_stride: int = 0
    indices: int | None = None

    def places(self, l1: U8) -> Iterator[tuple[int, int]]:
        """Yield HBM and L1 address of every row in the engine's order.

        Parameters
        ----------
        l1:
            The bytes of L1, uint8 `[size]`, of which only the indices matter.
        """
        numbers = list(range(self.rows))
        if self.indices is not None:
            numbers = [int(index) for index in read_indices(l1, self.indices, self.rows)]
        for plane in range(self.planes):
            for row, number in enumerate(numbers):
                yield (
                    self.hbm + plane * self.hbm_plane_stride + number * self.hbm_row_stride,
                    self.l1 + plane * self.l1_plane_stride + row * self.l1_row_stride,
                )


def read_indices(l1: U8, address: int, count: int) -> NDArray[np.uint32]:
    """Return the `count` indices at `address` of L1, uint32 `[count]`."""
    return l1[address : address + 4 * count].view("<u4").astype(np.uint32)


def load(move: Move, hbm: U8, l1: U8, *, origin: int = 0) -> U8:
    """Return L1 after a load; where rows overlap in L1 the later one stays.

    Parameters
    ----------
    move:
        The move.
    hbm, l1:
        The bytes of both memories, uint8 `[size]`.
    origin:
        HBM address of `hbm[0]`.

    Raises
    ------
    ValueError
        If a row leaves either array.
    """
    result = l1.copy()
    for source, target in move.places(l1):
        _take(result, target, move.length)[:] = _take(hbm, source - origin, move.length)
    return result


def store(move: Move, hbm: U8, l1: U8, *, origin: int = 0) -> U8:
    """Return HBM after a store; where rows overlap in HBM the later one stays.

    Parameters and errors are those of `load`.
    """
    result = hbm.copy()
    for target, source in move.places(l1):
        _take(result, target - origin, move.length)[:] = _take(l1, source, move.length)
    return result


def _take(memory: U8, start: int, length: int) -> U8:
    if not 0 <= start <= len(memory) - length:
        raise ValueError(f"a row must lie in 0..{len(memory)}, not {start}..{start + length}")
    return memory[start : start + length]
