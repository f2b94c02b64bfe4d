"""What the vector engine's commands do to L1, by the numpy models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano.commands import CHAIN
from poblano.config import SliceConfiguration
from poblano.vector.latency import sum_ways
from poblano.vector.layout import number_of, pass_operands, stored_as
from poblano_golden import blocks
from poblano_golden.formats import SCALE_RULES
from poblano_golden.reductions import top_k
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
    Chain,
    Number,
    chained,
    from_bytes,
    reduced,
    to_bytes,
    valid_columns,
)

__all__ = ["RESET_CHAIN", "after_pass", "after_topk", "chain_of", "indices_of", "signed_limit"]

Bytes = NDArray[np.uint8]

RESET_CHAIN: Mapping[str, int] = CHAIN.complete({})
"""The chain after a reset."""

_CHOICES = {
    "factor1": FACTORS,
    "operation1": OPERATIONS,
    "operand1": OPERANDS,
    "function": FUNCTIONS,
    "left2": LEFTS,
    "factor2": SECOND_FACTORS,
    "operation2": OPERATIONS,
    "operand2": SECOND_OPERANDS,
    "reduction": REDUCTIONS,
}
_CONSTANTS = ("constant1", "constant2", "constant3", "constant4", "fill")


def chain_of(values: Mapping[str, int]) -> Chain:
    """Return the chain that a command's values set."""
    fields: dict[str, Any] = {name: names[values[name]] for name, names in _CHOICES.items()}
    fields |= {name: np.uint32(values[name]).view(np.float32) for name in _CONSTANTS}
    return Chain(**fields)


def signed_limit(limit: int) -> int:
    """Return the number that a pass's field `limit` stands for."""
    return limit - (1 << 24) if limit >> 23 else limit


def indices_of(l1: Bytes, values: Mapping[str, int]) -> list[int]:
    """Return the indices of a pass's rows."""
    place = values["index"]
    return l1[place : place + 4 * values["rows"]].view("<u4").astype(int).tolist()


def _rows(l1: Bytes, places: NDArray[np.int64], cols: int, number: Number) -> NDArray[np.float32]:
    """Return rows of elements at their places, float32 `[rows, cols]`."""
    span = places[:, None] + np.arange(cols * number.size)
    return from_bytes(l1[span], number)


def _put(l1: Bytes, place: int, stride: int, rows: Bytes) -> None:
    """Write rows of bytes, `[rows, length]`, one after the other."""
    for row, data in enumerate(rows):
        start = place + row * stride
        l1[start : start + len(data)] = data


def after_pass(
    configuration: SliceConfiguration,
    l1: Bytes,
    chain_values: Mapping[str, int],
    values: Mapping[str, int],
) -> Bytes:
    """Return L1 after a `vector.pass` through a chain."""
    rows, cols = values["rows"], values["cols"]
    operands = pass_operands(chain_values)
    number = np.arange(rows, dtype=np.int64)
    order = np.array(indices_of(l1, values)) if chain_values["indexed"] else number

    def side(name: str, row: NDArray[np.int64]) -> NDArray[np.float32]:
        if name != "a" and name not in operands:
            return np.zeros((rows, cols), np.float32)
        places = values[name] + row * values[f"{name}_row_stride"]
        return _rows(l1, places, cols, number_of(chain_values[f"{name}_format"]))

    def scalar(name: str) -> NDArray[np.float32]:
        if name not in operands:
            return np.zeros((rows, 1), np.float32)
        return _rows(l1, values[name] + 4 * number, 1, NUMBERS["fp32"])

    chain = chain_of(chain_values)
    valid = valid_columns(
        rows, cols, signed_limit(values["limit"]), values["limit_step"], values["window"]
    )
    a, b, c = side("a", order), side("b", number), side("c", number)
    s2 = chained(chain, a, valid, b, c, scalar("p"), scalar("q"))
    after = l1.copy()
    fmt = stored_as(chain_values)
    if isinstance(fmt, Number):
        _put(after, values["d_codes"], values["d_code_stride"], to_bytes(s2, fmt))
    elif fmt is not None:
        rule = next(
            name for name, code in SCALE_RULES.items() if code == chain_values["scale_rule"]
        )
        codes, scales = blocks.pack(blocks.quantise(s2, fmt, rule))
        _put(after, values["d_codes"], values["d_code_stride"], codes.reshape(len(codes), -1))
        _put(after, values["d_scales"], values["d_scale_stride"], scales)
    if chain.reduction != "none":
        vector = configuration.vector
        words = reduced(chain, s2, vector.lanes, sum_ways(vector))
        data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
        after[values["r"] : values["r"] + len(data)] = data
    return after


def after_topk(l1: Bytes, values: Mapping[str, int]) -> Bytes:
    """Return L1 after a `vector.topk`."""
    rows = np.arange(values["rows"], dtype=np.int64)
    places = values["a"] + rows * values["a_row_stride"]
    x = _rows(l1, places, values["cols"], number_of(values["a_format"]))
    largest, columns = top_k(x, values["k"])
    after = l1.copy()
    for name, words in (("values", largest), ("indices", columns.astype(np.uint32))):
        data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
        after[values[name] : values[name] + len(data)] = data
    return after
