"""What a command of the vector engine touches in L1; imports no Amaranth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poblano_golden.formats import MX_FORMATS, MxFormat, num_blocks
from poblano_golden.vector import (
    FACTORS,
    LEFTS,
    NUMBERS,
    OPERANDS,
    OPERATIONS,
    REDUCTIONS,
    SECOND_FACTORS,
    SECOND_OPERANDS,
    Number,
)

__all__ = [
    "STORE_NONE",
    "WORD",
    "WORD_ARRAYS",
    "Extent",
    "number_of",
    "pass_extents",
    "pass_operands",
    "reduction_words",
    "stored_as",
    "topk_extents",
]

STORE_NONE = 15
"""The d_format of a pass that stores nothing."""

WORD = 4
"""Bytes of a binary32 number, and of an index."""

WORD_ARRAYS = ("p", "q", "r", "index")
"""Fields of a pass that name arrays of words."""


@dataclass(frozen=True)
class Extent:
    """An array in L1: `steps` runs of `length` bytes, `stride` apart; field `name` is its address.

    `word` is what the address must be a multiple of, 0 for anything.
    """

    name: str
    address: int
    stride: int
    steps: int
    length: int
    written: bool = False
    word: int = 0

    @property
    def end(self) -> int:
        """The first address past the array."""
        return self.address + (self.steps - 1) * self.stride + self.length


def number_of(code: int) -> Number:
    """Return the format of elements that a command's format field names."""
    return next(number for number in NUMBERS.values() if number.code == code)


def stored_as(chain: Mapping[str, int]) -> Number | MxFormat | None:
    """Return the format in which a chain's results are stored, None if they are not."""
    code = chain["d_format"]
    if code == STORE_NONE:
        return None
    for fmt in MX_FORMATS.values():
        if fmt.code == code:
            return fmt
    return number_of(code)


def pass_operands(chain: Mapping[str, int]) -> frozenset[str]:
    """Return which of `b`, `c`, `p`, `q` a chain reads."""
    factor2 = SECOND_FACTORS[chain["factor2"]].removeprefix("reciprocal_")
    used = {FACTORS[chain["factor1"]], LEFTS[chain["left2"]], factor2}
    for operation, operand, names in (
        ("operation1", "operand1", OPERANDS),
        ("operation2", "operand2", SECOND_OPERANDS),
    ):
        if OPERATIONS[chain[operation]] != "pass":
            used.add(names[chain[operand]])
    return frozenset(used & {"b", "c", "p", "q"})


def reduction_words(chain: Mapping[str, int]) -> int:
    """Return how many numbers a chain writes for every row."""
    return {"none": 0, "softmax": 2}.get(REDUCTIONS[chain["reduction"]], 1)


def _words(name: str, values: Mapping[str, int], count: int, *, written: bool = False) -> Extent:
    return Extent(name, values[name], 0, 1, count * WORD, written, WORD)


def _stored(values: Mapping[str, int], fmt: Number | MxFormat) -> tuple[Extent, ...]:
    rows, cols = values["rows"], values["cols"]
    codes, stride = values["d_codes"], values["d_code_stride"]
    if isinstance(fmt, Number):
        return (Extent("d_codes", codes, stride, rows, cols * fmt.size, True),)
    blocks = num_blocks(cols)
    return (
        Extent("d_codes", codes, stride, blocks, rows * fmt.block_bytes, True),
        Extent("d_scales", values["d_scales"], values["d_scale_stride"], blocks, rows, True),
    )


def pass_extents(
    values: Mapping[str, int], chain: Mapping[str, int], indices: tuple[int, ...] | None = None
) -> tuple[Extent, ...]:
    """Return every array that a pass reads or writes, with the chain that it runs through.

    `indices` are those of A's rows, if the chain takes them by index; without them A is left out.
    """
    rows, cols = values["rows"], values["cols"]
    found: list[Extent] = []

    def rows_of(name: str, address: int, count: int, stride: int) -> Extent:
        size = number_of(chain[f"{name}_format"]).size
        return Extent(name, address, stride, count, cols * size)

    if not chain["indexed"]:
        found.append(rows_of("a", values["a"], rows, values["a_row_stride"]))
    else:
        found.append(_words("index", values, rows))
        found += (
            rows_of("a", values["a"] + index * values["a_row_stride"], 1, 0)
            for index in indices or ()
        )
    operands = pass_operands(chain)
    found += (
        rows_of(name, values[name], rows, values[f"{name}_row_stride"])
        for name in ("b", "c")
        if name in operands
    )
    found += (_words(name, values, rows) for name in ("p", "q") if name in operands)
    fmt = stored_as(chain)
    if fmt is not None:
        found += _stored(values, fmt)
    words = reduction_words(chain)
    if words:
        found.append(_words("r", values, rows * words, written=True))
    return tuple(found)


def topk_extents(values: Mapping[str, int]) -> tuple[Extent, ...]:
    """Return every array that a `vector.topk` reads or writes."""
    rows, cols = values["rows"], values["cols"]
    length = cols * number_of(values["a_format"]).size
    return (
        Extent("a", values["a"], values["a_row_stride"], rows, length),
        _words("values", values, rows * values["k"], written=True),
        _words("indices", values, rows * values["k"], written=True),
    )
