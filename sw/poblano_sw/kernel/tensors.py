"""Tensors of a kernel: what shape and format they have, and where their bytes lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F32, U8
from poblano_golden.blocks import MxTensor, pack, unpack
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BLOCK_SIZE, MxFormat, num_blocks
from poblano_golden.vector import NUMBERS, Number, from_bytes, to_bytes
from poblano_sw.kernel.errors import located

__all__ = [
    "BF16",
    "FP16",
    "FP32",
    "INT8",
    "L1",
    "UINT32",
    "Blocks",
    "Matrix",
    "Run",
    "Tensor",
]

BF16, FP16, FP32, INT8 = (NUMBERS[name] for name in ("bf16", "fp16", "fp32", "int8"))

UINT32 = Number("uint32", 0, 4)
"""Indices: no engine computes with them."""

L1 = "l1"
"""The place of a tensor in the scratchpad; others are `hbm_P`, the memory of port P."""


@dataclass(frozen=True)
class Run:
    """`count` runs of `length` bytes, `stride` apart, from `address` of a place."""

    place: str
    address: int
    length: int
    count: int = 1
    stride: int = 0

    @property
    def end(self) -> int:
        """The first address past the last run."""
        return self.address + (self.count - 1) * self.stride + self.length

    def intervals(self) -> Iterator[tuple[int, int]]:
        """Yield begin and end of every run of adjacent bytes."""
        if self.count == 1 or self.stride == self.length:
            yield self.address, self.end
            return
        for number in range(self.count):
            begin = self.address + number * self.stride
            yield begin, begin + self.length

    def bytes_of(self, memory: U8) -> U8:
        """Return the bytes, uint8 `[count, length]`."""
        starts = self.address + self.stride * np.arange(self.count)
        return memory[starts[:, None] + np.arange(self.length)]

    def write(self, memory: U8, data: U8) -> None:
        """Write `data`, uint8 `[count, length]`."""
        starts = self.address + self.stride * np.arange(self.count)
        memory[starts[:, None] + np.arange(self.length)] = data


@dataclass(frozen=True)
class Matrix:
    """Rows of plain numbers.

    Parameters
    ----------
    place:
        `l1`, or `hbm_P`.
    address:
        Of the first element.
    rows, cols:
        The shape.
    number:
        The format of the elements.
    stride:
        Bytes from one row to the next.
    name:
        For messages.
    """

    place: str
    address: int
    rows: int
    cols: int
    number: Number
    stride: int
    name: str

    @located
    def __getitem__(self, key: slice | tuple[slice, slice]) -> Matrix:
        """Return some of the rows, or of rows and columns."""
        rows, cols = key if isinstance(key, tuple) else (key, slice(None))
        row, num_rows = _range(self.name, "rows", rows, self.rows)
        col, num_cols = _range(self.name, "columns", cols, self.cols)
        address = self.address + row * self.stride + col * self.number.size
        return replace(self, address=address, rows=num_rows, cols=num_cols)

    @located
    def reshaped(self, rows: int, cols: int) -> Matrix:
        """Return the same elements, row by row, as a matrix of another shape."""
        if self.rows > 1 and self.stride != self.row_bytes:
            raise PoblanoError(f"the rows of {self.name} must lie without gaps")
        if rows * cols != self.rows * self.cols:
            raise PoblanoError(
                f"{self.name} has {self.rows * self.cols} elements; got [{rows}, {cols}]"
            )
        return replace(self, rows=rows, cols=cols, stride=cols * self.number.size)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row's elements."""
        return self.cols * self.number.size

    def runs(self) -> tuple[Run, ...]:
        """Return where the bytes lie."""
        return (Run(self.place, self.address, self.row_bytes, self.rows, self.stride),)

    def read(self, memory: U8) -> F32:
        """Return the numbers that lie in a memory, `[rows, cols]`; uint32 as they are."""
        data = self.runs()[0].bytes_of(memory)
        if self.number is UINT32:
            return np.ascontiguousarray(data).view("<u4")  # type: ignore[return-value]
        return from_bytes(data, self.number)

    def write(self, memory: U8, x: NDArray[np.generic]) -> None:
        """Write numbers `[rows, cols]`, rounded to the format."""
        data = (
            np.ascontiguousarray(x, np.uint32).view(np.uint8)
            if self.number is UINT32
            else to_bytes(np.asarray(x, np.float32), self.number)
        )
        self.runs()[0].write(memory, data.reshape(self.rows, self.row_bytes))


@dataclass(frozen=True)
class Blocks:
    """A matrix in an MX format, block-major, blocks along the columns.

    Parameters
    ----------
    place, rows, cols, name:
        As of a `Matrix`.
    codes, scales:
        Addresses.
    fmt:
        The format.
    code_stride, scale_stride:
        Bytes from one column of blocks to the next.
    """

    place: str
    codes: int
    scales: int
    rows: int
    cols: int
    fmt: MxFormat
    code_stride: int
    scale_stride: int
    name: str

    @located
    def __getitem__(self, key: slice | tuple[slice, slice]) -> Blocks:
        """Return some of the rows, or of rows and columns; whole blocks but the last.

        Raises
        ------
        KernelError
            If columns do not begin at a block.
        """
        rows, cols = key if isinstance(key, tuple) else (key, slice(None))
        row, num_rows = _range(self.name, "rows", rows, self.rows)
        col, num_cols = _range(self.name, "columns", cols, self.cols)
        if col % BLOCK_SIZE or ((col + num_cols) % BLOCK_SIZE and col + num_cols != self.cols):
            raise PoblanoError(
                f"columns of {self.name} must be whole blocks of {BLOCK_SIZE}; "
                f"got {col}:{col + num_cols}"
            )
        block = col // BLOCK_SIZE
        return replace(
            self,
            codes=self.codes + block * self.code_stride + row * self.fmt.block_bytes,
            scales=self.scales + block * self.scale_stride + row,
            rows=num_rows,
            cols=num_cols,
        )

    @property
    def num_blocks(self) -> int:
        """Blocks of a row."""
        return num_blocks(self.cols)

    def runs(self) -> tuple[Run, ...]:
        """Return where the bytes lie: codes, then scales."""
        length = self.rows * self.fmt.block_bytes
        return (
            Run(self.place, self.codes, length, self.num_blocks, self.code_stride),
            Run(self.place, self.scales, self.rows, self.num_blocks, self.scale_stride),
        )

    def read(self, memory: U8) -> MxTensor:
        """Return the blocks that lie in a memory."""
        codes, scales = (run.bytes_of(memory) for run in self.runs())
        shaped = codes.reshape(self.num_blocks, self.rows, self.fmt.block_bytes)
        return unpack(shaped, scales, self.fmt, self.cols)

    def write(self, memory: U8, t: MxTensor) -> None:
        """Write blocks of the tensor's shape and format."""
        for run, data in zip(self.runs(), pack(t), strict=True):
            run.write(memory, np.ascontiguousarray(data).reshape(run.count, run.length))


Tensor = Matrix | Blocks
"""Any tensor."""


def _range(name: str, what: str, part: slice, size: int) -> tuple[int, int]:
    begin, end, step = part.indices(size)
    if step != 1 or end <= begin or (part.stop is not None and not 0 < part.stop <= size):
        raise PoblanoError(f"{what} of {name} must be a range within 0:{size}; got {part}")
    return begin, end - begin
