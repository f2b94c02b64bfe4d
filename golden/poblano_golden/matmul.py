"""The matrix product of the tensor engine, bit for bit, and the results that it writes.

D[m, n] is the sum over the blocks of K, in ascending order, of the block dot products of row m
of A and row n of B. Each of those is rounded once to binary32 (see `dot`), and binary32 adds
sum them from +0. So D is never -0, and its value depends on no tile size or engine shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from poblano_golden import fp32
from poblano_golden.arrays import F32, F64, U16
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.dot import block_sum
from poblano_golden.elements import decode
from poblano_golden.formats import BF16, BLOCK_SIZE, FP16, FP32, MxFormat, WideFormat
from poblano_golden.scales import scale_values

__all__ = ["block_results", "matmul", "result"]


def matmul(a: MxTensor, b: MxTensor) -> F32:
    """Return A times B transposed, as the tensor engine accumulates it.

    Parameters
    ----------
    a:
        `[M, K]` in any MX format.
    b:
        `[N, K]` in any MX format.

    Returns
    -------
    float32 `[M, N]`; overflow gives infinity, every NaN is 0x7FC00000.

    Raises
    ------
    ValueError
        If the two K differ.
    """
    total = np.zeros((a.rows, b.rows), np.float32)
    for block in _blocks(a, b):
        total = fp32.add(total, block)
    return total


def block_results(a: MxTensor, b: MxTensor) -> F32:
    """Return the rounded block dot products that `matmul` sums: float32 `[ceil(K / 32), M, N]`.

    Raises
    ------
    ValueError
        If the two K differ.
    """
    return np.stack(list(_blocks(a, b)))


def result(
    d: F32,
    fmt: WideFormat | MxFormat,
    rule: str | None = None,
    axis: Literal["n", "m"] = "n",
) -> F32 | U16 | MxTensor:
    """Return what the engine writes for the products `d`.

    Parameters
    ----------
    d:
        float32 `[M, N]`.
    fmt:
        FP32 gives `d` itself; BF16 and FP16 give its rounded bits, uint16 `[M, N]`; an MX format
        gives an operand of a further product.
    rule:
        The scale rule; for MX formats only, and then needed.
    axis:
        Where the MX blocks run. `n` gives rows M and K = N; `m` gives the transpose, rows N and
        K = M.

    Raises
    ------
    ValueError
        If the rule is missing, superfluous or unknown, or `axis` is neither.
    """
    if axis not in ("n", "m"):
        raise ValueError(f"axis must be 'n' or 'm', not {axis!r}")
    if isinstance(fmt, MxFormat):
        if rule is None:
            raise ValueError(f"a result in {fmt.name} needs a scale rule")
        return quantise(d if axis == "n" else np.ascontiguousarray(d.T), fmt, rule)
    if rule is not None:
        raise ValueError(f"a result in {fmt.name} takes no scale rule, not {rule!r}")
    if fmt == FP32:
        return fp32.canonical(d)
    converters = {BF16: fp32.to_bf16_bits, FP16: fp32.to_fp16_bits}
    return converters[fmt](d)


def _blocks(a: MxTensor, b: MxTensor) -> Iterator[F32]:
    """Yield the rounded block dot products `[M, N]` in ascending order of the block."""
    if a.k != b.k:
        raise ValueError(f"A and B must have the same K, not {a.k} and {b.k}")
    scale_a, scale_b = scale_values(a.scales), scale_values(b.scales)
    for block in range(a.num_blocks):
        columns = slice(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE)
        x, y = decode(a.codes[:, columns], a.fmt), decode(b.codes[:, columns], b.fmt)
        scale = np.multiply.outer(scale_a[:, block], scale_b[:, block])
        yield fp32.from_float64(block_sum(x, y, a.fmt, b.fmt, _blas, _ieee) * scale)


def _blas(a: F64, b: F64) -> F64:
    return a @ b.T


def _ieee(a: F64, b: F64) -> F64:
    return np.einsum("mk,nk->mn", a, b)
