"""Quantises one block of 32 binary32 numbers to an MX format.

Source: OCP Microscaling Formats (MX) Specification v1.0, section 6.3; the scale rules are those of
`poblano_golden.scales`, the elements those of `poblano_golden.elements.encode`.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.mx_candidate import MxCandidate
from poblano.arith.mx_encoder import MxEncoder, Selection
from poblano.arith.mx_encoding import QuantiserPlan
from poblano.component import Component, once
from poblano_golden.formats import BLOCK_SIZE, FP32, SCALE_NAN, SCALE_RULES

__all__ = ["MxQuantiser"]

_EARLY_BITS = FP32.exponent_bits // 2
"""Exponent bits of the largest magnitude that are found before the register between them."""

_ALL = (1 << BLOCK_SIZE) - 1
"""A word with a 1 for every number of a block."""


class MxQuantiser(Component):
    """Quantises 32 binary32 numbers: a scale by one of the three rules, and 32 codes.

    Bit for bit `poblano_golden.blocks.quantise`. Latency `stages` cycles, one block a cycle, no
    backpressure and no enable; 0 is combinational. A block with a NaN or an infinity gets scale
    0xFF and codes 0. Elements past the edge of a matrix come as +0.

    Parameters
    ----------
    formats:
        Names of the MX formats to choose from; fewer make a smaller circuit.
    stages:
        Pipeline registers, 0 to 3: the first between scale and elements, the second among the
        exponent bits of the largest magnitude, the third between alignment and rounding.

    Members
    -------
    values:
        The block, element 0 in the low 32 bits.
    format:
        Index into `formats`; must be in range.
    rule:
        The scale rule, a value of `SCALE_RULES`; 3 is as `even`.
    codes:
        The block as it lies in memory, lowest byte first. A four-bit code takes a nibble, the
        even element the low one, and the upper half is 0 if other formats take bytes. Other codes
        take a byte each; the upper bits of a six-bit one are 0.
    scale:
        The E8M0 byte.

    Raises
    ------
    ValueError
        If there is no format, one is unknown or named twice, or `stages` is not 0 to 3.
    """

    def __init__(self, *, formats: tuple[str, ...], stages: int = 0) -> None:
        self.plan = plan = QuantiserPlan(formats)
        if stages not in range(4):
            raise ValueError(f"stages must be 0, 1, 2 or 3, not {stages}")
        self.formats = formats
        self.stages = stages
        super().__init__(
            {
                "values": In(FP32.element_bits * BLOCK_SIZE),
                "format": In(plan.format_width),
                "rule": In(2),
                "codes": Out(plan.block_bits),
                "scale": Out(8),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a block to its codes and scale."""
        return self.stages

    def elaborate(self, platform: Any) -> Module:
        # The largest exponent is found bit by bit from the top: where a number that can still be
        # the largest has a 1, those with a 0 drop out. Fractions are never compared: all that
        # matters of them is whether one of the numbers left raises the scale.
        m = Module()
        late, early, inside = (int(self.stages > n) for n in range(3))
        found = _delayed(m, self._find_upper(m), early, "early")
        known = _delayed(m, self._find_scale(m, platform, found), late, "late")
        codes = self._encode(m, platform, known, inside)
        last = {"select": known["select"], "scale": known["scale"]}
        last = _delayed(m, last, inside, "last")
        m.d.comb += [self.codes.eq(self._pack(codes, last["select"])), self.scale.eq(last["scale"])]
        return m

    @property
    def _number_bits(self) -> int:
        """Bits kept of a magnitude: the exponent, and below it the leading bits of the fraction."""
        return self.plan.fraction_bits + FP32.exponent_bits

    @property
    def _near_number_bits(self) -> int:
        """Bits kept of a magnitude once the largest is known."""
        return self.plan.fraction_bits + self.plan.near_bits

    def _find_upper(self, m: Module) -> dict[str, Value]:
        """Take what matters of the block, and find the upper bits of the largest exponent."""
        plan = self.plan
        values = [self.values.word_select(i, FP32.element_bits) for i in range(BLOCK_SIZE)]
        select = Signal(len(self.formats))
        numbers = Signal(BLOCK_SIZE * self._number_bits)
        m.d.comb += [
            select.eq(1 << self.format if len(self.formats) > 1 else 1),
            numbers.eq(Cat(value[plan.dropped_bits : -1] for value in values)),
        ]
        bits = range(_EARLY_BITS, FP32.exponent_bits)
        upper, left = self._narrow(m, numbers, C(_ALL, BLOCK_SIZE), bits)
        found = {
            "select": select,
            "rule": self.rule,
            "signs": Cat(value[-1] for value in values),
            "numbers": numbers,
            "sticky": Cat(value[: plan.dropped_bits].any() for value in values),
            "upper": upper,
            "candidates": left[_EARLY_BITS],
        }
        return found | ({"top": left[plan.near_bits]} if plan.near_bits in left else {})

    def _narrow(
        self, m: Module, numbers: Value, candidates: Value, bits: range
    ) -> tuple[Value, dict[int, Value]]:
        """Find bits of the largest exponent, the highest first.

        Returns
        -------
        The bits, lowest first, and for each the numbers that may be the largest up to there.
        """
        largest: list[Value] = []
        left: dict[int, Value] = {}
        for bit in reversed(bits):
            some = Signal(name=f"largest_{bit}")
            with_one = Signal(BLOCK_SIZE, name=f"with_one_{bit}")
            left[bit] = Signal(BLOCK_SIZE, name=f"left_{bit}")
            place = self.plan.fraction_bits + bit
            ones = Cat(numbers[self._number_bits * i + place] for i in range(BLOCK_SIZE))
            m.d.comb += [
                with_one.eq(candidates & ones),
                some.eq(with_one.any()),
                left[bit].eq(Mux(some, with_one, candidates)),
            ]
            largest.insert(0, some)
            candidates = left[bit]
        return Cat(largest), left

    def _find_scale(self, m: Module, platform: Any, found: dict[str, Value]) -> dict[str, Value]:
        """Find the rest of the largest exponent, the scale, and how each number relates to it."""
        plan = self.plan
        numbers = found["numbers"]
        lower, left = self._narrow(m, numbers, found["candidates"], range(_EARLY_BITS))
        top = found["top"] if "top" in found else left[plan.near_bits]
        largest = Signal(FP32.exponent_bits)
        invalid = Signal()
        before = Signal(FP32.exponent_bits - plan.near_bits)
        nonzero = Signal(BLOCK_SIZE)
        raises = Signal(BLOCK_SIZE)
        distant = Signal(BLOCK_SIZE)
        m.d.comb += [
            largest.eq(Cat(lower, found["upper"])),
            invalid.eq(largest.all()),
            before.eq(largest[plan.near_bits :] - 1),
        ]
        needed, exact = self._condition(m, found, largest)
        for i in range(BLOCK_SIZE):
            candidate: Any = MxCandidate(formats=self.formats)
            m.submodules[f"candidate_{i}"] = once(candidate, platform)
            number = numbers.word_select(i, self._number_bits)
            m.d.comb += [
                candidate.exponent.eq(number[plan.fraction_bits :]),
                candidate.fraction.eq(number[: plan.fraction_bits]),
                candidate.sticky.eq(found["sticky"][i]),
                candidate.needed.eq(needed),
                candidate.exact.eq(exact),
                candidate.before.eq(before),
                nonzero[i].eq(candidate.nonzero),
                raises[i].eq(candidate.raises),
                distant[i].eq(candidate.distant),
            ]
        raised = (left[0] & raises).any() & (found["rule"] != SCALE_RULES["floor"])
        return {
            "select": found["select"],
            "scale": self._scale(m, found["select"], largest, raised),
            "before": before,
            "signs": Mux(invalid, 0, found["signs"]),
            "nonzero": nonzero,
            "top": top,
            "vanishes": Mux(invalid, C(_ALL, BLOCK_SIZE), ~top & distant),
            "numbers": Cat(
                numbers.word_select(i, self._number_bits)[: self._near_number_bits]
                for i in range(BLOCK_SIZE)
            ),
            "sticky": found["sticky"],
        }

    def _condition(self, m: Module, found: dict[str, Value], largest: Value) -> tuple[Value, Value]:
        """Return how the largest number raises the scale: `needed` and `exact` of a candidate.

        By `even` its fraction must begin with one more 1 than an element's fraction has bits; by
        `round_up` with the ones of the largest code's fraction, and anything must follow. The
        leading one of a subnormal number is a bit of the fraction; only MXINT8's scale, which is
        then 0 or 1, depends on it.
        """
        selection = Selection(self.plan, found["select"])
        width = self.plan.deciding_bits

        def leading(count: int) -> int:
            return ((1 << count) - 1) << (width - count)

        exact = found["rule"][1]
        ones = Mux(
            exact,
            selection.number(lambda e: leading(e.fraction_bits + 1)),
            selection.number(lambda e: leading(e.largest_ones)),
        )
        one_more = ~largest.any() & selection.where(lambda e: e.fmt.is_integer)
        needed = Signal(width)
        m.d.comb += needed.eq(ones | Mux(one_more, Cat(ones[1:], 1), 0))
        return needed, exact

    def _scale(self, m: Module, select: Value, largest: Value, raised: Value) -> Signal:
        """Return the scale byte."""
        scale = Signal(8)
        exponent = Signal(signed(FP32.exponent_bits + 2))
        highest = Selection(self.plan, select).number(lambda e: e.fmt.max_exponent)
        m.d.comb += exponent.eq(largest + raised - highest)
        with m.If(largest.all()):
            m.d.comb += scale.eq(SCALE_NAN)
        with m.Elif(exponent[-1]):
            m.d.comb += scale.eq(0)
        with m.Elif(exponent[:8].all()):
            m.d.comb += scale.eq(SCALE_NAN - 1)
        with m.Else():
            m.d.comb += scale.eq(exponent)
        return scale

    def _encode(
        self, m: Module, platform: Any, known: dict[str, Value], stages: int
    ) -> list[Value]:
        """Return the code of every number."""
        plan = self.plan
        base = Signal(signed(FP32.exponent_bits + 1))
        near_base = Signal(plan.near_bits + 1)
        stop = Signal(plan.largest_bias)
        m.d.comb += [
            base.eq(known["scale"] - Selection(plan, known["select"]).number(lambda e: e.bias)),
            near_base.eq(base - Cat(C(0, plan.near_bits), known["before"])),
            stop.eq(Cat(~base[-1], *(base == -i for i in range(1, plan.largest_bias)))),
        ]
        codes: list[Value] = []
        for i in range(BLOCK_SIZE):
            number = known["numbers"].word_select(i, self._near_number_bits)
            encoder: Any = MxEncoder(formats=self.formats, stages=stages)
            m.submodules[f"encoder_{i}"] = once(encoder, platform)
            m.d.comb += [
                encoder.sign.eq(known["signs"][i]),
                encoder.nonzero.eq(known["nonzero"][i]),
                encoder.exponent.eq(number[plan.fraction_bits :]),
                encoder.top.eq(known["top"][i]),
                encoder.fraction.eq(number[: plan.fraction_bits]),
                encoder.sticky.eq(known["sticky"][i]),
                encoder.vanishes.eq(known["vanishes"][i]),
                encoder.select.eq(known["select"]),
                encoder.base.eq(near_base),
                encoder.stop.eq(stop),
            ]
            codes.append(encoder.code)
        return codes

    def _pack(self, codes: list[Value], select: Value) -> Value:
        """Lay out the codes; in a byte, the high half of a four-bit code is 0 already."""
        if self.plan.code_bits == 4:
            return Cat(codes)
        nibbles = Selection(self.plan, select).where(lambda e: e.fmt.storage_bits == 4)
        parts: list[Value] = []
        for i, code in enumerate(codes):
            low, high = code[:4], code[4:]
            if i < BLOCK_SIZE // 2:
                even, odd = codes[2 * i][:4], codes[2 * i + 1][:4]
                parts += [Mux(nibbles, even, low), high | (odd & nibbles.replicate(4))]
            else:
                parts += [low & ~nibbles.replicate(4), high]
        return Cat(parts)


def _delayed(m: Module, values: dict[str, Value], cycles: int, name: str) -> dict[str, Value]:
    return {key: delayed(m, value, cycles, f"{key}_{name}") for key, value in values.items()}
