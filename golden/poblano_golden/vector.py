"""The vector engine's passes: a chain of operations on every element, and reductions of rows.

Every step is one binary32 operation of `fp32` or `elementary`; nothing is fused. An element goes
through

    m1 = a * factor1        s1 = operation1(m1, operand1)        f = function(s1)
    m2 = left2 * factor2    s2 = operation2(m2, operand2)

where a factor `one`, an operation or a function `pass` hands its left side on unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poblano_golden import elementary, fp32
from poblano_golden.arrays import F32, U8
from poblano_golden.formats import BF16, FP16, FP32
from poblano_golden.reductions import maximum, power_sum, total

__all__ = [
    "FACTORS",
    "FUNCTIONS",
    "INT8",
    "LEFTS",
    "NUMBERS",
    "OPERANDS",
    "OPERATIONS",
    "REDUCTIONS",
    "SECOND_FACTORS",
    "SECOND_OPERANDS",
    "Chain",
    "Number",
    "chained",
    "from_bytes",
    "reduced",
    "to_bytes",
    "valid_columns",
]

FACTORS = ("one", "a", "b", "p", "constant")
"""Factors of the first product."""

OPERATIONS = ("pass", "add", "subtract", "subtract_from", "maximum", "minimum", "select")
"""Operations of two numbers.

`subtract_from` is right - left, `select` left if left >= right, otherwise fill.
"""

OPERANDS = ("b", "c", "p", "q", "constant")
"""Right sides of the first operation."""

FUNCTIONS = (
    "pass",
    "negate",
    "absolute",
    "exp2",
    "exp",
    "sigmoid",
    "reciprocal",
    "reciprocal_sqrt",
)
"""Functions of one number."""

LEFTS = ("f", "c", "pair")
"""Left sides of the second product; `pair` is a of column i ^ 1."""

SECOND_FACTORS = ("one", "s1", "a", "b", "c", "p", "q", "constant", "reciprocal_q")
"""Factors of the second product; `reciprocal_q` is 1 / q as `elementary.reciprocal`."""

SECOND_OPERANDS = ("m1", "b", "c", "p", "q", "constant")
"""Right sides of the second operation."""

REDUCTIONS = ("none", "sum", "maximum", "softmax")
"""Reductions of a row; `softmax` gives two numbers a row, those of `reductions.power_sum`.

