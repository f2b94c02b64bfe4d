"""What a stream should carry, compared with what it carries."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

import numpy as np

from poblano_golden import elements, fp32
from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS
from poblano_verif.clock import ClockDomain
from poblano_verif.layouts import Layout, Value, leaves

__all__ = ["MismatchError", "Scoreboard", "number_of"]


class MismatchError(AssertionError):
    """A transaction is not the one that was expected."""


class Scoreboard:
    """The transactions that are still expected, in order.

    Parameters
    ----------
    name, layout, clock:
        Of the stream.
    floats:
        Name of a part of the payload (without array indices; the payload itself is the empty
        name) to the format of the number in it, such as `fp32` or `mxfp4`. Messages then show
        the number beside the bits.
    """

    def __init__(
        self,
        name: str,
        layout: Layout,
        clock: ClockDomain,
        floats: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._layout = layout
        self._clock = clock
        self._floats = dict(floats or {})
        self._expected: deque[int] = deque()
        self.count = 0

    @property
    def pending(self) -> int:
        """Number of transactions that have not come yet."""
        return len(self._expected)

    def expect(self, *values: Value) -> None:
        """Add transactions to those expected."""
        self._expected.extend(map(self._layout.pack, values))

    def receive(self, bits: int) -> None:
        """Compare the next transaction.

        Raises
        ------
        MismatchError
            If another one was expected, or none.
        """
        place = f"transaction {self.count} of {self.name}, cycle {self._clock.cycle}"
        if not self._expected:
            raise MismatchError(f"{place}: nothing was expected\n{self._table(None, bits)}")
        expected = self._expected.popleft()
        if bits != expected:
            raise MismatchError(f"{place}: not as expected\n{self._table(expected, bits)}")
        self.count += 1

    def check_empty(self) -> None:
        """Raise `MismatchError` if transactions are still expected."""
        if self._expected:
            text = self._table(self._expected[0], None)
            raise MismatchError(
                f"transaction {self.count} of {self.name}, cycle {self._clock.cycle}: "
                f"{len(self._expected)} are missing, this one first\n{text}"
            )

    def _table(self, expected: int | None, actual: int | None) -> str:
        """Return one line a field: name, expected and actual value, and a mark if they differ."""
        columns = [
            None if bits is None else list(leaves(self._layout, bits))
            for bits in (expected, actual)
        ]
        present = next(column for column in columns if column is not None)
        rows = [("field", "expected", "actual", "")]
        for index, (name, leaf, _) in enumerate(present):
            values = [None if column is None else column[index][2] for column in columns]
            shown = ["-" if bits is None else self._text(name, leaf, bits) for bits in values]
            mark = "" if values[0] == values[1] else "<-"
            rows.append((name or "payload", shown[0], shown[1], mark))
        if len(rows) > _MANY_ROWS:
            same = sum(row[3] == "" for row in rows[1:])
            rows = [rows[0], *(row for row in rows[1:] if row[3])][:_MANY_ROWS]
            rows.append((f"({same} equal)", "", "", ""))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            "  " + "  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows
        )

    def _text(self, name: str, leaf: Layout, bits: int) -> str:
        value = leaf.unpack(bits)
        text = f"{bits:#0{2 + (leaf.width + 3) // 4}x}"
        fmt = self._floats.get(re.sub(r"\[\d+\]", "", name))
        if fmt is not None:
            return f"{text} ({number_of(bits, fmt):.9g})"
        return f"{text} ({value})" if isinstance(value, str) or value != bits else text


_MANY_ROWS = 24


def number_of(bits: int, fmt: str) -> float:
    """Return the number that the bits of one element or wide value stand for."""
    if fmt in MX_FORMATS:
        return float(elements.decode(np.array([bits], np.uint8), MX_FORMATS[fmt])[0])
    width = WIDE_FORMATS[fmt].element_bits
    if width == 32:
        return float(np.array([bits], np.uint32).view(np.float32)[0])
    wide = np.array([bits], np.uint16)
    return float((fp32.from_bf16_bits if fmt == "bf16" else fp32.from_fp16_bits)(wide)[0])
