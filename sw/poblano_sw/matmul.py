"""Matrix products on one slice: where operands and results lie in L1, and the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poblano.commands import MATMUL, CommandError
from poblano.config import SliceConfiguration
from poblano.tensor.layout import Extent, extents
from poblano.tensor.timing import Phases, matmul_phases
from poblano_golden.blocks import MxTensor, pack, unpack
from poblano_golden.formats import SCALE_RULES, MxFormat, WideFormat, num_blocks
from poblano_golden.fp32 import from_bf16_bits
from poblano_golden.matmul import matmul, result
from poblano_sw.assembler import encode

__all__ = ["MatmulPlan", "golden_bytes", "plan_matmul", "split_columns"]

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class MatmulPlan:
    """A `tensor.matmul` with its arrays placed in L1.

    Parameters
    ----------
    configuration:
        The slice that it is for.
    values:
        The command's fields.
    result:
        The format of the results.
    """

    configuration: SliceConfiguration
    values: dict[str, int]
    result: MxFormat | WideFormat

    @cached_property
    def arrays(self) -> dict[str, Extent]:
        """The arrays by name: a_code, a_scale, b_code, b_scale, d_code and for MX d_scale."""
        return {extent.name: extent for extent in extents(self.values)}

    @property
    def word(self) -> bytes:
        """The command word, checked."""
        return encode(self.configuration, MATMUL.mnemonic, **self.values)

    @property
    def phases(self) -> Phases:
        """The cycles that it takes, and where they go."""
        return matmul_phases(self.configuration, self.values)

    @property
    def macs(self) -> int:
        """Useful multiply-accumulates."""
        return self.values["m"] * self.values["n"] * self.values["k"]

    def images(self, a: MxTensor, b: MxTensor) -> Iterator[tuple[int, Bytes]]:
        """Yield address and bytes of every run that must be in L1 before the command."""
        for side, tensor in (("a", a), ("b", b)):
            codes, scales = pack(tensor)
            for part, rows in (("code", codes), ("scale", scales)):
                yield from self._runs(self.arrays[f"{side}_{part}"], rows)

    def results(self, d: NDArray[np.generic] | MxTensor) -> Iterator[tuple[int, Bytes]]:
        """Yield address and bytes of every run that the command must leave in L1.

        `d` is what `poblano_golden.matmul.result` returns.
        """
        if isinstance(d, MxTensor):
            codes, scales = pack(d)
            yield from self._runs(self.arrays["d_code"], codes)
            yield from self._runs(self.arrays["d_scale"], scales)
        else:
            yield from self._runs(self.arrays["d_code"], d)

    def read(self, memory: Bytes) -> NDArray[np.float32] | MxTensor:
        """Return the results in an image of L1: float32 [rows, columns], or the blocks."""
        m, n = self.values["m"], self.values["n"]
        rows, columns = (m, n) if self.values["axis"] == 0 else (n, m)
        codes = self._gather(memory, self.arrays["d_code"])
        if isinstance(self.result, MxFormat):
            blocks = codes.reshape(num_blocks(columns), rows, self.result.block_bytes)
            scales = self._gather(memory, self.arrays["d_scale"])
            return unpack(blocks, scales, self.result, columns)
        if self.result.element_bits == 16:
            return from_bf16_bits(codes.view(np.uint16))
        return codes.view(np.float32)

    @staticmethod
    def _runs(extent: Extent, rows: NDArray[np.generic]) -> Iterator[tuple[int, Bytes]]:
        data = np.ascontiguousarray(rows).view(np.uint8).reshape(extent.steps, extent.length)
        for step in range(extent.steps):
            yield extent.address + step * extent.stride, data[step]

    @staticmethod
    def _gather(memory: Bytes, extent: Extent) -> Bytes:
        starts = extent.address + extent.stride * np.arange(extent.steps)
        return memory[starts[:, None] + np.arange(extent.length)]


def plan_matmul(
    configuration: SliceConfiguration,
    *,
    m: int,
    n: int,
    k: int,
    a: MxFormat,
    b: MxFormat,
    result: MxFormat | WideFormat,
    rule: str = "floor",
    axis: str = "n",
    base: int = 0,
) -> MatmulPlan:
    """Place A, B and D one after the other from `base`, aligned so that none costs extra cycles.

    Raises
    ------
    CommandError
        If the command breaks a rule, among them that everything must end inside L1.
    """
    line = configuration.l1.line
    values = {
        "a_format": a.code,
        "b_format": b.code,
        "d_format": result.code,
        "scale_rule": SCALE_RULES[rule],
        "axis": {"n": 0, "m": 1}[axis],
        "m": m,
        "n": n,
        "k": k,
    }
    names = [f"{side}_{part}" for side in "abd" for part in ("code", "scale")]
    for name in names:
        values |= {f"{name}s": 0, f"{name}_stride": 0}
    full = MATMUL.complete(values)
    for item in MATMUL.fields:
        item.check(full[item.name])
    address = base
    for extent in extents(full):
        stride = _aligned(extent.length, line)
        values |= {f"{extent.name}s": address, f"{extent.name}_stride": stride}
        address += -(-extent.steps * stride // line) * line
    if address > configuration.l1.size:
        raise CommandError(
            f"operands and results must fit the {configuration.l1.size} bytes of L1; "
            f"{m}x{k} by {k}x{n} in {a.name}*{b.name} to {result.name} takes {address} bytes"
        )
    values = MATMUL.complete(values)
    MATMUL.check(configuration, values)
    return MatmulPlan(configuration, values, result)


def _aligned(length: int, line: int) -> int:
    """Return the smallest stride for runs of `length` bytes in which none straddles for nothing.

    Short runs are spaced by a power of two, so that none crosses a line; others by whole lines.
    """
    if length >= line:
        return -(-length // line) * line
    return 1 << (length - 1).bit_length()


def split_columns(
    configuration: SliceConfiguration,
    *,
    m: int,
    n: int,
    k: int,
    a: MxFormat,
    b: MxFormat,
    result: MxFormat | WideFormat,
) -> list[range]:
    """Return ranges of columns, whole tiles but the last, whose products fit L1 one at a time.

    Raises
    ------
    CommandError
        If not even one tile of columns fits.
    """
    tensor = configuration.tensor
    tile = tensor.cols * tensor.tile_cols
    most = -(-n // tile)
    while most > 1:
        try:
            plan_matmul(configuration, m=m, n=min(n, most * tile), k=k, a=a, b=b, result=result)
            break
        except CommandError:
            most -= 1
    else:
        plan_matmul(configuration, m=m, n=min(n, tile), k=k, a=a, b=b, result=result)
    width = most * tile
    return [range(start, min(n, start + width)) for start in range(0, n, width)]


def golden_bytes(plan: MatmulPlan, a: MxTensor, b: MxTensor) -> list[tuple[int, Bytes]]:
    """Return address and bytes of every run that the numpy model says the command leaves."""
    rule = next(name for name, code in SCALE_RULES.items() if code == plan.values["scale_rule"])
    transposed = plan.values["axis"] == 1
    products = matmul(b, a) if transposed else matmul(a, b)
    quantised = isinstance(plan.result, MxFormat)
    return list(plan.results(result(products, plan.result, rule if quantised else None)))
