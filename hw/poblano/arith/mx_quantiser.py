"""Quantises one block of 32 binary32 numbers to an MX format.

Source: OCP Microscaling Formats (MX) Specification v1.0, section 6.3; the scale rules are those of
`poblano_golden.scales`, the elements those of `poblano_golden.elements.encode`.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.mx_encoder import MxEncoder, Selection, element_layout
from poblano.arith.mx_encoding import QuantiserPlan
from poblano.component import Component, once
from poblano_golden.formats import BLOCK_SIZE, FP32, SCALE_NAN, SCALE_RULES

__all__ = ["MxQuantiser"]

_EARLY_BITS = FP32.exponent_bits // 2
"""Exponent bits of the largest magnitude that are found before the register between them."""


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
        # matters of them is whether the rule takes the next power of two for one of the numbers
        # left.
        m = Module()
        late, early, inside = (int(self.stages > n) for n in range(3))
        select = Signal(len(self.formats))
        m.d.comb += select.eq(1 << self.format if len(self.formats) > 1 else 1)
        numbers = self._take(m)
        signs = Cat(self.values.word_select(i, FP32.element_bits)[-1] for i in range(BLOCK_SIZE))
        order = range(FP32.exponent_bits)[::-1]
        upper, left = self._narrow(m, numbers, C(-1, BLOCK_SIZE), order[:_EARLY_BITS])
        top = left.get(self.plan.near_bits)

        select = delayed(m, select, early, "select")
        rule = delayed(m, self.rule, early, "rule")
        signs = delayed(m, signs, early, "signs")
        upper = delayed(m, upper, early, "upper")
        candidates = delayed(m, left[order[_EARLY_BITS - 1]], early, "candidates")
        top = None if top is None else delayed(m, top, early, "top")
        numbers = data.View(numbers.shape(), delayed(m, numbers.as_value(), early, "numbers"))
        lower, left = self._narrow(m, numbers, candidates, order[_EARLY_BITS:])
        largest = Cat(lower, upper)
        steps_up = self._steps_up(m, numbers, left[0], largest, select, rule)
        scale = self._scale(m, largest, steps_up, select)
        elements = self._elements(
            m, numbers, signs, left[self.plan.near_bits] if top is None else top, largest
        )

        select = delayed(m, select, late, "select_late")
        scale = delayed(m, scale, late, "scale")
        largest = delayed(m, largest, late, "largest")
        elements = [
            data.View(e.shape(), delayed(m, e.as_value(), late, f"element_{i}"))
            for i, e in enumerate(elements)
        ]
        codes = self._encode(m, platform, elements, select, scale, largest, inside)
        self._pack(m, codes, delayed(m, select, inside, "select_last"))
        m.d.comb += self.scale.eq(delayed(m, scale, inside, "scale_last"))
        return m

    def _take(self, m: Module) -> data.View:
        """Keep what matters of the magnitudes."""
        plan = self.plan
        number = data.StructLayout(
            {"sticky": 1, "fraction": plan.fraction_bits, "exponent": FP32.exponent_bits}
        )
        numbers = Signal(data.ArrayLayout(number, BLOCK_SIZE))
        for i in range(BLOCK_SIZE):
            value = self.values.word_select(i, FP32.element_bits)
            m.d.comb += [
                numbers[i].sticky.eq(value[: plan.dropped_bits].any()),
                numbers[i].fraction.eq(value[plan.dropped_bits : FP32.mantissa_bits]),
                numbers[i].exponent.eq(value[FP32.mantissa_bits : -1]),
            ]
        return numbers

    def _narrow(
        self, m: Module, numbers: data.View, candidates: Value, bits: range
    ) -> tuple[Value, dict[int, Value]]:
        """Find bits of the largest exponent.

        Returns
        -------
        The bits, lowest first, and for each of them the numbers that are left after it.
        """
        found: list[Value] = []
        left: dict[int, Value] = {}
        for bit in bits:
            ones = Signal(BLOCK_SIZE, name=f"ones_{bit}")
            one = Signal(name=f"largest_{bit}")
            remaining = Signal(BLOCK_SIZE, name=f"left_{bit}")
            m.d.comb += [
                ones.eq(Cat(numbers[i].exponent[bit] for i in range(BLOCK_SIZE))),
                one.eq((candidates & ones).any()),
                remaining.eq(candidates & (ones | ~one.replicate(BLOCK_SIZE))),
            ]
            found.insert(0, one)
            left[bit] = candidates = remaining
        return Cat(found), left

    def _steps_up(
        self,
        m: Module,
        numbers: data.View,
        candidates: Value,
        largest: Value,
        select: Value,
        rule: Value,
    ) -> Signal:
        """Return whether the rule takes the next power of two.

        `even` does where the fraction of the largest magnitude begins with one more 1 than an
        element's fraction has bits; `round_up` where it begins with the ones of the largest
        code's fraction and anything follows. The leading one of a subnormal magnitude is a bit
        of the fraction; only MXINT8's scale, which is then 0 or 1, depends on it.
        """
        plan = self.plan
        selection = Selection(plan, select)
        width = plan.deciding_bits
        even = Signal()
        ones = Signal(width)

        def leading(count: int) -> int:
            return ((1 << count) - 1) << (width - count)

        m.d.comb += [
            even.eq(rule[1]),
            ones.eq(
                Mux(
                    even,
                    selection.number(lambda e: leading(e.fraction_bits + 1)),
                    selection.number(lambda e: leading(e.largest_ones)),
                )
            ),
        ]
        needed = ones
        if plan.has_integer:
            needed = Signal(width)
            m.d.comb += needed.eq(Mux(largest.any(), ones, Cat(ones[1:], 1)))
        passes = Signal(BLOCK_SIZE)
        for i in range(BLOCK_SIZE):
            fraction, sticky = numbers[i].fraction, numbers[i].sticky
            head, tail = fraction[-width:], fraction[:-width]
            follows = tail.any() | sticky | (head & ~needed).any()
            m.d.comb += passes[i].eq((head | ~needed).all() & (even | follows))
        steps_up = Signal()
        m.d.comb += steps_up.eq((candidates & passes).any() & (rule != SCALE_RULES["floor"]))
        return steps_up

    def _scale(self, m: Module, largest: Value, steps_up: Value, select: Value) -> Signal:
        """Return the scale byte."""
        scale = Signal(8)
        highest = Selection(self.plan, select).number(lambda e: e.fmt.max_exponent)
        exponent = Signal(signed(FP32.exponent_bits + 2))
        m.d.comb += exponent.eq(largest + steps_up - highest)
        with m.If(largest.all()):
            m.d.comb += scale.eq(SCALE_NAN)
        with m.Elif(exponent < 0):
            m.d.comb += scale.eq(0)
        with m.Elif(exponent == SCALE_NAN):
            m.d.comb += scale.eq(SCALE_NAN - 1)
        with m.Else():
            m.d.comb += scale.eq(exponent)
        return scale

    def _elements(
        self, m: Module, numbers: data.View, signs: Value, top: Value, largest: Value
    ) -> list[data.View]:
        """Return every number in relation to the largest magnitude."""
        near = self.plan.near_bits
        invalid = Signal()
        before = Signal(FP32.exponent_bits - near)
        m.d.comb += [invalid.eq(largest.all()), before.eq(largest[near:] - 1)]
        elements: list[data.View] = []
        for i in range(BLOCK_SIZE):
            number = numbers[i]
            element = Signal(element_layout(self.plan), name=f"element_{i}")
            m.d.comb += [
                element.sign.eq(signs[i] & ~invalid),
                element.nonzero.eq(number.exponent.any()),
                element.exponent.eq(number.exponent[:near]),
                element.top.eq(top[i]),
                element.fraction.eq(number.fraction),
                element.sticky.eq(number.sticky),
                element.vanishes.eq(invalid | (~top[i] & (number.exponent[near:] != before))),
            ]
            elements.append(element)
        return elements

    def _encode(
        self,
        m: Module,
        platform: Any,
        elements: list[data.View],
        select: Value,
        scale: Value,
        largest: Value,
        stages: int,
    ) -> list[Value]:
        """Return the code of every element."""
        plan = self.plan
        near = plan.near_bits
        base = Signal(signed(FP32.exponent_bits + 1))
        near_base = Signal(near + 1)
        stop = Signal(plan.largest_bias)
        m.d.comb += [
            base.eq(scale - Selection(plan, select).number(lambda e: e.bias)),
            near_base.eq(base - Cat(C(0, near), largest[near:] - 1)),
            stop.eq(Cat(~base[-1], *(base == -i for i in range(1, plan.largest_bias)))),
        ]
        codes: list[Value] = []
        for i, element in enumerate(elements):
            encoder = MxEncoder(formats=self.formats, stages=stages)
            m.submodules[f"encoder_{i}"] = once(encoder, platform)
            m.d.comb += [
                encoder.element.eq(element),
                encoder.select.eq(select),
                encoder.base.eq(near_base),
                encoder.stop.eq(stop),
            ]
            codes.append(encoder.code)
        return codes

    def _pack(self, m: Module, codes: list[Value], select: Value) -> None:
        """Lay out the codes; in a byte, the high half of a four-bit code is 0 already."""
        if self.plan.code_bits == 4:
            m.d.comb += self.codes.eq(Cat(codes))
            return
        nibbles = Selection(self.plan, select).where(lambda e: e.fmt.storage_bits == 4)
        for i, code in enumerate(codes):
            low, high = code[:4], code[4:]
            if i < BLOCK_SIZE // 2:
                even, odd = codes[2 * i][:4], codes[2 * i + 1][:4]
                low = Mux(nibbles, even, low)
                high = high | (odd & nibbles.replicate(4))
            else:
                low = low & ~nibbles.replicate(4)
            m.d.comb += self.codes.word_select(i, 8).eq(Cat(low, high))
