"""How a chain and a pass reach the parts of the vector engine."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, enum

from poblano.commands import ADDRESS_WIDTH
from poblano.commands.vector import ROWS_WIDTH
from poblano_golden.formats import MX_FORMATS
from poblano_golden.vector import (
    FACTORS,
    FUNCTIONS,
    LEFTS,
    NUMBERS,
    OPERANDS,
    OPERATIONS,
    SECOND_FACTORS,
    SECOND_OPERANDS,
)

__all__ = [
    "CHOICES",
    "CONSTANTS",
    "NUMBER_ORDER",
    "SIDES",
    "Reduction",
    "Store",
    "chain_layout",
    "lane_layout",
    "number_index",
    "pass_layout",
]

SIDES = "abc"
"""The streams of elements."""

NUMBER_ORDER = ("fp32", "bf16", "fp16", "int8")
"""Formats of elements, in the order of their indices."""

CHOICES = {
    "factor1": FACTORS,
    "operation1": OPERATIONS,
    "operand1": OPERANDS,
    "function": FUNCTIONS,
    "left2": LEFTS,
    "factor2": SECOND_FACTORS,
    "operation2": OPERATIONS,
    "operand2": SECOND_OPERANDS,
}
"""What a chain chooses among in every lane."""

CONSTANTS = ("constant1", "constant2", "constant3", "constant4", "fill")
"""Its numbers."""


class Reduction(enum.Enum, shape=2):
    """Reductions by their number in commands."""

    NONE = 0
    SUM = 1
    MAXIMUM = 2
    SOFTMAX = 3


class Store(enum.Enum, shape=2):
    """How s2 is stored."""

    NONE = 0
    WIDE = 1
    MX = 2


def number_index(code: Value) -> Value:
    """Return the index in `NUMBER_ORDER` of a command's format code."""
    result: Value = C(0, 2)
    for index, name in enumerate(NUMBER_ORDER):
        result = Mux(code == NUMBERS[name].code, index, result)
    return result


def lane_layout() -> data.StructLayout:
    """Return what a lane must know: formats as indices in `NUMBER_ORDER`, choices, constants."""
    return data.StructLayout(
        {
            **{f"{side}_format": 2 for side in SIDES},
            **{name: range(len(choices)) for name, choices in CHOICES.items()},
            **dict.fromkeys(CONSTANTS, 32),
        }
    )


def chain_layout() -> data.StructLayout:
    """Return the layout of a chain.

    `reads_X` says whether that stream or row scalar is read; `d_format` is an index in
    `NUMBER_ORDER` or in MX_FORMATS; `d_nibbles` says that MX codes take four bits.
    """
    return data.StructLayout(
        {
            "lane": lane_layout(),
            **{f"reads_{name}": 1 for name in "bcpq"},
            "indexed": 1,
            "reduction": Reduction,
            "store": Store,
            "d_format": range(max(len(NUMBER_ORDER), len(MX_FORMATS))),
            "d_nibbles": 1,
            "scale_rule": 2,
        }
    )


def pass_layout() -> data.StructLayout:
    """Return the layout of a pass, or of a topk as passes that repeat each row.

    `r` and `r2` are where the first and the second word of a row's reduction go, `row_bytes` how
    far apart; `topk` says that rows are passed `rounds` times. `straddles`: what a beat or a block
    stores may touch two lines.
    """
    addresses = (
        *(f"{side}{part}" for side in SIDES for part in ("", "_row_stride")),
        *("d_codes", "d_code_stride", "d_scales", "d_scale_stride"),
        *("p", "q", "r", "index"),
    )
    return data.StructLayout(
        {
            **dict.fromkeys(addresses, ADDRESS_WIDTH),
            "r2": ADDRESS_WIDTH + 1,
            "a_format": 2,
            "rows": ROWS_WIDTH,
            "cols": ADDRESS_WIDTH,
            "limit": signed(ADDRESS_WIDTH),
            "limit_step": 16,
            "window": ADDRESS_WIDTH,
            "topk": 1,
            "rounds": 8,
            "straddles": 1,
        }
    )
