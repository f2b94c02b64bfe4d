"""Evaluates functions given as tables of quadratics.

The hardware of `poblano_golden.table_polynomial`, bit for bit.
"""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import checked_stages, delayed
from poblano.component import Component
from poblano_golden.table_polynomial import EXP2, FRACTION_BITS, RECIPROCAL, RECIPROCAL_SQRT

__all__ = ["TABLES", "TableEvaluator"]

TABLES = {table.name: table for table in (EXP2, RECIPROCAL, RECIPROCAL_SQRT)}
"""Every table by name."""


class TableEvaluator(Component):
    """Evaluates one of several piecewise quadratic functions of [0, 1), all rising or all falling.

    Latency `slope_stages`, one result a cycle, no backpressure. The functions share two
    multipliers.

    Parameters
    ----------
    tables:
        Names of the functions, with intervals of equal length.
    slope_stages:
        Registers between the multipliers, 0 or 1.

    Members
    -------
    select:
        Index of the function into `tables`; exists if there are several.
    argument:
        The argument, with 27 bits below the point.
    result:
        The function, in [1, 2], with 27 bits below the point; the least may be 2**-27 below 1.

    Raises
    ------
    ValueError
        If there is no table, one is unknown, they differ in direction or intervals, or
        `slope_stages` is not 0 or 1.
    """

    def __init__(self, *, tables: tuple[str, ...], slope_stages: int = 0) -> None:
        unknown = [name for name in tables if name not in TABLES]
        if unknown or not tables:
            wrong = repr(unknown[0]) if unknown else "none"
            raise ValueError(f"tables must be some of {', '.join(TABLES)}, not {wrong}")
        self.tables = [TABLES[name] for name in tables]
        if len({(table.falls, table.index_bits, table.square_bits) for table in self.tables}) > 1:
            raise ValueError(f"tables must be alike in direction and intervals, not {tables}")
        self.slope_stages = checked_stages("slope_stages", slope_stages, 1)
        select = {"select": In(range(len(tables)))} if len(tables) > 1 else {}
        super().__init__(
            {**select, "argument": In(FRACTION_BITS), "result": Out(FRACTION_BITS + 2)}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first = self.tables[0]
        place = self.argument[: first.place_bits]
        c0, c1, c2 = self._look_up(m)
        square_bits = first.square_bits
        square = Signal(len(c2) + square_bits)
        rows = [row for table in self.tables for row in table.coefficients]
        slope = Signal(range(max(c1 if first.falls else c1 + c2 for _, c1, c2 in rows) + 1))
        m.d.comb += square.eq(c2 * place[-square_bits:])
        bent = square[square_bits:]
        m.d.comb += slope.eq(c1 - bent if first.falls else c1 + bent)

        c0, slope, place = (
            delayed(m, value, self.slope_stages, name)
            for value, name in ((c0, "c0_held"), (slope, "slope_held"), (place, "place_held"))
        )
        change = Signal(len(slope) + len(place))
        total = Signal(len(c0) + len(place))
        start = Cat(C(0, len(place)), c0)
        m.d.comb += [
            change.eq(slope * place),
            total.eq(start - change if first.falls else start + change),
            self.result.eq(total[len(place) :]),
        ]
        return m

    def _look_up(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """Return the coefficients of the argument's interval."""
        widths = [max(column) for column in zip(*(t.widths for t in self.tables), strict=True)]
        c0, c1, c2 = (Signal(width, name=f"c{n}") for n, width in enumerate(widths))
        word = Signal(sum(widths), name="coefficients")
        index = self.argument[self.tables[0].place_bits :]
        many = len(self.tables) > 1
        with m.Switch(Cat(index, self.select) if many else index):
            for number, table in enumerate(self.tables):
                for row, values in enumerate(table.coefficients):
                    packed = values[0] | values[1] << widths[0] | values[2] << sum(widths[:2])
                    with m.Case(row | number << table.index_bits):
                        m.d.comb += word.eq(packed)
        m.d.comb += Cat(c0, c1, c2).eq(word)
        return c0, c1, c2
