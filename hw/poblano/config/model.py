"""The sections of a configuration and the rules that bind their values."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails

from poblano.arith.modes import parse_pair
from poblano.config.quantities import (
    FREQUENCY,
    SIZE,
    Frequency,
    Rate,
    Size,
    broken_rule,
    integer,
    power_of_two,
    size_power_of_two,
)
from poblano_golden.formats import BLOCK_SIZE, MX_FORMATS

__all__ = [
    "HBM_ADDRESS_BITS",
    "L1_ADDRESS_BITS",
    "Configuration",
    "HbmConfiguration",
    "HostConfiguration",
    "L1Configuration",
    "MeshConfiguration",
    "PipelineConfiguration",
    "SliceConfiguration",
    "TensorConfiguration",
    "VectorConfiguration",
    "VectorPipelineConfiguration",
]

FASTEST_CLOCK = 10_000_000_000
"""Hertz; a faster clock is a slip of the pen."""

L1_ADDRESS_BITS = 24
"""Bits of an L1 byte address in a command word."""

HBM_ADDRESS_BITS = 40
"""Bits of an HBM byte address in a command word; every port counts from 0."""


class Breach:
    """A rule over several values that does not hold.

    Parameters
    ----------
    rule, got:
        The sentence, and the values that break it.
    fields:
        Dotted paths of the values, most telling first, from the section that states the rule.
    """

    def __init__(self, rule: str, got: str, *fields: str) -> None:
        self.details = InitErrorDetails(
            type=broken_rule(rule, got=got, fields=[tuple(f.split(".")) for f in fields]),
            loc=(),
            input=got,
        )


class _Section(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, use_attribute_docstrings=True
    )

    def breaches(self) -> Iterator[Breach]:
        """Yield every broken rule over several values of the section."""
        yield from ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        details = [breach.details for breach in self.breaches()]
        if details:
            raise ValidationError.from_exception_data(type(self).__name__, details)
        return self


def _known_pair(text: str) -> str:
    try:
        a, b = parse_pair(text)
    except ValueError:
        names = ", ".join(MX_FORMATS)
        raise broken_rule(f"must be two of the formats {names} joined by '*'") from None
    return f"{a.name}*{b.name}"


def _plain_name(text: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text) is None:
        raise broken_rule(
            "must be at most 40 lower-case letters, digits and underscores, a letter first"
        )
    return text


def _plausible_clock(frequency: int) -> int:
    if frequency > FASTEST_CLOCK:
        raise broken_rule(f"must be at most {FREQUENCY.format(FASTEST_CLOCK)}")
    return frequency


class PipelineConfiguration(_Section):
    """Pipeline registers of a tensor unit, after each part of its datapath."""

    multiply: Annotated[int, *integer(0, 1)] = 1
    """After the element multipliers, their shifters and the carry-save tree."""
    sum: Annotated[int, *integer(0, 1)] = 1
    """After the sum of a block's products."""
    round: Annotated[int, *integer(0, 1)] = 1
    """After scaling and rounding to binary32."""
    add: Annotated[int, *integer(0, 3)] = 2
    """Inside the binary32 adder."""


class TensorConfiguration(_Section):
    """A tensor engine: `rows x cols` units of one 32-element block dot product a cycle."""

    rows: Annotated[int, *integer(1)]
    """Rows of units."""
    cols: Annotated[int, *integer(1, 32, "a result beat holds at most one MX block")]
    """Columns of units."""
    tile_rows: Annotated[int, *integer(1)] = 4
    """Rows of results that one unit accumulates."""
    tile_cols: Annotated[int, *integer(1)] = 4
    """Columns of results that one unit accumulates."""
    formats: tuple[Annotated[str, AfterValidator(_known_pair)], ...] = (
        "mxfp4*mxfp4",
        "mxfp8_e4m3*mxfp4",
        "mxfp8_e4m3*mxfp8_e4m3",
        "mxint8*mxfp4",
        "mxint8*mxint8",
    )
    """Pairs of operand formats; a mixed pair works in both orders."""
    pipeline: PipelineConfiguration = PipelineConfiguration()

    def breaches(self) -> Iterator[Breach]:
        """Yield the broken rules of tile and formats."""
        width = self.cols * self.tile_cols
        if width % BLOCK_SIZE:
            yield Breach(
                f"cols * tile_cols must be a multiple of {BLOCK_SIZE} "
                "(an MX block of results stays in one tile)",
                f"{self.cols} * {self.tile_cols} = {width}",
                "cols",
                "tile_cols",
            )
        accumulators, loop = self.tile_rows * self.tile_cols, self.pipeline.add + 2
        if accumulators < loop:
            yield Breach(
                "tile_rows * tile_cols must be at least pipeline.add + 2 "
                "(no accumulator is needed again before its addition is done)",
                f"{self.tile_rows} * {self.tile_cols} = {accumulators}, less than {loop}",
                "tile_rows",
                "tile_cols",
                "pipeline.add",
            )
        if not self.formats:
            yield Breach("formats must name at least one pair", "an empty list", "formats")
        seen: dict[frozenset[str], str] = {}
        for text in self.formats:
            first = seen.setdefault(frozenset(text.split("*")), text)
            if first is not text:
                yield Breach(
                    "formats must name every pair once, in either order",
                    f"{first!r} and {text!r}",
                    "formats",
                )


