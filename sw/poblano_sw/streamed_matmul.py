"""Matrix products whose operands and results lie in HBM, streamed through L1 by columns.

The columns of B come in chunks. While one is multiplied the next are loaded and the results of
those before are stored; semaphores hand the buffers in L1 from engine to engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poblano.commands import LOAD_ROWS, MATMUL, STORE_ROWS
from poblano.config import SliceConfiguration
from poblano_golden.blocks import MxTensor, pack, unpack
from poblano_golden.formats import SCALE_RULES, MxFormat, WideFormat, num_blocks
from poblano_golden.fp32 import from_bf16_bits
from poblano_golden.matmul import matmul, result

__all__ = ["Product", "StreamedMatmul"]

Bytes = NDArray[np.uint8]

PAGE = 4096
"""HBM arrays begin at a multiple of it, so that no burst is cut short at a boundary."""

A_READY, B_FULL, B_FREE, D_FULL, D_FREE = range(5)
"""Semaphores: A is in L1; a chunk of B is; its buffer is free; results are; theirs is free."""


@dataclass(frozen=True)
class Product:
    """The sizes and formats of D[m, n] = A[m, k] * B[n, k] transposed.

    Parameters
    ----------
    m, n, k:
        Rows of A, rows of B, and the length of the sums.
    a, b, result:
        Formats.
    rule:
        Scale rule of quantised results.
    """

    m: int
    n: int
    k: int
    a: MxFormat
    b: MxFormat
    result: MxFormat | WideFormat
    rule: str = "floor"

    @property
    def blocks(self) -> int:
        """Blocks along k."""
        return num_blocks(self.k)

    def operand_bytes(self, fmt: MxFormat, rows: int) -> int:
        """Bytes of an operand's codes and scales."""
        return self.blocks * rows * (fmt.block_bytes + 1)

    def result_bytes(self, columns: int) -> tuple[int, int]:
        """Bytes of the codes and of the scales of `columns` columns of results."""
        if isinstance(self.result, MxFormat):
            blocks = num_blocks(columns) * self.m
            return blocks * self.result.block_bytes, blocks
        return self.m * columns * self.result.element_bits // 8, 0

    @property
    def moved_bytes(self) -> int:
        """Bytes of codes, scales and results, each once: what a port must move at least."""
        operands = self.operand_bytes(self.a, self.m) + self.operand_bytes(self.b, self.n)
        return operands + sum(self.result_bytes(self.n))


