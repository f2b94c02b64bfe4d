"""Softmax of rows in two passes."""

from __future__ import annotations

from poblano_golden import fp32
from poblano_golden.arrays import F32
from poblano_golden.elementary import LOG2_E as FIXED_LOG2_E
from poblano_golden.elementary import LOG2_E_BITS, exp2, reciprocal
from poblano_golden.reductions import power_sum

__all__ = ["LOG2_E", "softmax"]

LOG2_E = fp32.constant(FIXED_LOG2_E / (1 << LOG2_E_BITS))
"""log2(e), rounded to binary32."""


def softmax(x: F32, lanes: int) -> F32:
    """Return the softmax of every row of float32 `[rows, cols]`.

    With y = x log2(e), rounded once, and reference and sum of `reductions.power_sum`, it is
    2**(y - reference) times the reciprocal of the sum. The rounding of y costs as much as an error
    of half a unit in the last place of x. A row of -infinity alone gives NaN.
    """
    y = fp32.multiply(x, LOG2_E)
    reference, total = power_sum(y, lanes)
    powers = exp2(fp32.subtract(y, reference[:, None]))
    return fp32.multiply(powers, reciprocal(total)[:, None])
