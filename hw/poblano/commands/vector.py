"""Commands of the vector engine."""

from __future__ import annotations

from poblano.commands.model import ADDRESS_WIDTH, Command, CommandError, Field, Values
from poblano.config import SliceConfiguration
from poblano.vector import timing
from poblano.vector.layout import STORE_NONE, WORD, WORD_ARRAYS, topk_extents
from poblano_golden.formats import MX_FORMATS, SCALE_RULES
from poblano_golden.vector import (
    FACTORS,
    FUNCTIONS,
    LEFTS,
    NUMBERS,
    OPERANDS,
    OPERATIONS,
    REDUCTIONS,
    SECOND_FACTORS,
    SECOND_OPERANDS,
)

__all__ = ["CHAIN", "PASS", "SOFTMAX_BYPASSES", "TOPK", "VECTOR_COMMANDS"]

ROWS_WIDTH = 16
"""Bits of the number of rows."""

SOFTMAX_BYPASSES = ("function", "left2", "factor2", "operation2")
"""Fields that are 0 where s2 is s1."""

_WIDE = {name: number.code for name, number in NUMBERS.items()}
_STORED = _WIDE | {fmt.name: fmt.code for fmt in MX_FORMATS.values()} | {"none": STORE_NONE}


def _choice(name: str, choices: tuple[str, ...], summary: str) -> Field:
    numbers = {choice: number for number, choice in enumerate(choices)}
    width = max(1, (len(choices) - 1).bit_length())
    return Field(name, width, "", summary, choices=numbers, default=0)


def _format(side: str) -> Field:
    default = NUMBERS["fp32"].code
    return Field(f"{side}_format", 4, "", f"elements of {side}", choices=_WIDE, default=default)


def _constant(name: str, summary: str) -> Field:
    return Field(name, 32, "", f"{summary}, the bits of a binary32 number", default=0)


def _address(name: str, summary: str, default: int | None = None) -> Field:
    return Field(name, ADDRESS_WIDTH, "bytes", summary, default=default)


def _check_chain(_configuration: SliceConfiguration, values: Values) -> None:
    """The reduction `softmax` is of s1, so s2 must be s1."""
    if values["reduction"] != REDUCTIONS.index("softmax"):
        return
    for name in SOFTMAX_BYPASSES:
        if values[name]:
            raise CommandError(
                f"{name} must be 0, which hands on s1, with reduction softmax; got {values[name]}"
            )


def _check_words(values: Values, names: tuple[str, ...]) -> None:
    for name in names:
        if values[name] % WORD:
            raise CommandError(f"{name} must be a multiple of {WORD} bytes; got {values[name]}")


def _check_pass(_configuration: SliceConfiguration, values: Values) -> None:
    """Arrays of words are aligned; what else a pass touches depends on the chain."""
    _check_words(values, WORD_ARRAYS)


def _check_topk(configuration: SliceConfiguration, values: Values) -> None:
    """No more elements are wanted than a row has; words are aligned; all lies inside L1."""
    if values["k"] > values["cols"]:
        raise CommandError(f"k must be at most cols, {values['cols']}; got {values['k']}")
    _check_words(values, ("values", "indices"))
    for extent in topk_extents(values):
        if extent.end > configuration.l1.size:
            raise CommandError(
                f"{extent.name} must end inside L1, at or below byte {configuration.l1.size}; "
                f"got {extent.end}"
            )


