"""Commands of the DMA engine: its `load` half reads HBM, its `store` half writes it."""

from __future__ import annotations

from collections.abc import Callable

from poblano.commands.model import (
    ADDRESS_WIDTH,
    HBM_ADDRESS_WIDTH,
    Command,
    CommandError,
    Field,
    Values,
)
from poblano.config import SliceConfiguration
from poblano.dma import timing
from poblano.dma.timing import INDEX_BYTES

__all__ = [
    "DMA_COMMANDS",
    "LOAD_GATHER",
    "LOAD_ROWS",
    "PLANES_WIDTH",
    "STORE_ROWS",
    "STORE_SCATTER",
]

PLANES_WIDTH = 16
"""Bits of the number of planes."""


def _l1(name: str, summary: str, *, minimum: int = 0, default: int | None = None) -> Field:
    return Field(name, ADDRESS_WIDTH, "bytes", summary, minimum=minimum, default=default)


def _hbm(name: str, summary: str, default: int | None = None) -> Field:
    return Field(name, HBM_ADDRESS_WIDTH, "bytes", summary, default=default)


_PLACES = (
    _hbm("hbm", "HBM address on the engine's port"),
    _l1("l1", "L1 address"),
    _l1("length", "length of a row", minimum=1),
)
_ROW_STRIDES = (
    _hbm("hbm_row_stride", "from one row to the next in HBM", 0),
    _l1("l1_row_stride", "from one row to the next in L1", default=0),
)
_ROWS = (
    *_PLACES,
    Field("rows", ADDRESS_WIDTH, "rows", "rows of a plane", minimum=1, default=1),
    *_ROW_STRIDES,
    Field("planes", PLANES_WIDTH, "planes", "planes", minimum=1, default=1),
    _hbm("hbm_plane_stride", "from one plane to the next in HBM", 0),
    _l1("l1_plane_stride", "from one plane to the next in L1", default=0),
)
_INDEXED = (
    *_PLACES,
    Field("rows", ADDRESS_WIDTH, "rows", "rows, and indices", minimum=1),
    *_ROW_STRIDES,
    _l1("indices", "L1 address of the indices, uint32, little endian; a multiple of 4"),
)


def _inside(name: str, end: int, size: int, memory: str) -> None:
    if end > size:
        raise CommandError(f"{name} must end inside {memory}, at or below byte {size}; got {end}")


def _check_rows(configuration: SliceConfiguration, values: Values) -> None:
    """Every row lies inside L1 and inside what the port reaches."""
    for name, size, memory in (
        ("l1", configuration.l1.size, "L1"),
        ("hbm", configuration.hbm.port_bytes, "HBM"),
    ):
        end = values[name] + values["length"]
        end += (values["rows"] - 1) * values[f"{name}_row_stride"]
        end += (values["planes"] - 1) * values[f"{name}_plane_stride"]
        _inside(name, end, size, memory)


def _check_indexed(configuration: SliceConfiguration, values: Values) -> None:
    """L1's rows and the indices lie inside L1, and a row at index 0 inside HBM."""
    if values["indices"] % INDEX_BYTES:
        raise CommandError(
            f"indices must be a multiple of {INDEX_BYTES} bytes; got {values['indices']}"
        )
    size, rows = configuration.l1.size, values["rows"]
    end = values["l1"] + (rows - 1) * values["l1_row_stride"] + values["length"]
    _inside("l1", end, size, "L1")
    _inside("indices", values["indices"] + rows * INDEX_BYTES, size, "L1")
    _inside("hbm", values["hbm"] + values["length"], configuration.hbm.port_bytes, "HBM")


def _rows(engine: str, opcode: int, direction: str, cycles: Callable[..., int]) -> Command:
    return Command(
        engine=engine,
        name="rows",
        opcode=opcode,
        summary=(
            f"{direction} `planes` x `rows` rows of `length` bytes. Any alignment on both sides; "
            "rows follow in ascending order, planes outermost."
        ),
        own_fields=_ROWS,
        rule=_check_rows,
        cycles=cycles,
    )


def _indexed(
    engine: str, name: str, opcode: int, direction: str, cycles: Callable[..., int]
) -> Command:
    return Command(
        engine=engine,
        name=name,
        opcode=opcode,
        summary=(
            f"{direction} `rows` rows of `length` bytes; row i lies at `hbm + index[i] * "
            "hbm_row_stride` and at `l1 + i * l1_row_stride`. Rows follow in ascending i."
        ),
        own_fields=_INDEXED,
        rule=_check_indexed,
        cycles=cycles,
    )


LOAD_ROWS = _rows("load", 0x20, "From HBM to L1:", timing.load_rows_cycles)
LOAD_GATHER = _indexed("load", "gather", 0x21, "From HBM to L1:", timing.load_gather_cycles)
STORE_ROWS = _rows("store", 0x28, "From L1 to HBM:", timing.store_rows_cycles)
STORE_SCATTER = _indexed("store", "scatter", 0x29, "From L1 to HBM:", timing.store_scatter_cycles)

DMA_COMMANDS = (LOAD_ROWS, LOAD_GATHER, STORE_ROWS, STORE_SCATTER)
"""Every command of the DMA engine."""
