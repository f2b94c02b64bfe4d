"""Products of a beat's lanes, and their exact sum, for units with 8-bit formats."""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import *
from amaranth.lib import data

from poblano.arith.datapath import carry_save
from poblano.arith.lanes import NIBBLE, LanePlan
from poblano.arith.modes import LANES

__all__ = ["lane_sum"]

_GROUPS = 4
"""Lanes 4j, 4j + 1, 4j + 2 and 4j + 3 differ in the weight of what they multiply."""
_PRODUCT = 2 * NIBBLE


def lane_sum(
    m: Module, plan: LanePlan, a: data.View, b: data.View, mode: Value
) -> tuple[Value, Value]:
    """Return two words whose sum, modulo 2**plan.sum_width, is that of a beat's products.

    In units of the mode's lsb. Two words rather than one: carries need not be propagated before
    a register.

    A product that has a shifter of its own is one term of the sum. The others are summed by
    group first, and the group's sum takes the weight that its lanes have in the mode.

    Parameters
    ----------
    plan:
        The unit's formats.
    a, b, mode:
        The operands and their mode's number.
    """
    width = plan.sum_width
    sign = Signal(LANES)
    m.d.comb += sign.eq(a.sign ^ b.sign)
    products: list[Value] = []
    for lane in range(LANES):
        product = Signal(_PRODUCT, name=f"product_{lane}")
        multiply = _narrow_product if lane % 2 else _full_product
        m.d.comb += product.eq(multiply(a.magnitude[lane], b.magnitude[lane]))
        products.append(product)

    terms: list[tuple[Value, Value]] = []
    sums: list[Value] = []
    for group in filter(plan.uses_group, range(_GROUPS)):
        lanes = range(group, LANES, _GROUPS)
        if plan.has_shifters and group % 2 == 0:
            terms += [(_raised(m, plan, a, b, lane, products[lane]), sign[lane]) for lane in lanes]
        else:
            most = (len(lanes) * ((1 << NIBBLE) - 1) ** 2).bit_length() + 1
            group_terms = [(products[lane], sign[lane]) for lane in lanes]
            rows = _unsigned(m, group_terms, [], most, f"group_{group}")
            total = Signal(signed(most), name=f"group_{group}")
            m.d.comb += total.eq(sum(rows[1:], rows[0]))
            sums.append(_weighted(m, plan, total, mode, group))
    return carry_save(m, _unsigned(m, terms, sums, width, "beat"), "beat")


def _full_product(a: Value, b: Value) -> Value:
    return a * b


def _narrow_product(a: Value, b: Value) -> Value:
    """Multiply by what side a has on odd lanes: 0 to 8, or 12.

    It is an FP4 magnitude or the high nibble of an integer's. So bit 3 never meets bits 0 and 1,
    and their partial products need no adder between them.
    """
    low = Mux(a[0], b, 0) + Mux(a[1], b << 1, 0)
    return (low | Mux(a[3], b << 3, 0)) + Mux(a[2], b << 2, 0)


def _raised(
    m: Module, plan: LanePlan, a: data.View, b: data.View, lane: int, product: Value
) -> Signal:
    """Return a product raised by the shifts of both sides."""
    largest = plan.product_shift(lane)
    shift = Signal(largest.bit_length(), name=f"shift_{lane}")
    ours, theirs = a.shift[lane // 2], b.shift[lane // 2]
    raised = Signal(_PRODUCT + largest, name=f"raised_{lane}")
    m.d.comb += [
        shift.eq(ours + theirs if plan.shifts_add(lane) else ours | theirs),
        raised.eq(product << shift),
    ]
    return raised


def _weighted(m: Module, plan: LanePlan, total: Value, mode: Value, group: int) -> Value:
    """Return a group's sum times what its lanes weigh in the mode."""
    weights: dict[int, list[int]] = {}
    for number, each in enumerate(plan.modes):
        weights.setdefault(plan.group_weight(each, group), []).append(number)
    weighted = Signal(signed(len(total) + max(weights)), name=f"weighted_{group}")
    with m.Switch(mode):
        for weight, numbers in weights.items():
            with m.Case(*numbers):
                m.d.comb += weighted.eq(total << weight)
    return weighted


def _unsigned(
    m: Module,
    magnitudes: Sequence[tuple[Value, Value]],
    numbers: Sequence[Value],
    width: int,
    name: str,
) -> list[Value]:
    """Return unsigned words and bits with the sum of magnitudes with signs and of numbers.

    Modulo 2**width. A negative magnitude x of n bits is its complement, plus 1, less 2**n. The
    sign of every term is inverted, which turns all that is to be taken off into one constant.
    """
    words: list[Value] = []
    constant = 0
    for index, (magnitude, sign) in enumerate(magnitudes):
        word = Signal(len(magnitude) + 1, name=f"{name}_word_{index}")
        m.d.comb += word.eq(Cat(magnitude ^ sign.replicate(len(magnitude)), ~sign))
        words += [word[:width], sign]
        constant -= 1 << len(magnitude)
    for number in numbers:
        words.append(Cat(number[:-1], ~number[-1])[:width])
        constant -= 1 << (len(number) - 1)
    return [*words, C(constant % (1 << width), width)]
