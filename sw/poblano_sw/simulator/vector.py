"""What the vector engine's commands do to L1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poblano.commands import CHAIN, PASS, TOPK, Command, Values
from poblano.config import SliceConfiguration
from poblano.vector.layout import (
    WORD,
    Extent,
    number_of,
    pass_extents,
    pass_operands,
    stored_as,
    topk_extents,
)
from poblano.vector.timing import sum_ways
from poblano_golden.arrays import F32, I64, U8
from poblano_golden.blocks import pack, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import SCALE_RULES
from poblano_golden.moves import read_indices
from poblano_golden.reductions import top_k
from poblano_golden.vector import (
    Chain,
    Number,
    chained,
    from_bytes,
    reduced,
    to_bytes,
    valid_columns,
)

__all__ = ["VectorEngine"]

_RULES = {number: name for name, number in SCALE_RULES.items()}


class VectorEngine:
    """The vector engine's part of the machine: the chain that is set, and the commands.

    Parameters
    ----------
    configuration:
        The slice.

    Attributes
    ----------
    chain:
        The fields of the last `vector.chain`; after reset those of one without fields.
    """

    def __init__(self, configuration: SliceConfiguration) -> None:
        self.configuration = configuration
        self.chain: Values = CHAIN.complete({})
        self._set_chain(self.chain)

    def execute(self, command: Command, values: Values, l1: U8) -> None:
        """Do all of a command at once; `l1` is changed in place.

        Raises
        ------
        PoblanoError
            If it touches anything outside L1.
        """
        actions: Mapping[str, Callable[[Values, U8], None]] = {
            CHAIN.mnemonic: lambda values, _: self._set_chain(values),
            PASS.mnemonic: self._pass,
            TOPK.mnemonic: self._topk,
        }
        actions[command.mnemonic](values, l1)

    def _set_chain(self, values: Values) -> None:
        fields: dict[str, Any] = {}
        for item in CHAIN.own_fields:
            if item.name in Chain.__dataclass_fields__:
                bits = np.uint32(values[item.name])
                fields[item.name] = (
                    item.format(values[item.name]) if item.choices else bits.view(np.float32)
                )
        self.chain = values
        self._named = Chain(**fields)

    def _pass(self, values: Values, l1: U8) -> None:
        rows, cols = values["rows"], values["cols"]
        indices = None
        if self.chain["indexed"]:
            self._check((Extent("index", values["index"], 0, 1, rows * WORD),))
            indices = tuple(int(i) for i in read_indices(l1, values["index"], rows))
        extents = pass_extents(values, self.chain, indices)
        self._check(extents)

        places = values["a_row_stride"] * (
            np.arange(rows) if indices is None else np.array(indices, np.int64)
        )
        a = self._elements(l1, values["a"] + places, number_of(self.chain["a_format"]), cols)
        used = pass_operands(self.chain)
        nothing = np.zeros((1, 1), np.float32)
        b, c = (self._rows(l1, values, name) if name in used else nothing for name in ("b", "c"))
        p, q = (
            self._words(l1, values[name], rows)[:, None] if name in used else nothing
            for name in ("p", "q")
        )
        step = values["limit_step"]
        limit = values["limit"]
        limit -= (limit & (1 << 23)) << 1
        valid = valid_columns(rows, cols, limit, step, values["window"])
        s2 = chained(self._named, a, valid, b, c, p, q)
        if self._named.reduction != "none":
            found = reduced(
                self._named,
                s2,
                self.configuration.vector.lanes,
                sum_ways(self.configuration.vector),
            )
            self._write(l1, values["r"], found)
        self._store(l1, values, s2)

    def _store(self, l1: U8, values: Values, s2: F32) -> None:
        fmt = stored_as(self.chain)
        if fmt is None:
            return
        if isinstance(fmt, Number):
            data = to_bytes(s2, fmt)
            places = values["d_codes"] + values["d_code_stride"] * np.arange(len(data))
            _scatter(l1, places, data)
            return
        codes, scales = pack(quantise(s2, fmt, _RULES[self.chain["scale_rule"]]))
        for name, stride, rows in (
            ("d_codes", "d_code_stride", codes),
            ("d_scales", "d_scale_stride", scales),
        ):
            data = np.ascontiguousarray(rows).reshape(len(rows), -1)
            _scatter(l1, values[name] + values[stride] * np.arange(len(data)), data)

    def _topk(self, values: Values, l1: U8) -> None:
        rows, cols = values["rows"], values["cols"]
        self._check(topk_extents(values))
        places = values["a"] + values["a_row_stride"] * np.arange(rows)
        a = self._elements(l1, places, number_of(values["a_format"]), cols)
        numbers, indices = top_k(a, values["k"])
        self._write(l1, values["values"], numbers.astype(np.float32))
        self._write(l1, values["indices"], indices.astype(np.uint32))

    def _check(self, extents: tuple[Extent, ...]) -> None:
        size = self.configuration.l1.size
        for extent in extents:
            if extent.end > size:
                raise PoblanoError(
                    f"vector: {extent.name} must end inside L1, at or below byte {size}; "
                    f"got {extent.end}"
                )

    def _rows(self, l1: U8, values: Values, name: str) -> F32:
        stride = values[f"{name}_row_stride"]
        rows = values["rows"] if stride else 1
        places = values[name] + stride * np.arange(rows)
        return self._elements(l1, places, number_of(self.chain[f"{name}_format"]), values["cols"])

    @staticmethod
    def _elements(l1: U8, places: I64, number: Number, cols: int) -> F32:
        return from_bytes(l1[places[:, None] + np.arange(cols * number.size)], number)

    @staticmethod
    def _words(l1: U8, address: int, count: int) -> F32:
        return from_bytes(l1[address : address + count * WORD], number_of(10))

    @staticmethod
    def _write(l1: U8, address: int, words: NDArray[np.generic]) -> None:
        data = np.ascontiguousarray(words).view(np.uint8).reshape(-1)
        l1[address : address + len(data)] = data


def _scatter(l1: U8, places: I64, data: U8) -> None:
    """Write rows of bytes, the first first: where they overlap the last stays."""
    for place, row in zip(places, data, strict=True):
        l1[place : place + len(row)] = row
