"""The clock and the reset of a block under test, and the numbering of its cycles."""

from __future__ import annotations

from typing import Any

from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from cocotb.utils import get_sim_time

__all__ = ["PERIOD", "ClockDomain"]

PERIOD = 1000
"""Clock period in simulation steps, if nothing else is said."""


class ClockDomain:
    """Drives clock and reset; a block without a clock is sampled at the same times.

    Cycle n begins with the n-th rising edge after `start`, counting from 0. If a run holds one
    test, that is the number that `poblano waves` shows.

    Parameters
    ----------
    clock, reset:
        Handles of the ports, or None for a block without.
    period:
        Simulation steps of a cycle, an even number.
    """

    def __init__(self, clock: Any | None, reset: Any | None, period: int = PERIOD) -> None:
        self._clock = clock
        self._reset = reset
        self.period = period
        self._first_edge = 0

    def start(self) -> None:
        """Start the clock with its low half; the first rising edge follows half a period later."""
        self._first_edge = get_sim_time("step") + self.period // 2
        if self._clock is not None:
            Clock(self._clock, self.period, unit="step").start(start_high=False)

    @property
    def cycle(self) -> int:
        """The number of the cycle that began last; -1 before the first."""
        return (get_sim_time("step") - self._first_edge) // self.period

    async def edge(self) -> None:
        """Wait for the next rising edge; what is read then is what registers see at it."""
        if self._clock is not None:
            await RisingEdge(self._clock)
        else:
            await Timer(self.period - self._phase(), "step")

    async def edges(self, count: int) -> None:
        """Wait for `count` rising edges, at least one; the testbench sleeps in between."""
        if count > 1:
            # up to the middle of the last cycle, so that it does not matter which of the timer
            # and the edge comes first
            await Timer(count * self.period - self._phase() - self.period // 2, "step")
        await self.edge()

    def _phase(self) -> int:
        """Return the steps since the last rising edge, or since when there would have been one."""
        return (get_sim_time("step") - self._first_edge) % self.period

    async def reset(self, cycles: int = 2) -> None:
        """Hold the reset over `cycles` rising edges, and release it after the last of them."""
        if self._reset is not None:
            self._reset.value = 1
        await self.edges(cycles)
        if self._reset is not None:
            self._reset.value = 0
