"""How operands and results lie in L1; imports no Amaranth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poblano_golden.formats import MX_FORMATS, WIDE_FORMATS, MxFormat, WideFormat, num_blocks

__all__ = ["Extent", "extents", "format_of"]

_FORMATS: dict[int, MxFormat | WideFormat] = {
    fmt.code: fmt for fmt in (*MX_FORMATS.values(), *WIDE_FORMATS.values())
}


def format_of(code: int) -> MxFormat | WideFormat:
    """Return the format that a command's format field names.

    Raises
    ------
    ValueError
        If no format has the code.
    """
    if code not in _FORMATS:
        raise ValueError(f"a format code must be one of {sorted(_FORMATS)}; got {code}")
    return _FORMATS[code]


@dataclass(frozen=True)
class Extent:
    """An array of a command in L1: `steps` runs of `length` bytes, `stride` bytes apart.

    `name` is the prefix of the command's fields, such as `a_code` for `a_codes` and
    `a_code_stride`; `written` tells results from operands.
    """

    name: str
    address: int
    stride: int
    steps: int
    length: int
    written: bool = False

    @property
    def end(self) -> int:
        """The first address past the array."""
        return self.address + (self.steps - 1) * self.stride + self.length


def _mx(
    side: str, values: Mapping[str, int], rows: int, blocks: int, written: bool = False
) -> tuple[Extent, ...]:
    fmt = format_of(values[f"{side}_format"])
    assert isinstance(fmt, MxFormat)

    def extent(part: str, length: int) -> Extent:
        name = f"{side}_{part}"
        return Extent(name, values[f"{name}s"], values[f"{name}_stride"], blocks, length, written)

    return extent("code", rows * fmt.block_bytes), extent("scale", rows)


def extents(values: Mapping[str, int]) -> tuple[Extent, ...]:
    """Return every array that a `tensor.matmul` reads or writes.

    Operands, and results in an MX format, are block-major: codes [blocks][rows][block bytes]
    and scales [blocks][rows]. Results in a wide format are [rows][columns], row by row.
    """
    m, n, blocks = values["m"], values["n"], num_blocks(values["k"])
    rows, columns = (m, n) if values["axis"] == 0 else (n, m)
    result = format_of(values["d_format"])
    if isinstance(result, MxFormat):
        written = _mx("d", values, rows, num_blocks(columns), written=True)
    else:
        length = columns * result.element_bits // 8
        written = (
            Extent("d_code", values["d_codes"], values["d_code_stride"], rows, length, True),
        )
    return (*_mx("a", values, m, blocks), *_mx("b", values, n, blocks), *written)
