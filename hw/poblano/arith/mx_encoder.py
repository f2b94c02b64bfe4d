"""Encodes one number of a block whose scale is known."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.mx_encoding import Encoding, QuantiserPlan
from poblano.component import Component

__all__ = ["MxEncoder", "Selection"]


class Selection:
    """Which of several formats is meant: one bit a format, exactly one of them set."""

    def __init__(self, plan: QuantiserPlan, select: Value) -> None:
        self._encodings = plan.encodings
        self._select = [select[i] for i in range(len(plan.encodings))]

    def where(self, condition: Callable[[Encoding], bool]) -> Value:
        """Return whether the condition holds for the format."""
        holds = [condition(e) for e in self._encodings]
        if all(holds):
            return C(1, 1)
        return Cat(on for on, held in zip(self._select, holds, strict=True) if held).any()

    def number(self, of: Callable[[Encoding], int]) -> Value:
        """Return what `of` gives for the format, not negative."""
        width = max(of(e) for e in self._encodings).bit_length()
        return Cat(self.where(lambda e, i=i: bool(of(e) >> i & 1)) for i in range(width))

    def bit(self, of: Callable[[Encoding], Value | None]) -> Value:
        """Return the bit that `of` gives for the format, 0 for None; equal bits share a gate."""
        choices = [of(e) for e in self._encodings]
        gates = {id(choice): choice for choice in choices if choice is not None}
        bits = [
            choice & self.where(lambda e, choice=choice: of(e) is choice)
            for choice in gates.values()
        ]
        return Cat(bits).any()


class MxEncoder(Component):
    """Encodes one binary32 number in an MX format: exact quotient by the scale, rounded once.

    To nearest, ties to even, saturating, as `poblano_golden.elements.encode`. Latency `stages`
    cycles, one number a cycle, no backpressure.

    Parameters
    ----------
    formats:
        Names of the MX formats.
    stages:
        Registers between alignment and rounding, 0 or 1.

    Members
    -------
    sign, nonzero:
        The number's sign, and whether its exponent field is not 0.
    exponent, top:
        The low bits of the exponent field, and whether the high bits equal those of the block's
        largest magnitude; if not, they are one less.
    fraction, sticky:
        The leading bits of the fraction, and whether a bit below is set.
    vanishes:
        The code's magnitude is 0: the high exponent bits are less than that, or the block is
        invalid.
    select:
        One bit a format, exactly one of them set.
    base:
        Scale byte less the format's bias, counted from `exponent` 0 with `top` 0.
    stop:
        How far a subnormal number may be shifted left so that its code is normal: bit i is set
        where that is i; none is set at the largest shift.
    code:
        The element's code, in the low bits.
    """

    def __init__(self, *, formats: tuple[str, ...], stages: int = 0) -> None:
        self.plan = plan = QuantiserPlan(formats)
        if stages not in (0, 1):
            raise ValueError(f"stages must be 0 or 1, not {stages}")
        self.stages = stages
        super().__init__(
            {
                "sign": In(1),
                "nonzero": In(1),
                "exponent": In(plan.near_bits),
                "top": In(1),
                "fraction": In(plan.fraction_bits),
                "sticky": In(1),
                "vanishes": In(1),
                "select": In(len(formats)),
                "base": In(plan.near_bits + 1),
                "stop": In(plan.largest_bias),
                "code": Out(plan.code_bits),
            }
        )

    def elaborate(self, platform: object) -> Module:
        # The field of the code is that of the number's exponent less `base`. From 1 up the code
        # is normal: a normal number stays where it is, a subnormal one is shifted left to its
        # leading one or as far as a normal code goes, and its field is less by as much. From 0
        # down the code is subnormal: the number is shifted right by 1 - field. Rounding then
        # adds to the code as a whole, so a carry out of the fraction enters the field.
        m = Module()
        plan = self.plan
        left = self._leading_zeros(m)
        depth = self._depth(m, left)

        layout = data.StructLayout(
            {
                "sign": 1,
                "field": plan.field_bits,
                "number": plan.aligned_bits,
                "sticky": 1,
                "select": len(plan.encodings),
            }
        )
        field = Signal(plan.field_bits)
        with m.If(depth[-1] & ~self.vanishes):
            m.d.comb += field.eq(-depth)
        aligned = Signal(layout)
        m.d.comb += [
            aligned.sign.eq(self.sign),
            aligned.field.eq(field),
            aligned.select.eq(self.select),
        ]
        self._align(m, left, depth, aligned)
        self._round(m, data.View(layout, delayed(m, aligned.as_value(), self.stages, "aligned")))
        return m

    def _leading_zeros(self, m: Module) -> Signal:
        """Zeros before the leading one, at most the bound that `stop` gives."""
        plan = self.plan
        leading = Cat(self.nonzero, self.fraction[::-1])[: plan.largest_bias]
        left = Signal(plan.largest_bias.bit_length())
        m.d.comb += left.eq(Cat(_leading_zeros(list(leading | self.stop))))
        return left

    def _depth(self, m: Module, left: Signal) -> Signal:
        """The field, negated."""
        plan = self.plan
        exponent = self.exponent
        # A subnormal number counts as 1 - left, to the bits of a field. Where that is negative it
        # wraps to a large number; the scale is then so small that the field stays positive.
        bits = max(plan.field_bits, len(left))
        subnormal = Signal(bits)
        m.d.comb += subnormal.eq(Mux(self.nonzero, 0, 1 - left))
        depth = Signal(signed(plan.near_bits + 2))
        m.d.comb += depth.eq(
            self.base - Cat(exponent[:bits] | subnormal, exponent[bits:], self.top)
        )
        return depth

    def _align(self, m: Module, left: Signal, depth: Signal, aligned: data.View) -> None:
        """Shift to the code's place, and note whether a bit was lost below."""
        plan = self.plan
        width, bits = plan.aligned_bits, plan.shift_bits
        normal = Signal()
        subnormal = Signal()
        shift = Signal(bits)
        m.d.comb += [
            normal.eq(depth[-1] & ~self.vanishes),
            subnormal.eq(~depth[-1] & ~depth[bits:-1].any() & ~self.vanishes),
            shift.eq(Mux(depth[-1], ~Cat(left, C(0, bits - len(left))), depth[:bits])),
        ]

        # Left by 2**bits - 1 for a normal code or right by 1, then right by `shift`.
        number = Cat(self.fraction, self.nonzero)
        zero = len(number) - width  # where bit 0 of an aligned number comes from
        span = 1 << bits
        current = Signal(width + span - 1, name="placed")
        for i in range(len(current)):
            terms = [
                number[source] & enable
                for source, enable in ((zero + i + 1, subnormal), (zero + i + 1 - span, normal))
                if 0 <= source < len(number)
            ]
            m.d.comb += current[i].eq(Cat(terms).any())
        lost = [self.sticky, ~depth[-1] & number[: zero + 1].any()]

        for k in reversed(range(bits)):
            step = 1 << k
            shifted = Signal(width + step - 1, name=f"shifted_{step}")
            m.d.comb += shifted.eq(Mux(shift[k], current >> step, current))
            lost.append(shift[k] & current[:step].any())
            current = shifted
        m.d.comb += [aligned.number.eq(current), aligned.sticky.eq(Cat(lost).any())]

    def _round(self, m: Module, aligned: data.View) -> None:
        plan = self.plan
        selection = Selection(plan, aligned.select)
        number = [aligned.number[i] for i in range(plan.aligned_bits)]
        field = [aligned.field[i] for i in range(plan.field_bits)]
        if field:  # a number without a leading one has field 1, its code 0
            field[0] = field[0] & number[-1]

        # The code cut off, the bit below, and whether any further one is set.
        magnitude = Signal(plan.magnitude_bits)
        half = Signal()
        sticky = Signal()

        def bit(e: Encoding, i: int) -> Value | None:
            place = i - e.fraction_bits
            if place < 0 or (e.fmt.is_integer and place == 0):
                return number[plan.below(e) + 1 + i]
            return field[place] if place < e.field_bits else None

        lowest = max(plan.below(e) for e in plan.encodings)
        m.d.comb += [
            magnitude.eq(
                Cat(selection.bit(lambda e, i=i: bit(e, i)) for i in range(len(magnitude)))
            ),
            half.eq(selection.bit(lambda e: number[plan.below(e)])),
            sticky.eq(
                aligned.sticky
                | Cat(
                    number[i] & selection.where(lambda e, i=i: plan.below(e) > i)
                    for i in range(lowest)
                ).any()
            ),
        ]

        # At the largest code nothing is added. Where that is even, its successor is cut to it.
        largest = Signal()
        up = Signal()
        ones = selection.number(lambda e: e.largest_code)
        m.d.comb += [
            largest.eq((magnitude | ~ones).all()),
            up.eq(half & (sticky | magnitude[0]) & ~largest),
        ]
        cut = Cat(magnitude[0] & (ones[0] | ~largest), magnitude[1:])

        # A negative integer is -(x + up) = ~x + (1 - up).
        negative = Signal()
        code = Signal(plan.magnitude_bits + 1)
        m.d.comb += [
            negative.eq(aligned.sign & selection.where(lambda e: e.fmt.is_integer)),
            code.eq(Cat(cut ^ negative.replicate(len(cut)), negative) + (up ^ negative)),
            self.code.eq(
                code
                | Cat(
                    aligned.sign
                    & selection.where(lambda e, i=i: not e.fmt.is_integer and e.magnitude_bits == i)
                    for i in range(plan.code_bits)
                )
            ),
        ]


def _leading_zeros(bits: list[Value]) -> list[Value]:
    """Digits of the number of zeros before the first one; an implied one follows the bits."""
    if len(bits) == 1:
        return [~bits[0]]
    half = (len(bits) + 1) // 2
    empty = ~Cat(bits[:half]).any()
    first, second = _leading_zeros(bits[: half - 1]), _leading_zeros(bits[half:])
    return [*(Mux(empty, b, a) for a, b in zip(first, second, strict=True)), empty]