class L1Configuration(_Section):
    """The banked scratchpad of a slice; sizes in bytes."""

    size: Size
    """Bytes of one slice's L1."""
    line: Annotated[Size, size_power_of_two(64, why="a command word is one access")]
    """Bytes that one access moves."""
    banks: Annotated[int, *power_of_two()] = 4
    """Banks that are accessed independently."""

    def breaches(self) -> Iterator[Breach]:
        """Yield the broken rules of size, line and banks."""
        if self.size > 1 << L1_ADDRESS_BITS:
            yield Breach(
                f"size must be at most {SIZE.format(1 << L1_ADDRESS_BITS)} "
                f"(L1 addresses have {L1_ADDRESS_BITS} bits)",
                SIZE.format(self.size),
                "size",
            )
        if self.size % (self.line * self.banks):
            yield Breach(
                "size must be a multiple of line * banks",
                f"{SIZE.format(self.size)} and {SIZE.format(self.line)} * {self.banks}",
                "size",
                "banks",
                "line",
            )


class HbmConfiguration(_Section):
    """The memory of a slice: one AXI4 port a channel, one clock domain with the slice."""

    ports: Annotated[int, *integer(1)] = 1
    """AXI4 ports, each to one HBM channel."""
    width: Annotated[Size, size_power_of_two(1, 128, "an AXI4 data bus has 8 to 1024 bits")]
    """Bytes of a port's data bus."""
    pins: Annotated[int, *integer(1)] = 64
    """Data pins of a channel; HBM4 has 64."""
    pin_rate: Rate | None = None
    """Bits a second of one data pin; absent where no particular memory is meant."""
    capacity: Size | None = None
    """Bytes of one slice's memory, over all its ports; need not be a power of two."""
    outstanding: Annotated[int, *integer(1, 256, "the largest table of bursts")] = 32
    """Bursts that a port may have in flight in each direction."""

    @property
    def port_bytes(self) -> int:
        """Bytes behind one port: its share of the capacity, or all that an address reaches."""
        return 1 << HBM_ADDRESS_BITS if self.capacity is None else self.capacity // self.ports


class HostConfiguration(_Section):
    """The host's window on L1, and the queues that its commands wait in."""

    width: Annotated[
        Size,
        size_power_of_two(4, 128, "an AXI4 data bus has 8 to 1024 bits"),
        Field(validate_default=False),
    ] = 16
    """Bytes of the window's data bus."""
    queue_depth: Annotated[int, *integer(2, 64, "a queue is made of registers")] = 4
    """Command words that an engine's queue holds."""
    semaphores: Annotated[int, *integer(1, 64, "a command names one in six bits")] = 32
    """Semaphores of a slice."""


class VectorPipelineConfiguration(_Section):
    """Pipeline registers of a vector lane."""

    multiply: Annotated[int, *integer(0, 2)] = 2
    """Inside each of the two binary32 multipliers."""
    add: Annotated[int, *integer(0, 3)] = 2
    """Inside each binary32 adder, of lanes and of sums."""
    function: Annotated[int, *integer(0, 8)] = 5
    """Inside the elementary functions."""


class VectorConfiguration(_Section):
    """The vector engine."""

    lanes: Annotated[int, *power_of_two(2)]
    """Binary32 lanes."""
    pipeline: VectorPipelineConfiguration = VectorPipelineConfiguration()


class SliceConfiguration(_Section):
    """One slice: its engines and memories."""

    tensor: TensorConfiguration
    l1: L1Configuration
    hbm: HbmConfiguration
    vector: VectorConfiguration
    host: HostConfiguration = HostConfiguration()

    def breaches(self) -> Iterator[Breach]:
        """Yield the broken rules between L1 and the engines and ports that use it."""
        tensor, line = self.tensor, self.l1.line
        for port, width in (("hbm", self.hbm.width), ("host", self.host.width)):
            if width > line:
                yield Breach(
                    f"{port}.width must be at most l1.line (a beat touches two lines at most)",
                    f"{width} bytes, more than {line}",
                    f"{port}.width",
                    "l1.line",
                )
        lanes = self.vector.lanes
        if 4 * lanes > line:
            yield Breach(
                "4 * vector.lanes must be at most the bytes of l1.line (a beat is one access)",
                f"4 * {lanes} = {4 * lanes}, more than {line}",
                "vector.lanes",
                "l1.line",
            )
        for axis, units, tile in (
            ("rows", tensor.rows, tensor.tile_rows),
            ("cols", tensor.cols, tensor.tile_cols),
        ):
            if units * tile > line:
                yield Breach(
                    f"tensor.{axis} * tensor.tile_{axis} must be at most the bytes of l1.line "
                    "(a tile's scales are one access)",
                    f"{units} * {tile} = {units * tile}, more than {line}",
                    f"tensor.{axis}",
                    f"tensor.tile_{axis}",
                    "l1.line",
                )


class MeshConfiguration(_Section):
    """The grid of slices that make the chip."""

    rows: Annotated[int, *integer(1)]
    """Rows of slices."""
    cols: Annotated[int, *integer(1)]
    """Columns of slices."""


class Configuration(_Section):
    """A whole chip."""

    name: Annotated[str, AfterValidator(_plain_name)]
    """Short name; stands in file headers and beside every figure."""
    notes: Annotated[str, Field(repr=False)] = ""
    """Free text: what is published, what inferred. Part neither of the hash nor of any name."""
    frequency: Annotated[Frequency, AfterValidator(_plausible_clock)]
    """Frequency of the one clock."""
    mesh: MeshConfiguration
    slice: SliceConfiguration

    @property
    def canonical(self) -> str:
        """JSON of every value except the notes, keys sorted, quantities in their smallest unit."""
        return json.dumps(self.model_dump(exclude={"notes"}), sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """SHA-256 of `canonical`, 64 hexadecimal digits; identifies the design everywhere."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    @property
    def hash64(self) -> int:
        """The first 16 digits of `hash` as a number, for a register of 64 bits."""
        return int(self.hash[:16], 16)