@dataclass(frozen=True)
class StreamedMatmul:
    """A product placed in HBM and L1, and the commands that run it.

    In HBM lie A as L1 holds it (codes, then scales, block-major), B in chunks of columns, each
    as L1 holds it, and D as `tensor.matmul` would leave it (codes, then scales).

    Parameters
    ----------
    configuration:
        The slice.
    product:
        What is multiplied.
    chunks:
        Columns of each chunk; all begin at a multiple of 32.
    buffers:
        Chunks of B that L1 holds at once. Results have two buffers.
    hbm:
        HBM address on port 0 at which A begins.
    """

    configuration: SliceConfiguration
    product: Product
    chunks: tuple[int, ...]
    buffers: int
    hbm: int = 0

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first column of each chunk."""
        return tuple(int(start) for start in np.cumsum((0, *self.chunks[:-1])))

    @property
    def result_buffers(self) -> int:
        """Chunks of results that L1 holds at once."""
        return min(2, len(self.chunks))

    # places

    @cached_property
    def hbm_b(self) -> tuple[int, ...]:
        """HBM address of each chunk of B."""
        start = _up(self.hbm + self.product.operand_bytes(self.product.a, self.product.m), PAGE)
        return tuple(start + self._b_bytes(column) for column in self.starts)

    @cached_property
    def hbm_d(self) -> int:
        """HBM address of the results."""
        return _up(self.hbm_b[0] + self._b_bytes(self.product.n), PAGE)

    @property
    def hbm_end(self) -> int:
        """The first HBM address past the product."""
        return self.hbm_d + sum(self.product.result_bytes(self.product.n))

    def _b_bytes(self, columns: int) -> int:
        return self.product.operand_bytes(self.product.b, columns)

    @cached_property
    def _l1(self) -> tuple[list[int], list[int], int]:
        """L1 address of each buffer of B and of D, and the first address past all."""
        line = self.configuration.l1.line
        widest = max(self.chunks)
        address = _up(self.product.operand_bytes(self.product.a, self.product.m), line)
        places: list[list[int]] = []
        for count, size in (
            (self.buffers, self._b_bytes(widest)),
            (self.result_buffers, sum(self.product.result_bytes(widest))),
        ):
            places.append([address + i * _up(size, line) for i in range(count)])
            address += count * _up(size, line)
        return places[0], places[1], address

    @property
    def l1_end(self) -> int:
        """The first L1 address past the product."""
        return self._l1[2]

    # commands

    def matmul_values(self, chunk: int) -> dict[str, int]:
        """Return the fields of a chunk's `tensor.matmul`, semaphores included."""
        product, columns = self.product, self.chunks[chunk]
        b = self._l1[0][chunk % self.buffers]
        d = self._l1[1][chunk % self.result_buffers]
        codes, _ = product.result_bytes(columns)
        mx = isinstance(product.result, MxFormat)
        values = {
            "a_format": product.a.code,
            "b_format": product.b.code,
            "d_format": product.result.code,
            "scale_rule": SCALE_RULES[product.rule],
            "axis": 0,
            "m": product.m,
            "n": columns,
            "k": product.k,
            "a_codes": 0,
            "a_code_stride": product.m * product.a.block_bytes,
            "a_scales": product.blocks * product.m * product.a.block_bytes,
            "a_scale_stride": product.m,
            "b_codes": b,
            "b_code_stride": columns * product.b.block_bytes,
            "b_scales": b + product.blocks * columns * product.b.block_bytes,
            "b_scale_stride": columns,
            "d_codes": d,
            "d_code_stride": codes // (num_blocks(columns) if mx else product.m),
            "d_scales": d + codes if mx else 0,
            "d_scale_stride": product.m if mx else 0,
            "wait_a": B_FULL,
            "wait_a_count": 1,
            "signal_a": D_FULL,
            "signal_a_count": 1,
        }
        if chunk == 0:
            values |= {"wait_b": A_READY, "wait_b_count": 1}
        elif chunk >= self.result_buffers:
            values |= {"wait_b": D_FREE, "wait_b_count": 1}
        if chunk + self.buffers < len(self.chunks):
            values |= {"signal_b": B_FREE, "signal_b_count": 1}
        return values

    def _loads(self) -> Iterator[dict[str, int]]:
        """Yield the loads: A, then B chunk by chunk."""
        product = self.product
        yield {
            "hbm": self.hbm,
            "l1": 0,
            "length": product.operand_bytes(product.a, product.m),
            "signal_a": A_READY,
            "signal_a_count": 1,
        }
        for chunk, columns in enumerate(self.chunks):
            values = {
                "hbm": self.hbm_b[chunk],
                "l1": self._l1[0][chunk % self.buffers],
                "length": self._b_bytes(columns),
                "signal_a": B_FULL,
                "signal_a_count": 1,
            }
            if chunk >= self.buffers:
                values |= {"wait_a": B_FREE, "wait_a_count": 1}
            yield values

    def _stores(self, chunk: int) -> list[dict[str, int]]:
        """Return the stores of a chunk's results: codes, and for MX formats scales."""
        product, columns, start = self.product, self.chunks[chunk], self.starts[chunk]
        l1 = self._l1[1][chunk % self.result_buffers]
        codes, scales = product.result_bytes(columns)
        before = product.result_bytes(start)
        if isinstance(product.result, MxFormat):
            all_codes, _ = product.result_bytes(product.n)
            stores = [
                {"hbm": self.hbm_d + before[0], "l1": l1, "length": codes},
                {"hbm": self.hbm_d + all_codes + before[1], "l1": l1 + codes, "length": scales},
            ]
        else:
            size = product.result.element_bits // 8
            stores = [
                {
                    "hbm": self.hbm_d + start * size,
                    "l1": l1,
                    "length": columns * size,
                    "rows": product.m,
                    "hbm_row_stride": product.n * size,
                    "l1_row_stride": columns * size,
                }
            ]
        stores[0] |= {"wait_a": D_FULL, "wait_a_count": 1}
        if chunk + self.result_buffers < len(self.chunks):
            stores[-1] |= {"signal_a": D_FREE, "signal_a_count": 1}
        return stores

    @cached_property
    def queues(self) -> dict[str, list[bytes]]:
        """The command words of every queue.

        Raises
        ------
        CommandError
            If a command breaks a rule, among them that everything must lie inside L1 and HBM.
        """
        chunks = range(len(self.chunks))
        commands = {
            "load_0": (LOAD_ROWS, list(self._loads())),
            "tensor": (MATMUL, [self.matmul_values(chunk) for chunk in chunks]),
            "store_0": (STORE_ROWS, [s for chunk in chunks for s in self._stores(chunk)]),
        }
        words: dict[str, list[bytes]] = {}
        for queue, (command, all_values) in commands.items():
            words[queue] = []
            for values in all_values:
                full = command.complete(values)
                command.check(self.configuration, full)
                words[queue].append(command.encode(full))
        return words

    # data

    def images(self, a: MxTensor, b: MxTensor) -> Iterator[tuple[int, Bytes]]:
        """Yield HBM address and bytes of every run that must be there before."""
        yield self.hbm, _packed(a)
        for address, start, columns in zip(self.hbm_b, self.starts, self.chunks, strict=True):
            rows = slice(start, start + columns)
            yield address, _packed(MxTensor(b.codes[rows], b.scales[rows], b.fmt))

    def read(self, results: Bytes) -> NDArray[np.float32] | MxTensor:
        """Return the results out of the bytes of HBM from `hbm_d` to `hbm_end`."""
        product = self.product
        codes, _ = product.result_bytes(product.n)
        if isinstance(product.result, MxFormat):
            blocks = (num_blocks(product.n), product.m)
            return unpack(
                results[:codes].reshape(*blocks, product.result.block_bytes),
                results[codes:].reshape(blocks),
                product.result,
                product.n,
            )
        wide = results.reshape(product.m, -1)
        if product.result.element_bits == 16:
            return from_bf16_bits(wide.view(np.uint16))
        return wide.view(np.float32)

    def golden_bytes(self, a: MxTensor, b: MxTensor) -> Bytes:
        """Return what the numpy model says must lie in HBM from `hbm_d` to `hbm_end`."""
        product = self.product
        quantised = isinstance(product.result, MxFormat)
        d = result(matmul(a, b), product.result, product.rule if quantised else None)
        if isinstance(d, MxTensor):
            return _packed(d)
        return np.ascontiguousarray(d).view(np.uint8).reshape(-1)


def _packed(tensor: MxTensor) -> Bytes:
    codes, scales = pack(tensor)
    return np.concatenate([codes.reshape(-1), scales.reshape(-1)])


def _up(value: int, step: int) -> int:
    return -(-value // step) * step