CHAIN = Command(
    engine="vector",
    name="chain",
    opcode=0x30,
    summary=(
        "Sets how the passes that follow compute. An element goes through m1 = a * factor1, "
        "s1 = operation1(m1, operand1), f = function(s1), m2 = left2 * factor2, "
        "s2 = operation2(m2, operand2); s2 is stored and reduced."
    ),
    own_fields=(
        *(_format(side) for side in "abc"),
        Field("d_format", 4, "", "how s2 is stored", choices=_STORED, default=STORE_NONE),
        _choice("factor1", FACTORS, "what a is multiplied by; `one` passes it on"),
        _choice("operation1", OPERATIONS, "of m1 and operand1; `select` is m1 or fill"),
        _choice("operand1", OPERANDS, "right side of operation1"),
        _choice("function", FUNCTIONS, "of s1"),
        _choice("left2", LEFTS, "left side of the second product; `pair` is the neighbour's a"),
        _choice("factor2", SECOND_FACTORS, "right side of the second product"),
        _choice("operation2", OPERATIONS, "of m2 and operand2"),
        _choice("operand2", SECOND_OPERANDS, "right side of operation2"),
        _choice("reduction", REDUCTIONS, "of s2 along each row"),
        Field("indexed", 1, "", "rows of a are taken by index", default=0),
        Field("scale_rule", 2, "", "how block scales are chosen", choices=SCALE_RULES, default=0),
        _constant("constant1", "constant of factor1"),
        _constant("constant2", "constant of operand1"),
        _constant("constant3", "constant of factor2"),
        _constant("constant4", "constant of operand2"),
        _constant("fill", "what stands for elements outside the valid columns and not selected"),
    ),
    rule=_check_chain,
    cycles=timing.chain_cycles,
)

PASS = Command(
    engine="vector",
    name="pass",
    opcode=0x31,
    summary=(
        "Sends rows x cols elements through the chain. Row r of a begins at `a + r * "
        "a_row_stride`, or with `indexed` at `a + index[r] * a_row_stride`. Valid columns of row "
        "r are [end - window, end) with end = limit + r * limit_step."
    ),
    own_fields=(
        _address("a", "L1 address of a"),
        _address("a_row_stride", "from one row of a to the next", 0),
        _address("b", "L1 address of b", 0),
        _address("b_row_stride", "from one row of b to the next", 0),
        _address("c", "L1 address of c", 0),
        _address("c_row_stride", "from one row of c to the next", 0),
        _address("d_codes", "L1 address of what is stored", 0),
        _address("d_code_stride", "from one row (wide) or block column (MX) to the next", 0),
        _address("d_scales", "L1 address of the block scales; MX only", 0),
        _address("d_scale_stride", "from one block column's scales to the next; MX only", 0),
        _address("p", "L1 address of one binary32 number a row", 0),
        _address("q", "L1 address of another", 0),
        _address(
            "r",
            "L1 address of the reductions, one binary32 number a row; of softmax those of all "
            "rows' references, then their sums",
            0,
        ),
        Field("rows", ROWS_WIDTH, "rows", "rows", minimum=1, default=1),
        Field("cols", ADDRESS_WIDTH, "elements", "elements of a row", minimum=1),
        Field(
            "limit",
            ADDRESS_WIDTH,
            "elements",
            "end of row 0's valid columns, two's complement",
            default=(1 << ADDRESS_WIDTH - 1) - 1,
        ),
        Field("limit_step", 16, "elements", "from one row's limit to the next", default=0),
        Field("window", ADDRESS_WIDTH, "elements", "valid columns of a row, 0 for all", default=0),
        _address("index", "L1 address of one uint32 a row", 0),
    ),
    rule=_check_pass,
    cycles=timing.pass_cycles,
)

TOPK = Command(
    engine="vector",
    name="topk",
    opcode=0x32,
    summary=(
        "The k largest elements of every row, the largest first, the lowest index first among "
        "equals; NaN is above all and -0 below +0."
    ),
    own_fields=(
        _format("a"),
        Field("k", 8, "elements", "how many", minimum=1, default=1),
        _address("a", "L1 address of a"),
        _address("a_row_stride", "from one row of a to the next", 0),
        _address("values", "L1 address of the largest, binary32 [rows][k]"),
        _address("indices", "L1 address of their columns, uint32 [rows][k]"),
        Field("rows", ROWS_WIDTH, "rows", "rows", minimum=1, default=1),
        Field("cols", ADDRESS_WIDTH, "elements", "elements of a row", minimum=1),
    ),
    rule=_check_topk,
    cycles=timing.topk_cycles,
)

VECTOR_COMMANDS = (CHAIN, PASS, TOPK)
"""Every command of the vector engine."""
