"""Decoded operands: what the lanes of a unit multiply, and the decoder that makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.lanes import NIBBLE, LanePlan, largest_shift
from poblano.arith.modes import LANES, Mode
from poblano.component import Component
from poblano_golden.formats import BLOCK_SIZE, MXFP4, SCALE_BIAS, SCALE_NAN, MxFormat

__all__ = ["OperandDecoder", "operand_layout"]

_SLOTS = LANES // 2


def operand_layout(formats: tuple[str, ...]) -> data.StructLayout:
    """Return the layout of one side of a beat, as lanes take it (see `poblano.arith.lanes`).

    Fields
    ------
    sign:
        Bit i is the sign of lane i.
    code:
        Only where every format has four bits: bit i of entry k is bit k of lane i's magnitude
        code. Bit planes keep the lanes' logic in whole words.
    magnitude:
        Otherwise: four bits a lane; FP4 in halves, so 0, 1, 2, 3, 4, 6, 8 or 12.
    shift:
        Where 8-bit floats exist: entry k is the power of two of lane 2k.
    infinity, zero:
        Where infinities exist: bit k says whether the element whose first lane is 2k is
        infinite, or zero.
    nan:
        An element of the beat or the scale is NaN.
    exponent:
        The power of two that the scale and the format give to the magnitudes.
    """
    plan = LanePlan(formats)
    fields: dict[str, object] = {"sign": LANES}
    if plan.four_bit_only:
        fields["code"] = data.ArrayLayout(unsigned(LANES), MXFP4.element_bits - 1)
    else:
        fields["magnitude"] = data.ArrayLayout(unsigned(NIBBLE), LANES)
    if plan.has_shifters:
        fields["shift"] = data.ArrayLayout(unsigned(plan.element_shift.bit_length()), _SLOTS)
    if plan.has_infinity:
        fields |= {"infinity": _SLOTS, "zero": _SLOTS}
    return data.StructLayout(
        fields | {"nan": 1, "exponent": Shape.cast(plan.exponent_range)}  # type: ignore[arg-type]
    )


@dataclass(frozen=True)
class _Element:
    """One decoded element; `low` and `high` are the nibbles of its magnitude."""

    sign: Value
    low: Value
    high: Value
    shift: Value
    nan: Value
    infinity: Value


_NOTHING = C(0, 1)


class OperandDecoder(Component):
    """Decodes one beat of an MX block into lanes. Combinational.

    Elements at or past `count` are zero, whatever their codes, and never NaN.

    Parameters
    ----------
    formats:
        Format pairs of the unit.
    side:
        "a" or "b": which operand of a mode this is.

    Members
    -------
    codes:
        The 32 codes of the block as they lie in memory; four-bit codes in the low half.
    mode:
        Index into `modes(formats)`.
    beat:
        Which beat of the block, below the mode's `beats`.
    count:
        Valid elements of the block, 0 to 32.
    scale:
        E8M0 scale.
    operand:
        The lanes, in `operand_layout(formats)`.

    Raises
    ------
    ValueError
        If `side` is neither "a" nor "b", or the formats are not a non-empty tuple of known pairs.
    """

    def __init__(self, *, formats: tuple[str, ...], side: str) -> None:
        if side not in ("a", "b"):
            raise ValueError(f'side must be "a" or "b", not {side!r}')
        self.plan = LanePlan(formats)
        self.side = side
        super().__init__(
            {
                "codes": In(self.plan.code_bits),
                "mode": In(self.plan.mode_width),
                "beat": In(2),
                "count": In(BLOCK_SIZE.bit_length()),
                "scale": In(8),
                "operand": Out(operand_layout(formats)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        present = Signal(BLOCK_SIZE)
        m.d.comb += present.eq(~(C((1 << BLOCK_SIZE) - 1, BLOCK_SIZE) << self.count))
        m.d.comb += self.operand.exponent.eq(self.scale + self._bias(m))
        if self.plan.four_bit_only:
            self._lay_planes(m, present)
        else:
            self._lay_lanes(m, present)
        return m

    def _own(self, mode: Mode) -> MxFormat:
        return mode.a if self.side == "a" else mode.b

    def _other(self, mode: Mode) -> MxFormat:
        return mode.b if self.side == "a" else mode.a

    def _cases(self, key: object) -> Iterator[tuple[object, list[int]]]:
        """Yield each value of a function of the mode, with the numbers of the modes it is for."""
        groups: dict[object, list[int]] = {}
        for number, mode in enumerate(self.plan.modes):
            groups.setdefault(key(mode), []).append(number)  # type: ignore[operator]
        yield from groups.items()

    def _bias(self, m: Module) -> Signal:
        """Return the power of two of the format's lsb, less the scale's bias."""
        lsb = [mode.a.lsb_exponent for mode in self.plan.modes]
        bias = Signal(range(min(lsb) - SCALE_BIAS, max(lsb) - SCALE_BIAS + 1))
        with m.Switch(self.mode):
            for exponent, numbers in self._cases(lambda mode: self._own(mode).lsb_exponent):
                with m.Case(*numbers):
                    m.d.comb += bias.eq(exponent - SCALE_BIAS)
        return bias

    def _lay_planes(self, m: Module, present: Signal) -> None:
        planes = [Cat(self.codes[k::4]) & present for k in range(4)]
        m.d.comb += [
            *(self.operand.code[k].eq(planes[k]) for k in range(3)),
            self.operand.sign.eq(planes[3]),
            self.operand.nan.eq(self.scale == SCALE_NAN),
        ]

    def _lay_lanes(self, m: Module, present: Signal) -> None:
        half = Signal()
        quarter = Signal()
        for beats, numbers in self._cases(lambda mode: mode.beats):
            with m.If(_is_any(self.mode, numbers)):
                if beats == 2:
                    m.d.comb += half.eq(self.beat[0])
                elif beats == 4:
                    m.d.comb += [half.eq(self.beat[1]), quarter.eq(self.beat[0])]
        wide = self._wide_elements(m, present, half, quarter)
        narrow = [
            _four_bit(m, self.codes.word_select(i, 4), present[i], f"narrow{i}")
            for i in range(BLOCK_SIZE)
        ]
        paired = [
            _four_bit(
                m,
                Mux(half, self.codes.word_select(_SLOTS + k, 4), self.codes.word_select(k, 4)),
                Mux(half, present[_SLOTS + k], present[k]),
                f"paired{k}",
            )
            for k in range(_SLOTS)
        ]
        with m.Switch(self.mode):
            for key, numbers in self._cases(
                lambda mode: (
                    self._own(mode).storage_bits,
                    self._other(mode).storage_bits,
                    self._own(mode).is_integer,
                    self._other(mode).is_integer,
                )
            ):
                with m.Case(*numbers):
                    own, other, integer, partner_integer = key  # type: ignore[misc]
                    if own == 4 and other == 4:
                        self._place(m, narrow, 1, "low")
                    elif own == 4:
                        self._place(m, paired, 2, "low", "low")
                    elif other == 4:
                        self._place(m, wide, 2, "low", "high")
                    elif integer and partner_integer:
                        order = ("low", "high", "low", "high")
                        if self.side == "b":
                            order = ("low", "low", "high", "high")
                        self._place(m, wide[: _SLOTS // 2], 4, *order)
                    elif integer:
                        self._place(m, wide[: _SLOTS // 2], 4, "low", None, "high")
                    elif partner_integer:
                        self._place(m, wide[: _SLOTS // 2], 4, "low", None, "low")
                    else:
                        self._place(m, wide[: _SLOTS // 2], 4, "low")
        nan = Cat(element.nan for element in wide).any()
        uses_wide = _is_any(
            self.mode,
            [n for n, mode in enumerate(self.plan.modes) if self._own(mode).storage_bits == 8],
        )
        m.d.comb += self.operand.nan.eq((self.scale == SCALE_NAN) | (nan & uses_wide))

    def _place(
        self, m: Module, elements: list[_Element], spacing: int, *nibbles: str | None
    ) -> None:
        """Put each element's nibbles on consecutive lanes; elements start `spacing` lanes apart."""
        operand = self.operand
        for index, element in enumerate(elements):
            first = spacing * index
            for offset, nibble in enumerate(nibbles):
                if nibble is None:
                    continue
                lane = first + offset
                m.d.comb += [
                    operand.sign[lane].eq(element.sign),
                    operand.magnitude[lane].eq(getattr(element, nibble)),
                ]
                if self.plan.has_shifters and lane % 2 == 0:
                    shift = element.shift
                    if offset == 2 and nibble == "high":
                        shift = NIBBLE
                    m.d.comb += operand.shift[lane // 2].eq(shift)
            if self.plan.has_infinity and spacing > 1:
                m.d.comb += [
                    operand.infinity[first // 2].eq(element.infinity),
                    operand.zero[first // 2].eq(~(element.low | element.high).any()),
                ]

    def _wide_elements(
        self, m: Module, present: Signal, half: Signal, quarter: Signal
    ) -> list[_Element]:
        """Decode the beat's 8-bit elements: 16, or 8 in the first places."""
        formats = {self._own(mode).name: self._own(mode) for mode in self.plan.modes}
        elements: list[_Element] = []
        for k in range(_SLOTS):
            places = [k, _SLOTS + k]
            valid, code = Signal(name=f"valid{k}"), Signal(8, name=f"code{k}")
            take = [Mux(half, present[places[1]], present[places[0]])]
            byte = [self.codes.word_select(place, 8) for place in places]
            pick = [Mux(half, byte[1], byte[0])]
            eight_by_eight = [n for n, mode in enumerate(self.plan.modes) if mode.beats == 4]
            if k < _SLOTS // 2:
                later = [place + _SLOTS // 2 for place in places]
                take.append(Mux(half, present[later[1]], present[later[0]]))
                byte = [self.codes.word_select(place, 8) for place in later]
                pick.append(Mux(half, byte[1], byte[0]))
                m.d.comb += [
                    valid.eq(Mux(quarter, take[1], take[0])),
                    code.eq(Mux(quarter, pick[1], pick[0])),
                ]
            else:
                m.d.comb += [
                    valid.eq(take[0] & ~_is_any(self.mode, eight_by_eight)),
                    code.eq(pick[0]),
                ]
            wide = [f for f in formats.values() if f.storage_bits == 8]
            elements.append(self._eight_bit(m, code, valid, wide, f"wide{k}"))
        return elements

    def _eight_bit(
        self, m: Module, code: Signal, valid: Signal, formats: list[MxFormat], name: str
    ) -> _Element:
        """Decode one element of whichever 8-bit format the mode asks for."""
        out = _Element(
            Signal(name=f"{name}_sign"),
            Signal(NIBBLE, name=f"{name}_low"),
            Signal(NIBBLE, name=f"{name}_high"),
            Signal(max(1, self.plan.element_shift.bit_length()), name=f"{name}_shift"),
            Signal(name=f"{name}_nan"),
            Signal(name=f"{name}_infinity"),
        )
        with m.Switch(self.mode):
            for fmt, numbers in self._cases(self._own):
                if fmt not in formats:
                    continue
                assert isinstance(fmt, MxFormat)
                element = _integer(code) if fmt.is_integer else _float(code, fmt)
                with m.Case(*numbers), m.If(valid):
                    m.d.comb += [
                        getattr(out, field).eq(getattr(element, field))
                        for field in _Element.__dataclass_fields__
                    ]
        return out


def _is_any(mode: Value, numbers: list[int]) -> Value:
    return mode.matches(*numbers)


def _four_bit(m: Module, code: Value, valid: Value, name: str) -> _Element:
    """Decode E2M1 to halves: 0, 1, 2, 3, 4, 6, 8 or 12."""
    masked = Signal(4, name=name)
    m.d.comb += masked.eq(Mux(valid, code, 0))
    mantissa, low, high = masked[0], masked[1], masked[2]
    significand = Cat(mantissa, low | high)
    magnitude = Signal(NIBBLE, name=f"{name}_magnitude")
    m.d.comb += magnitude.eq(Mux(high, Mux(low, significand << 2, significand << 1), significand))
    return _Element(masked[3], magnitude, C(0, NIBBLE), C(0, 1), _NOTHING, _NOTHING)


def _integer(code: Value) -> _Element:
    """Decode two's complement to sign and magnitude, 0 to 128."""
    magnitude = Mux(code[7], -code, code)[:8]
    return _Element(code[7], magnitude[:4], magnitude[4:], C(0, 1), _NOTHING, _NOTHING)


def _float(code: Value, fmt: MxFormat) -> _Element:
    """Decode an 8-bit float to its significand and the shift that its exponent asks for."""
    fraction = code[: fmt.mantissa_bits]
    exponent = code[fmt.mantissa_bits : fmt.element_bits - 1]
    normal = exponent.any()
    top = exponent.all()
    if fmt.has_infinity:
        nan, infinity = top & fraction.any(), top & ~fraction.any()
    else:
        nan, infinity = (top & fraction.all()) if fmt.has_nan else _NOTHING, _NOTHING
    shift = (exponent - normal)[: largest_shift(fmt).bit_length()]
    return _Element(
        code[fmt.element_bits - 1], Cat(fraction, normal), C(0, NIBBLE), shift, nan, infinity
    )
