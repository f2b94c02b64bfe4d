"""Commands of the tensor engine."""

from __future__ import annotations

from poblano.arith.modes import modes, operand_formats
from poblano.commands.model import ADDRESS_WIDTH, Command, CommandError, Field, Values
from poblano.config import SliceConfiguration
from poblano.tensor.layout import Extent, extents, format_of
from poblano.tensor.timing import matmul_cycles
from poblano_golden.formats import MX_FORMATS, SCALE_RULES, WIDE_FORMATS, MxFormat

__all__ = ["MATMUL"]

_MX = {fmt.name: fmt.code for fmt in MX_FORMATS.values()}
_RESULTS = _MX | {name: WIDE_FORMATS[name].code for name in ("bf16", "fp32")}


def _address(name: str, summary: str, default: int | None = None) -> Field:
    return Field(name, ADDRESS_WIDTH, "bytes", summary, default=default)


def _operand(side: str, rows: str) -> tuple[Field, ...]:
    return (
        _address(f"{side}_codes", f"L1 address of {side.upper()}'s codes, [ceil(k/32)][{rows}]"),
        _address(f"{side}_code_stride", "from one k-block's codes to the next"),
        _address(f"{side}_scales", f"L1 address of {side.upper()}'s scales, [ceil(k/32)][{rows}]"),
        _address(f"{side}_scale_stride", "from one k-block's scales to the next"),
    )


def _check_matmul(configuration: SliceConfiguration, values: Values) -> None:
    """Formats that the engine has, strides that hold a block row, and addresses inside L1."""
    a, b = format_of(values["a_format"]), format_of(values["b_format"])
    enabled = modes(configuration.tensor.formats)
    if not any((mode.a, mode.b) == (a, b) for mode in enabled):
        raise CommandError(
            f"the engine multiplies {', '.join(configuration.tensor.formats)}; "
            f"got {a.name}*{b.name}"
        )
    result = format_of(values["d_format"])
    writable = operand_formats(configuration.tensor.formats)
    if isinstance(result, MxFormat) and result not in writable:
        names = ", ".join(fmt.name for fmt in writable)
        raise CommandError(f"results leave as fp32, bf16, {names}; got {result.name}")
    for extent in extents(values):
        _check_extent(configuration, extent)


def _check_extent(configuration: SliceConfiguration, extent: Extent) -> None:
    if extent.steps > 1 and extent.stride < extent.length:
        raise CommandError(
            f"{extent.name}_stride must be at least {extent.length} bytes; got {extent.stride}"
        )
    if extent.end > configuration.l1.size:
        raise CommandError(
            f"{extent.name} must end inside L1, at or below byte {configuration.l1.size}; "
            f"got {extent.end}"
        )


MATMUL = Command(
    engine="tensor",
    name="matmul",
    opcode=0x10,
    summary=(
        "D[m, n] = sum over k of A[m, k] * B[n, k]: block dot products exact, rounded once to "
        "FP32 and added in ascending k from +0. Quantised results are blocks along n (axis n) "
        "or m (axis m); with axis m the wide formats are written transposed."
    ),
    own_fields=(
        Field("a_format", 4, "", "format of A", choices=_MX),
        Field("b_format", 4, "", "format of B", choices=_MX),
        Field("d_format", 4, "", "format of the results", choices=_RESULTS),
        Field("scale_rule", 2, "", "how result scales are chosen", choices=SCALE_RULES, default=0),
        Field("axis", 1, "", "axis of the result blocks", choices={"n": 0, "m": 1}, default=0),
        Field("m", ADDRESS_WIDTH, "rows", "rows of A", minimum=1),
        Field("n", ADDRESS_WIDTH, "rows", "rows of B", minimum=1),
        Field("k", ADDRESS_WIDTH, "elements", "length of the sums", minimum=1),
        *_operand("a", "m"),
        *_operand("b", "n"),
        _address("d_codes", "L1 address of the results"),
        _address("d_code_stride", "from one row (wide) or block row (MX) to the next"),
        _address("d_scales", "L1 address of the result scales; MX results only", 0),
        _address("d_scale_stride", "from one block row's scales to the next; MX only", 0),
    ),
    rule=_check_matmul,
    cycles=matmul_cycles,
)
