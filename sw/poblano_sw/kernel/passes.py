"""One pass of the vector engine: what a kernel says, as the fields of its two commands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from poblano.commands import ADDRESS_WIDTH, CHAIN
from poblano.vector.layout import STORE_NONE, reduction_words
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import SCALE_RULES
from poblano_sw.kernel.errors import same
from poblano_sw.kernel.tensors import FP32, Blocks, Matrix, Run, Tensor

__all__ = ["Mask", "Operand", "PassOptions", "VectorPass", "vector_pass"]

Operand = Matrix | float
"""Numbers of every element, one number a row, or a constant."""


@dataclass(frozen=True)
class Mask:
    """Which columns of a pass are valid: in row r those before `limit + r * limit_step`.

    `window` is how many of them at most, 0 for all. `limit` may be negative.
    """

    limit: int
    limit_step: int = 0
    window: int = 0


class PassOptions(TypedDict, total=False):
    """What a pass does; the names are those of `vector.chain`.

    An operand that is a number is a constant. A matrix `[1, rows]`, or `[rows, 1]` of adjacent
    numbers, binary32, holds one number a row; a matrix of a's shape one an element; a row
    `[1, cols]` is the same for every row. What is not said is passed on.
    """

    factor1: Operand | str
    """What a is multiplied by; `a` for its square."""
    operation1: tuple[str, Operand] | None
    """An operation and its right side."""
    function: str
    left2: Matrix | str
    """Left side of the second product: `f`, `pair`, or a matrix."""
    factor2: Operand | str
    """Right side of the second product; `s1` or `a` too."""
    divisor: Matrix | None
    """One number a row, by whose reciprocal the second product multiplies, in place of factor2."""
    operation2: tuple[str, Operand | str] | None
    """An operation and its right side; `m1` too."""
    d: Tensor | None
    """Where results go; blocks for quantised ones."""
    rule: str
    """The scale rule of blocks, by default `even`."""
    reduction: tuple[str, Matrix] | None
    """A reduction, and where the numbers of the rows go."""
    index: Matrix | None
    """Numbers of the rows of a, uint32 `[1, rows]`."""
    mask: Mask | None
    """Which columns are valid, by default all."""
    fill: float
    """What stands for elements that are not valid, or not selected; by default 0."""


@dataclass(frozen=True)
class VectorPass:
    """The fields of a `vector.chain` and a `vector.pass`, and what the pass touches."""

    chain: dict[str, int]
    values: dict[str, int]
    reads: tuple[Run, ...]
    writes: tuple[Run, ...]


def vector_pass(a: Matrix, options: PassOptions) -> VectorPass:
    """Return a pass of a matrix.

    Raises
    ------
    PoblanoError
        If it needs more operands than there are, or shapes do not fit.
    """
    index, mask, d = options.get("index"), options.get("mask"), options.get("d")
    rows = a.rows if index is None else index.cols
    operands = _Operands(rows, a.cols)
    chain = _chain(options, operands)
    chain |= {"a_format": a.number.code, "indexed": int(index is not None)}
    values = {
        "a": a.address,
        "a_row_stride": a.stride if rows > 1 or index is not None else 0,
        "rows": rows,
        "cols": a.cols,
    }
    reads, writes = [*a.runs()], list[Run]()
    if mask is not None:
        values |= {
            "limit": mask.limit & ((1 << ADDRESS_WIDTH) - 1),
            "limit_step": mask.limit_step,
            "window": mask.window,
        }
    for slot, matrix in operands.slots.items():
        values[slot] = matrix.address
        if slot in "bc":
            chain[f"{slot}_format"] = matrix.number.code
            values[f"{slot}_row_stride"] = matrix.stride if matrix.rows > 1 else 0
        reads += matrix.runs()
    if index is not None:
        values["index"] = index.address
        reads += index.runs()
    reduction = options.get("reduction")
    if reduction is not None:
        name, numbers = reduction
        chain["reduction"] = _number("reduction", name)
        same("numbers of the reduction", numbers.rows * numbers.cols, rows * reduction_words(chain))
        values["r"] = numbers.address
        writes += numbers.runs()
    if d is not None:
        same("shape of the results", (d.rows, d.cols), (rows, a.cols))
        writes += d.runs()
        if isinstance(d, Blocks):
            rule = SCALE_RULES[options.get("rule", "even")]
            chain |= {"d_format": d.fmt.code, "scale_rule": rule}
            values |= {
                "d_codes": d.codes,
                "d_code_stride": d.code_stride,
                "d_scales": d.scales,
                "d_scale_stride": d.scale_stride,
            }
        else:
            chain["d_format"] = d.number.code
            values |= {"d_codes": d.address, "d_code_stride": d.stride}
    return VectorPass(CHAIN.complete(chain), values, tuple(reads), tuple(writes))


def _chain(options: PassOptions, operands: _Operands) -> dict[str, int]:
    """Return the part of the chain that says what is computed."""
    chain = {"d_format": STORE_NONE, "fill": _bits(options.get("fill", 0.0))}
    for name, operand, constant, wanted in (
        ("factor1", options.get("factor1", "one"), 1, ""),
        ("left2", options.get("left2", "f"), 0, "c"),
        ("factor2", options.get("factor2", "one"), 3, ""),
    ):
        chain[name] = _number(name, operands.name(operand, constant, wanted))
    divisor = options.get("divisor")
    if divisor is not None:
        slot = operands.name(divisor, 0, "q")
        chain["factor2"] = _number("factor2", f"reciprocal_{slot}")
    for name, place, constant in (("operation1", "operand1", 2), ("operation2", "operand2", 4)):
        operation = options.get(name)
        if operation is not None:
            chain[name] = _number(name, operation[0])
            chain[place] = _number(place, operands.name(operation[1], constant))
    chain["function"] = _number("function", options.get("function", "pass"))
    return chain | operands.constants


class _Operands:
    """Finds a place among b, c, p, q and the constants for every operand of a pass."""

    def __init__(self, rows: int, cols: int) -> None:
        self.rows, self.cols = rows, cols
        self.slots: dict[str, Matrix] = {}
        self.constants: dict[str, int] = {}

    def name(self, operand: Operand | str, constant: int, wanted: str = "") -> str:
        """Return what the chain calls an operand."""
        if isinstance(operand, str):
            return operand
        if isinstance(operand, Matrix):
            return self._slot(operand, wanted)
        self.constants[f"constant{constant}"] = _bits(operand)
        return "constant"

    def _slot(self, matrix: Matrix, wanted: str) -> str:
        for slot, other in self.slots.items():
            if other == matrix:
                return slot
        is_row = (matrix.rows, matrix.cols) == (1, self.rows)
        is_column = (matrix.rows, matrix.cols, matrix.stride) == (self.rows, 1, FP32.size)
        full = matrix.cols == self.cols and matrix.rows in (1, self.rows)
        if (is_row or is_column) and not (full and self.rows == 1 < self.cols):
            same("format of numbers a row", matrix.number, FP32)
            kinds = wanted if wanted == "q" else "pq"
        elif full:
            kinds = wanted or "bc"
        else:
            raise PoblanoError(
                f"an operand must be [1, {self.cols}], [{self.rows}, {self.cols}] or {self.rows} "
                f"adjacent numbers; {matrix.name} is [{matrix.rows}, {matrix.cols}]"
            )
        for kind in kinds:
            if kind not in self.slots:
                self.slots[kind] = matrix
                return kind
        raise PoblanoError(f"a pass has no more room than {', '.join(kinds)} for {matrix.name}")


def _number(name: str, choice: str) -> int:
    item = next(item for item in CHAIN.own_fields if item.name == name)
    if choice not in item.choices:
        raise PoblanoError(f"{name} must be one of {', '.join(item.choices)}; got {choice!r}")
    return item.choices[choice]


def _bits(x: float) -> int:
    return int(np.float32(x).view(np.uint32))
