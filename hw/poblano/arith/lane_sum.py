"""Products of a beat's lanes, and their exact sum, for units with 8-bit formats."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data

from poblano.arith.datapath import carry_save, delayed
from poblano.arith.lanes import NIBBLE, LanePlan
from poblano.arith.modes import LANES

__all__ = ["lane_sum"]

_GROUPS = 4
"""Lanes 4j, 4j + 1, 4j + 2 and 4j + 3 differ in the weight of what they multiply."""
_PRODUCT = 2 * NIBBLE


def lane_sum(
    m: Module,
    plan: LanePlan,
    a: data.View,
    b: data.View,
    mode: Value,
    stages: int,
    held: Value,
) -> Value:
    """Return `held` plus the sum of a beat's products, a signed number of `plan.sum_width` bits.

    Lanes that need no shifter of their own are summed before the register, which is smaller
    than their products; their sum's weight follows from the mode.

    Parameters
    ----------
    plan:
        The unit's formats.
    a, b:
        The operands.
    mode:
        The mode's number in the cycle after the registers.
    stages:
        Registers between products and shifters.
    held:
        The sum of the block's earlier beats, in the cycle after the registers.
    """
    width = plan.sum_width
    sign = Signal(LANES)
    m.d.comb += sign.eq(a.sign ^ b.sign)
    products = []
    for lane in range(LANES):
        product = Signal(_PRODUCT, name=f"product_{lane}")
        m.d.comb += product.eq(a.magnitude[lane] * b.magnitude[lane])
        products.append(product)

    rows: list[Value] = [held]
    ones: list[Value] = []
    constant = 0
    for group in range(_GROUPS):
        lanes = range(group, LANES, _GROUPS)
        if not plan.uses_group(group):
            continue
        if plan.has_shifters and group % 2 == 0:
            for lane in lanes:
                row, negative = _shifted(m, plan, a, b, lane, products[lane], sign[lane], stages)
                # -x is the complement of x, plus 1; with the sign's own weight that is
                # row + not(sign) * 2**n + sign - 2**n
                rows.append(Cat(row, ~negative))
                ones.append(negative)
                constant -= 1 << len(row)
        else:
            total = _grouped(
                m, [products[lane] for lane in lanes], [sign[lane] for lane in lanes], group
            )
            weighted = _weighted(m, plan, delayed(m, total, stages, f"group_{group}"), mode, group)
            rows.append(Cat(weighted[:-1], ~weighted[-1]))
            constant -= 1 << (len(weighted) - 1)
    rows.append(C(constant % (1 << width), width))
    return carry_save(m, rows, ones, width, "beat").as_signed()


def _shifted(
    m: Module,
    plan: LanePlan,
    a: data.View,
    b: data.View,
    lane: int,
    product: Value,
    sign: Value,
    stages: int,
) -> tuple[Signal, Value]:
    """Return a product raised by both sides' shifts, complemented if negative, and its sign."""
    largest = plan.product_shift(lane)
    both = Signal(largest.bit_length(), name=f"shift_{lane}")
    ours, theirs = a.shift[lane // 2], b.shift[lane // 2]
    m.d.comb += both.eq(ours + theirs if plan.shifts_add(lane) else ours | theirs)
    product = delayed(m, product, stages, f"product_{lane}")
    both = delayed(m, both, stages, f"shift_{lane}")
    sign = delayed(m, sign, stages, f"sign_{lane}")
    raised = Signal(_PRODUCT + largest, name=f"raised_{lane}")
    row = Signal(_PRODUCT + largest, name=f"row_{lane}")
    m.d.comb += [
        raised.eq(product << both),
        row.eq(raised ^ sign.replicate(len(row))),
    ]
    return row, sign


def _grouped(m: Module, products: list[Value], signs: list[Value], group: int) -> Value:
    """Return the signed sum of products of equal weight."""
    width = (len(products) * ((1 << NIBBLE) - 1) ** 2).bit_length() + 1
    rows: list[Value] = []
    for index, (product, sign) in enumerate(zip(products, signs, strict=True)):
        row = Signal(_PRODUCT + 1, name=f"group_{group}_row_{index}")
        m.d.comb += row.eq(Cat(product ^ sign.replicate(_PRODUCT), ~sign))
        rows.append(row)
    rows.append(C(-(len(rows) << _PRODUCT) % (1 << width), width))
    return carry_save(m, rows, signs, width, f"group_{group}").as_signed()


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
