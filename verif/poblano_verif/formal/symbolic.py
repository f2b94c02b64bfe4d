"""Values that the solver chooses."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Assume, Module, ResetSignal, Signal
from amaranth.hdl._ast import AnyConst, AnySeq

__all__ = ["any_constant", "any_value", "new_module"]


def new_module() -> Module:
    """Return a module whose registers begin at their initial values, and that is never reset."""
    m = Module()
    m.d.comb += Assume(~ResetSignal())
    return m


def any_value(m: Module, shape: Any, name: str) -> Signal:
    """Return a signal that may have another value in every cycle."""
    signal = Signal(shape, name=name)
    m.d.comb += signal.eq(AnySeq(shape))
    return signal


def any_constant(m: Module, shape: Any, name: str) -> Signal:
    """Return a signal that has one value for ever."""
    signal = Signal(shape, name=name)
    m.d.comb += signal.eq(AnyConst(shape))
    return signal
