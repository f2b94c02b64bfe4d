"""What every workload of the catalogue is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from poblano.vector.timing import sum_ways
from poblano_golden.arrays import F32
from poblano_golden.blocks import MxTensor, quantise
from poblano_golden.formats import MxFormat
from poblano_golden.kernels.row_sums import RowSums
from poblano_sw.kernel import Builder, Matrix

__all__ = ["Case", "quantised"]


Shape = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """What a workload is made from."""

    builder: Builder
    shape: Shape
    fmt: MxFormat
    numbers: np.random.Generator

    def normal(self, rows: int, cols: int) -> F32:
        """Return normally distributed numbers."""
        return self.numbers.standard_normal((rows, cols), dtype=np.float32)

    @property
    def sums(self) -> RowSums:
        """The order of the vector engine's sums."""
        vector = self.builder.configuration.slice.vector
        return RowSums(vector.lanes, sum_ways(vector))

    def pair(self, rows: int, cols: int, name: str) -> tuple[Matrix, Matrix]:
        """Return a matrix in L1 and one of its shape in HBM."""
        return (
            self.builder.matrix(rows, cols, name=name),
            self.builder.matrix(rows, cols, place="hbm_0", name=name),
        )


def quantised(x: F32, fmt: MxFormat) -> MxTensor:
    """Return numbers in MX blocks along the last axis, scales by the rule `even`."""
    return quantise(np.ascontiguousarray(x), fmt, "even")
