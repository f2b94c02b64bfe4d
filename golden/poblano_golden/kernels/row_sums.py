"""The order in which a vector engine adds up a row."""

from __future__ import annotations

from dataclasses import dataclass

from poblano_golden.arrays import F32
from poblano_golden.reductions import total

__all__ = ["RowSums"]


@dataclass(frozen=True)
class RowSums:
    """Sums of rows: `lanes` neighbours a beat, beats to `ways` accumulators in turn."""

    lanes: int
    ways: int

    def __call__(self, x: F32) -> F32:
        """Return the sums of the rows of float32 `[rows, cols]`, `[rows, 1]`."""
        return total(x, self.lanes, self.ways)[:, None]