`softmax` needs s2 to be s1: `function` and `operation2` are `pass`, `left2` `f`, `factor2` `one`.
"""


@dataclass(frozen=True)
class Number:
    """A format of elements: its name, its number in commands, and its bytes."""

    name: str
    code: int
    size: int


INT8 = Number("int8", 11, 1)

NUMBERS: Mapping[str, Number] = {
    **{fmt.name: Number(fmt.name, fmt.code, fmt.element_bits // 8) for fmt in (BF16, FP16, FP32)},
    "int8": INT8,
}
"""Formats that elements are read and stored in, by name."""


_ZERO = np.float32(0)


@dataclass(frozen=True)
class Chain:
    """How a pass computes: names of the choices above, and constants as binary32 numbers."""

    factor1: str = "one"
    operation1: str = "pass"
    operand1: str = "b"
    function: str = "pass"
    left2: str = "f"
    factor2: str = "one"
    operation2: str = "pass"
    operand2: str = "m1"
    reduction: str = "none"
    constant1: np.float32 = _ZERO
    constant2: np.float32 = _ZERO
    constant3: np.float32 = _ZERO
    constant4: np.float32 = _ZERO
    fill: np.float32 = _ZERO


def from_bytes(data: U8, number: Number) -> F32:
    """Return elements that lie in memory as binary32 numbers, exactly; NaN is made canonical.

    `data` is uint8 `[..., n * number.size]`, little endian; the result float32 `[..., n]`.
    """
    data = np.ascontiguousarray(data)
    if number.name == "fp32":
        return fp32.canonical(data.view("<f4"))
    if number.name == "bf16":
        return fp32.from_bf16_bits(data.view("<u2"))
    if number.name == "fp16":
        return fp32.from_fp16_bits(data.view("<u2"))
    return fp32.from_int8(data.view(np.int8))


def to_bytes(x: F32, number: Number) -> U8:
    """Return numbers as they are stored, rounded once; the inverse of `from_bytes` in shape."""
    stored: NDArray[np.generic]
    if number.name == "fp32":
        stored = x
    elif number.name == "bf16":
        stored = fp32.to_bf16_bits(x)
    elif number.name == "fp16":
        stored = fp32.to_fp16_bits(x)
    else:
        stored = fp32.to_int8(x)
    return np.ascontiguousarray(stored).view(np.uint8)


def valid_columns(
    rows: int, cols: int, limit: int, limit_step: int, window: int
) -> NDArray[np.bool_]:
    """Return `[rows, cols]`, true where a column is valid.

    Row r has the columns from `end - window` (from the first if `window` is 0) to before `end`,
    where end = limit + r * limit_step; `limit` may be negative.
    """
    end = limit + limit_step * np.arange(rows, dtype=np.int64)[:, None]
    column = np.arange(cols, dtype=np.int64)[None, :]
    return (column < end) & ((window == 0) | (column >= end - window))


def chained(
    chain: Chain,
    a: F32,
    valid: NDArray[np.bool_],
    b: F32,
    c: F32,
    p: F32,
    q: F32,
) -> F32:
    """Return s2 of every element.

    Parameters
    ----------
    chain:
        What is done.
    a, valid:
        float32 and bool `[rows, cols]`; elements that are not valid are taken as `chain.fill`.
    b, c:
        float32 `[rows, cols]`.
    p, q:
        float32 `[rows, 1]`.
    """
    a = np.where(valid, a, fp32.canonical(np.asarray(chain.fill)))
    have = {"a": a, "b": b, "c": c, "p": p, "q": q}
    if chain.factor2 == "reciprocal_q":
        have["reciprocal_q"] = elementary.reciprocal(q)

    def of(name: str, constant: np.float32) -> F32:
        return fp32.canonical(np.asarray(constant)) if name == "constant" else have[name]

    def product(left: F32, name: str, constant: np.float32) -> F32:
        return left if name == "one" else fp32.multiply(left, of(name, constant))

    have["m1"] = product(a, chain.factor1, chain.constant1)
    have["s1"] = _operate(
        chain.operation1, have["m1"], of(chain.operand1, chain.constant2), chain.fill
    )
    have["f"] = _FUNCTIONS[chain.function](have["s1"])
    have["pair"] = _neighbours(a)
    m2 = product(have[chain.left2], chain.factor2, chain.constant3)
    s2 = _operate(chain.operation2, m2, of(chain.operand2, chain.constant4), chain.fill)
    return np.broadcast_to(s2, a.shape).astype(np.float32)


def reduced(chain: Chain, s2: F32, lanes: int, ways: int) -> F32:
    """Return the reduction of every row, float32 `[rows]`; see `reductions` for the order.

    That of `softmax` is float32 `[2, rows]`, first the references, then the sums.
    """
    if chain.reduction == "maximum":
        return maximum(s2)
    if chain.reduction == "softmax":
        return np.stack(power_sum(s2, lanes))
    return total(s2, lanes, ways)


_FUNCTIONS: Mapping[str, Callable[[F32], F32]] = {
    "pass": lambda x: x,
    "negate": fp32.negate,
    "absolute": fp32.absolute,
    "exp2": elementary.exp2,
    "exp": elementary.exp,
    "sigmoid": elementary.sigmoid,
    "reciprocal": elementary.reciprocal,
    "reciprocal_sqrt": elementary.reciprocal_sqrt,
}

_OPERATIONS: Mapping[str, Callable[[F32, F32], F32]] = {
    "add": fp32.add,
    "subtract": fp32.subtract,
    "subtract_from": lambda left, right: fp32.subtract(right, left),
    "maximum": fp32.maximum,
    "minimum": fp32.minimum,
}


def _operate(name: str, left: F32, right: F32, fill: np.float32) -> F32:
    if name == "pass":
        return left
    if name == "select":
        left, right = np.broadcast_arrays(left, right)
        return fp32.select(fp32.less_equal(right, left), left, np.full_like(left, fill))
    return _OPERATIONS[name](left, right)


def _neighbours(a: F32) -> F32:
    """Return a with the columns of every pair exchanged; a last one alone is paired with +0."""
    rows, cols = a.shape
    padded = np.zeros((rows, cols + cols % 2), np.float32)
    padded[:, :cols] = a
    return padded.reshape(rows, -1, 2)[:, :, ::-1].reshape(rows, -1)[:, :cols]
