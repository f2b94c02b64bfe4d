"""Matrices in MX formats: quantisation, dequantisation and the layouts in memory.

A matrix has `rows` rows of K elements; K is the reduction axis, and 32 consecutive elements of
a row share a scale. K need not be a multiple of 32: the last block of a row is then short, and
in memory its missing codes count as zero, whatever is stored there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F32, F64, U8, require_dtype
from poblano_golden.elements import decode, encode
from poblano_golden.formats import BLOCK_SIZE, MXFP4, SCALE_NAN, MxFormat, num_blocks
from poblano_golden.scales import require_rule, scale_bytes, scale_values

__all__ = [
    "GIVEN",
    "MxTensor",
    "dequantise",
    "from_checkpoint",
    "num_blocks",
    "pack",
    "quantise",
    "unpack",
]

_Scalar = TypeVar("_Scalar", np.uint8, np.float32)

GIVEN = "given"
"""The rule of scales that came with the data, for instance from a checkpoint."""


@dataclass(frozen=True, eq=False)
class MxTensor:
    """A matrix in an MX format.

    Parameters
    ----------
    codes:
        uint8 `[rows, K]`, one element code a byte.
    scales:
        uint8 `[rows, ceil(K / 32)]`, E8M0.
    fmt:
        The elements' format.
    rule:
        The scale rule that quantised it, a name in `SCALE_RULES`, or `GIVEN`.

    Raises
    ------
    ValueError
        If a type, a shape, a code or the rule is wrong, or a dimension is zero.
    """

    codes: U8
    scales: U8
    fmt: MxFormat
    rule: str = GIVEN

    def __post_init__(self) -> None:
        require_dtype("codes", self.codes, np.uint8)
        require_dtype("scales", self.scales, np.uint8)
        if self.codes.ndim != 2 or 0 in self.codes.shape:
            raise ValueError(f"codes must be [rows, K], both at least 1, not {self.codes.shape}")
        wanted = (self.rows, self.num_blocks)
        if self.scales.shape != wanted:
            raise ValueError(f"scales must be [rows, ceil(K / 32)] = {wanted}: {self.scales.shape}")
        largest = int(self.codes.max())
        if largest >> self.fmt.element_bits:
            limit = 1 << self.fmt.element_bits
            raise ValueError(f"a code of {self.fmt.name} must be below {limit}, not {largest}")
        if self.rule != GIVEN:
            require_rule(self.rule)

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return self.codes.shape[0]

    @property
    def k(self) -> int:
        """Elements of a row: the length of the reduction axis."""
        return self.codes.shape[1]

    @property
    def num_blocks(self) -> int:
        """Blocks of a row, the last perhaps short."""
        return num_blocks(self.k)


def quantise(x: F32, fmt: MxFormat, rule: str) -> MxTensor:
    """Return `x` in an MX format, its blocks along the last axis.

    A block's scale follows from its largest magnitude by `rule` (see `scales`); each element is
    the exact quotient rounded once (see `elements.encode`). A block that holds a NaN or an
    infinity gets scale 0xFF and codes 0; a block of zeros gets scale 0.

    Parameters
    ----------
    x:
        float32 `[rows, K]`, any K.
    fmt:
        The format.
    rule:
        A name in `SCALE_RULES`.

    Raises
    ------
    ValueError
        If `x` is not a float32 matrix without a zero dimension, or the rule is unknown.
    """
    require_dtype("x", x, np.float32)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x must be [rows, K], both at least 1, not {x.shape}")
    rows, k = x.shape
    blocks = _in_blocks(x)
    # Magnitudes order like their bits, infinity and NaN above all finite ones.
    bits = np.ascontiguousarray(blocks).view(np.uint32) & 0x7FFFFFFF
    scales = scale_bytes(bits.max(axis=-1).view(np.float32), fmt, rule)
    invalid = scales == SCALE_NAN
    divisor = scale_values(np.where(invalid, 0, scales).astype(np.uint8))
    finite = np.where(invalid[..., None], np.float32(0), blocks)
    codes = encode(finite / divisor[..., None], fmt)
    return MxTensor(codes.reshape(rows, -1)[:, :k].copy(), scales, fmt, rule)


def dequantise(t: MxTensor) -> F64:
    """Return the numbers of `t`, `[rows, K]`, exactly.

    float64, because 448 * 2**127 and its like exceed float32. NaN where the scale is 0xFF.
    """
    values = _in_blocks(decode(t.codes, t.fmt)) * scale_values(t.scales)[..., None]
    return values.reshape(t.rows, -1)[:, : t.k]


def pack(t: MxTensor) -> tuple[U8, U8]:
    """Return `t` as it lies in memory, block-major.

    Returns
    -------
    Codes, uint8 `[ceil(K / 32), rows, block_bytes]`, and scales, uint8 `[ceil(K / 32), rows]`.
    Two four-bit codes share a byte, the even element in the low half; six-bit codes sit in the
    low bits of a byte. The codes past K are zero.
    """
    blocks = _in_blocks(t.codes)
    if t.fmt.storage_bits == 4:
        blocks = blocks[..., 0::2] | (blocks[..., 1::2] << np.uint8(4))
    return blocks.transpose(1, 0, 2).copy(), t.scales.T.copy()


def unpack(codes: U8, scales: U8, fmt: MxFormat, k: int, rule: str = GIVEN) -> MxTensor:
    """Return the matrix that lies in memory as `pack` describes.

    Whatever stands past K, and above the low six bits of a six-bit code, is ignored.

    Parameters
    ----------
    codes, scales:
        The two arrays of `pack`.
    fmt:
        The elements' format.
    k:
        Elements of a row.
    rule:
        The scale rule to record.

    Raises
    ------
    ValueError
        If a type or a shape does not fit `fmt` and `k`.
    """
    require_dtype("codes", codes, np.uint8)
    require_dtype("scales", scales, np.uint8)
    wanted = (num_blocks(k), fmt.block_bytes)
    if codes.ndim != 3 or (codes.shape[0], codes.shape[2]) != wanted:
        raise ValueError(
            f"packed codes of {fmt.name}, K = {k}, must be [{wanted[0]}, rows, {wanted[1]}], "
            f"not {codes.shape}"
        )
    return _from_blocks(codes.transpose(1, 0, 2), scales.T, fmt, k, rule)


def from_checkpoint(blocks: U8, scales: U8) -> MxTensor:
    """Return a matrix of a GPT-OSS checkpoint, MXFP4.

    Parameters
    ----------
    blocks:
        uint8 `[rows, K / 32, 16]`, the even element in the low half of a byte.
    scales:
        uint8 `[rows, K / 32]`; s stands for 2**(s - 127).

    Raises
    ------
    ValueError
        If a type or a shape is wrong.
    """
    require_dtype("blocks", blocks, np.uint8)
    require_dtype("scales", scales, np.uint8)
    if blocks.ndim != 3 or blocks.shape[2] != MXFP4.block_bytes:
        raise ValueError(f"blocks must be [rows, K / 32, 16], not {blocks.shape}")
    return _from_blocks(blocks, scales, MXFP4, blocks.shape[1] * BLOCK_SIZE, GIVEN)


def _from_blocks(blocks: U8, scales: U8, fmt: MxFormat, k: int, rule: str) -> MxTensor:
    """Return the matrix of packed blocks `[rows, ceil(K / 32), block_bytes]`."""
    if fmt.storage_bits == 4:
        codes = np.stack((blocks & np.uint8(0xF), blocks >> np.uint8(4)), axis=-1)
    else:
        codes = blocks & np.uint8((1 << fmt.element_bits) - 1)
    codes = codes.reshape(blocks.shape[0], blocks.shape[1] * BLOCK_SIZE)
    return MxTensor(codes[:, :k].copy(), scales.copy(), fmt, rule)


def _in_blocks(x: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return `[rows, K]` as `[rows, ceil(K / 32), 32]`, padded with zeros."""
    rows, k = x.shape
    padded = np.pad(x, ((0, 0), (0, -k % BLOCK_SIZE)))
    return padded.reshape(rows, -1, BLOCK_SIZE)
