"""Elementary functions of binary32, pipelined.

The hardware of `poblano_golden.elementary`, bit for bit; algorithm and errors stand there.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.arith.datapath import delayed
from poblano.arith.fp32_fields import is_nan, is_zero
from poblano.component import Component, once
from poblano.vector.function_places import (
    FUNCTIONS,
    PARTS_PLACES,
    POWERS,
    ROOTS,
    register_places,
)
from poblano.vector.one_plus_power import one_plus_power
from poblano.vector.power_argument import (
    EXPONENT_WIDTH,
    PARTS_EXPONENT_WIDTH,
    power_argument,
)
from poblano.vector.root_argument import root_argument
from poblano.vector.significand_round import SignificandRound
from poblano.vector.table_evaluator import TableEvaluator
from poblano_golden.table_polynomial import FRACTION_BITS

__all__ = ["FUNCTIONS", "Elementary", "register_places"]


class Elementary(Component):
    """Computes one of several elementary functions of binary32 numbers.

    Within 1 ulp, subnormals kept. Latency `stages` cycles, the same for every function, one result
    a cycle, functions in any order, no backpressure. The functions share what they can: one
    evaluator of 2**f serves the exponentials and sigmoid, another the reciprocals and sigmoid.

    Parameters
    ----------
    functions:
        Some of `FUNCTIONS`; fewer make a smaller circuit.
    stages:
        Pipeline registers, at the first so many of `register_places(functions)`.
    parts:
        Whether the powers come out as `poblano_golden.elementary.power_parts` too.

    Members
    -------
    function:
        Index into `functions`, in range; exists if there are several.
    x:
        The argument.
    result:
        The function of it.
    power_fraction, power_exponent:
        If `parts`, the parts of 2**x, `parts_latency` cycles after an argument of `exp2`; the
        significand is 2**27 + the fraction.

    Raises
    ------
    ValueError
        If there is no function, one is unknown or named twice, there are not so many places
        for registers, or parts are wanted without `exp2`.
    """

    def __init__(self, *, functions: tuple[str, ...], stages: int = 0, parts: bool = False) -> None:
        if not functions or len({*functions} & {*FUNCTIONS}) != len(functions):
            names = ", ".join(functions) or "none"
            raise ValueError(
                f"functions must be different ones of {', '.join(FUNCTIONS)}, not {names}"
            )
        places = register_places(functions)
        if stages not in range(len(places) + 1):
            raise ValueError(f"stages must be 0 to {len(places)}, not {stages}")
        if parts and "exp2" not in functions:
            raise ValueError(f"parts need the function exp2, which is not in {functions}")
        self.functions = functions
        self.stages = stages
        self.parts = parts
        self._places = places[:stages]
        select = {"function": In(range(len(functions)))} if len(functions) > 1 else {}
        power = {
            "power_fraction": Out(FRACTION_BITS),
            "power_exponent": Out(signed(PARTS_EXPONENT_WIDTH)),
        }
        super().__init__({**select, "x": In(32), "result": Out(32), **(power if parts else {})})

    @property
    def latency(self) -> int:
        """Cycles from an argument to its result."""
        return self.stages

    @property
    def parts_latency(self) -> int:
        """Cycles from an argument to the parts of its power."""
        return sum(place in PARTS_PLACES for place in self._places)

    def elaborate(self, platform: Any) -> Module:
        # A fraction and an exponent travel from part to part. Powers leave the first table as a
        # significand's fraction; there the reciprocals' arguments join. Powers that are results
        # pass the second table by.
        m = Module()
        state = self._arguments(m)
        state = self._powers(m, platform, state)
        state = self._reciprocals(m, platform, state)
        rounding: Any = SignificandRound()
        m.submodules.rounding = once(rounding, platform)
        m.d.comb += [
            getattr(rounding, name).eq(state[name])
            for name in ("significand", "exponent", "sign", "nan")
        ]
        m.d.comb += self.result.eq(self._held(m, "result", {"result": rounding.result})["result"])
        return m

    def _held(self, m: Module, place: str, state: dict[str, Value]) -> dict[str, Value]:
        """Return the values behind the registers at a place, if there are some."""
        cycles = self._places.count(place)
        return {
            name: value
            if isinstance(value, Const)
            else delayed(m, value, cycles, f"{place}_{name}")
            for name, value in state.items()
        }

    def _chosen(self, m: Module, *names: str) -> Value:
        """Return whether the function is one of these; a constant where that is known."""
        wanted = [index for index, name in enumerate(self.functions) if name in names]
        if len(wanted) in (0, len(self.functions)):
            return C(bool(wanted), 1)
        chosen = Signal(name=f"is_{'_or_'.join(names)}")
        m.d.comb += chosen.eq(Cat(self.function == index for index in wanted).any())
        return chosen

    def _has(self, *names: str) -> bool:
        """Return whether there is one of these functions."""
        return not {*names}.isdisjoint(self.functions)

    def _arguments(self, m: Module) -> dict[str, Value]:
        """Take arguments apart into fraction and exponent."""
        sigmoid, roots = self._chosen(m, "sigmoid"), self._chosen(m, *ROOTS)
        root, scaled = self._chosen(m, "reciprocal_sqrt"), self._chosen(m, "exp", "sigmoid")
        nan, sign = Signal(), Signal()
        m.d.comb += [
            nan.eq(is_nan(self.x) | (root & self.x[31] & ~is_zero(self.x))),
            sign.eq(self.x[31] & roots),
        ]
        state = {"nan": nan, "sign": sign, "sigmoid": sigmoid, "roots": roots, "root": root}
        state = self._held(m, "product", state)
        power, other = (C(0), C(0)), (C(0), C(0))
        if self._has(*POWERS, "sigmoid"):
            stages = self._places.count("product")
            width = PARTS_EXPONENT_WIDTH if self.parts else EXPONENT_WIDTH
            power = power_argument(m, self.x, scaled, sigmoid, stages, width)
            if self.parts:
                state["power_exponent"] = power[1]
                power = power[0], _clamped(m, power[1])
        if self._has(*ROOTS):
            x = self._held(m, "product", {"x": self.x})["x"]
            other = root_argument(m, x, state["root"])
        for name, a, b in zip(("fraction", "exponent"), other, power, strict=True):
            state[name] = _mux(m, name, state["roots"], a, b)
        return self._held(m, "argument", state)

    def _powers(self, m: Module, platform: Any, state: dict[str, Value]) -> dict[str, Value]:
        """Replace the fraction by that of a power, and for sigmoid by that of 1 + the power."""
        if not self._has(*POWERS, "sigmoid"):
            return state
        stages = self._places.count("power_slope")
        table: Any = TableEvaluator(tables=("exp2",), slope_stages=stages)
        # a table with registers is no module of its own, so that an enable reaches them
        m.submodules.power_table = table if stages else once(table, platform)
        m.d.comb += table.argument.eq(state["fraction"])
        state = self._held(m, "power_slope", state)
        fraction = _mux(
            m, "power_fraction", state["roots"], state["fraction"], table.result[:FRACTION_BITS]
        )
        state = self._held(m, "power", {**state, "fraction": fraction})
        if self.parts:
            m.d.comb += [
                self.power_fraction.eq(state["fraction"]),
                self.power_exponent.eq(state.pop("power_exponent")),
            ]
        if self._has("sigmoid"):
            sums = one_plus_power(m, state["fraction"], state["exponent"])
            for name, value in zip(("fraction", "exponent"), sums, strict=True):
                state[name] = _mux(m, f"sum_{name}", state["sigmoid"], value, state[name])
        return self._held(m, "fraction", state)

    def _reciprocals(self, m: Module, platform: Any, state: dict[str, Value]) -> dict[str, Value]:
        """Add the significand of the result."""
        power = Cat(state["fraction"], C(1, 2))
        if not self._has("sigmoid", *ROOTS):
            return self._held(m, "significand", {**state, "significand": power})
        users = {"reciprocal": ("reciprocal", "sigmoid"), "reciprocal_sqrt": ("reciprocal_sqrt",)}
        tables = tuple(name for name, functions in users.items() if self._has(*functions))
        stages = self._places.count("slope")
        table: Any = TableEvaluator(tables=tables, slope_stages=stages)
        m.submodules.reciprocal_table = table if stages else once(table, platform)
        m.d.comb += table.argument.eq(state["fraction"])
        if len(tables) > 1:
            m.d.comb += table.select.eq(state["root"])
        state = self._held(m, "slope", {**state, "power": power})
        has_powers = self._has(*POWERS)
        pick = state["roots"] | state["sigmoid"] if has_powers else C(1, 1)
        significand = _mux(m, "significand", pick, table.result, state["power"])
        return self._held(m, "significand", {**state, "significand": significand})


def _clamped(m: Module, exponent: Value) -> Signal:
    """Return the nearest exponent of `EXPONENT_WIDTH` bits: beyond, all is infinite or zero."""
    result = Signal(signed(EXPONENT_WIDTH), name="clamped")
    above = exponent[EXPONENT_WIDTH - 1 :]
    fits = above.all() | ~above.any()
    sign = exponent[-1]
    m.d.comb += result.eq(
        Mux(fits, exponent, Cat((~sign).replicate(EXPONENT_WIDTH - 1), sign).as_signed())
    )
    return result


def _mux(m: Module, name: str, select: Value, a: Value, b: Value) -> Value:
    """Return a where `select`, otherwise b; without a choice where `select` is a constant."""
    if isinstance(select, Const):
        return a if select.value else b
    result = Signal.like(b, name=name)
    m.d.comb += result.eq(Mux(select, a, b))
    return result
