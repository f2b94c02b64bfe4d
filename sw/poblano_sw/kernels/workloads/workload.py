"""A kernel with numbers to run it on, and what must come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poblano_golden.arrays import F64, U8
from poblano_golden.blocks import MxTensor, dequantise
from poblano_sw.kernel import Blocks, Builder
from poblano_sw.kernel.tensors import Tensor
from poblano_sw.program import Program

__all__ = ["Expected", "Workload"]

Numbers = NDArray[np.generic] | MxTensor


@dataclass(frozen=True)
class Expected:
    """What must lie in a tensor in HBM afterwards.

    Attributes
    ----------
    tensor:
        The tensor.
    golden:
        What the numpy model says, bit for bit, as the tensor's `write` takes it.
    reference:
        What float64 arithmetic on the unquantised numbers says, `[rows, cols]`.
    """

    tensor: Tensor
    golden: Numbers
    reference: F64


@dataclass
class Workload:
    """A program, the numbers that must lie in HBM before, and those that must lie there after.

    Attributes
    ----------
    builder:
        What made the program.
    inputs:
        Tensors in HBM and their numbers.
    outputs:
        Tensors in HBM that the program writes.
    port_bytes:
        Bytes, without padding, that must cross the HBM port at least.
    macs:
        Multiply-accumulates of its products, and the formats in which they are done.
    """

    builder: Builder
    inputs: list[tuple[Tensor, Numbers]] = field(default_factory=list)
    outputs: list[Expected] = field(default_factory=list)
    port_bytes: int = 0

    @cached_property
    def program(self) -> Program:
        """The program, checked."""
        program = self.builder.program()
        program.check(self.builder.configuration)
        return program

    def memory(self) -> U8:
        """Return the bytes of HBM port 0 before the program runs."""
        memory = np.zeros(self.builder.hbm_end, np.uint8)
        for tensor, numbers in (*self.builder.images, *self.inputs):
            _write(tensor, memory, numbers)
        return memory

    def wrong(self, memory: U8) -> Iterator[str]:
        """Yield a line for every output that is not what the numpy model says."""
        for expected in self.outputs:
            wanted = memory.copy()
            _write(expected.tensor, wanted, expected.golden)
            places = np.flatnonzero(memory != wanted)
            if len(places):
                yield (
                    f"{expected.tensor.name}: {len(places)} bytes differ from the numpy model, the "
                    f"first at {places[0]:#x} of HBM port 0"
                )

    def relative_error(self, memory: U8) -> float:
        """Return the root mean square of all outputs' errors over that of the references."""
        squares = total = 0.0
        for expected in self.outputs:
            found = expected.tensor.read(memory)
            if isinstance(found, MxTensor):
                found = dequantise(found)
            squares += float(np.sum((found - expected.reference) ** 2))
            total += float(np.sum(expected.reference**2))
        return (squares / total) ** 0.5 if total else 0.0


def _write(tensor: Tensor, memory: U8, numbers: Numbers) -> None:
    if isinstance(tensor, Blocks):
        assert isinstance(numbers, MxTensor)
        tensor.write(memory, numbers)
    else:
        assert not isinstance(numbers, MxTensor)
        tensor.write(memory, numbers)


def total_bytes(tensors: Sequence[Tensor]) -> int:
    """Return the bytes of tensors, without padding."""
    return sum(run.length * run.count for tensor in tensors for run in tensor.runs())
