"""Weights in HBM in pieces of some rows: what a kernel streams through a ring of buffers.

A piece is a run of bytes, codes before scales, of one matrix of many alike, such as the experts' of
a layer. The pieces of the same rows of all of them lie one behind the other, a row each, so that a
piece is loaded by its expert's number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor, pack
from poblano_golden.formats import MxFormat, num_blocks
from poblano_golden.vector import INT8
from poblano_sw.kernel import Blocks, Builder, Matrix

__all__ = ["Pieces", "place_pieces"]

_ALIGNMENT = 64
"""What a piece begins at a multiple of."""


@dataclass(frozen=True)
class Pieces:
    """A matrix `[rows, cols]` of each of several alike, in pieces of `piece` rows.

    `bytes` has a matrix `[count, bytes of a piece]` for every piece.
    """

    rows: int
    cols: int
    piece: int
    fmt: MxFormat
    bytes: tuple[Matrix, ...]

    @property
    def port_bytes(self) -> int:
        """Bytes of one matrix, without padding."""
        return self.rows * num_blocks(self.cols) * (self.fmt.block_bytes + 1)

    @property
    def largest(self) -> int:
        """Bytes of the largest piece."""
        return self.bytes[0].cols

    def rows_of(self, piece: int) -> slice:
        """Return which rows of the matrix a piece has."""
        return slice(piece * self.piece, min(self.rows, (piece + 1) * self.piece))

    def blocks(self, buffer: Matrix, piece: int) -> Blocks:
        """Return the operand that a piece in a buffer of L1 is."""
        part = self.rows_of(piece)
        rows = part.stop - part.start
        stride = rows * self.fmt.block_bytes
        scales = buffer.address + num_blocks(self.cols) * stride
        return Blocks(
            buffer.place, buffer.address, scales, rows, self.cols, self.fmt, stride, rows, "weights"
        )

    def inputs(self, number: int, matrix: MxTensor) -> list[tuple[Matrix, F32]]:
        """Return places and bytes, as int8 numbers, of one of the matrices."""
        found: list[tuple[Matrix, F32]] = []
        for piece, table in enumerate(self.bytes):
            part = self.rows_of(piece)
            rows = MxTensor(matrix.codes[part], matrix.scales[part], matrix.fmt, matrix.rule)
            arrays = [np.ascontiguousarray(array).view(np.int8).reshape(-1) for array in pack(rows)]
            data = np.concatenate(arrays)[None].astype(np.float32)
            found.append((table[number : number + 1], data))
        return found


def place_pieces(
    builder: Builder, count: int, rows: int, cols: int, fmt: MxFormat, piece: int, name: str
) -> Pieces:
    """Take place in HBM for a matrix of each of `count` alike."""
    found: list[Matrix] = []
    for begin in range(0, rows, piece):
        length = min(piece, rows - begin) * num_blocks(cols) * (fmt.block_bytes + 1)
        stride = -(-length // _ALIGNMENT) * _ALIGNMENT
        taken = builder.matrix(count, stride, INT8, place="hbm_0", name=f"{name} {begin}")
        found.append(taken[:, :length])
    return Pieces(rows, cols, piece, fmt, tuple(found))
