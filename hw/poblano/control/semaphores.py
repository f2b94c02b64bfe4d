"""The counting semaphores of a slice."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.control.synchronisation import VALUE_WIDTH, request_layout

__all__ = ["Semaphores"]


class Semaphores(Component):
    """Counters that commands wait for and signal.

    Every signal of a cycle is added, whatever else happens in it. A wait is granted in the cycle
    in which it is asked for if both its semaphores hold what it takes; of several waits that
    could be granted, the queue with the lowest number is. A wait for nothing is always granted.
    Values are those of the cycle's beginning: a signal can be waited for from the next cycle.

    Parameters
    ----------
    count:
        Semaphores.
    queues:
        Queues that wait and signal.

    Members
    -------
    wait_Q, wait_valid_Q, granted_Q, missing_Q:
        What queue Q wants to take, whether it is taken now, and a semaphore that holds too little.
    signal_Q, signal_valid_Q:
        What queue Q adds.
    host_add, host_valid:
        What the host adds to every semaphore whose bit is valid.
    values:
        The values.
    overflow, overflowing:
        1 for a cycle in which a value grows past 65,535 and stays there, and which one it is.
    """

    def __init__(self, *, count: int, queues: int) -> None:
        self.count = count
        self.queues = queues
        members = {
            "host_add": In(VALUE_WIDTH),
            "host_valid": In(count),
            "values": Out(data.ArrayLayout(VALUE_WIDTH, count)),
            "overflow": Out(1),
            "overflowing": Out(range(max(2, count))),
        }
        for queue in range(queues):
            members |= {
                f"wait_{queue}": In(request_layout()),
                f"wait_valid_{queue}": In(1),
                f"granted_{queue}": Out(1),
                f"missing_{queue}": Out(request_layout()["a"].shape),
                f"signal_{queue}": In(request_layout()),
                f"signal_valid_{queue}": In(1),
            }
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        taken = self._grant(m)
        overflows = Signal(self.count)
        for index in range(self.count):
            value = self.values[index]
            more = Signal(VALUE_WIDTH + 4, name=f"more_{index}")
            less = Signal(VALUE_WIDTH, name=f"less_{index}")
            after = Signal(VALUE_WIDTH + 5, name=f"after_{index}")
            added = [
                Mux(
                    getattr(self, f"signal_valid_{queue}")
                    & (getattr(self, f"signal_{queue}")[half] == index),
                    getattr(self, f"signal_{queue}")[f"{half}_count"],
                    0,
                )
                for queue in range(self.queues)
                for half in ("a", "b")
            ]
            m.d.comb += [
                more.eq(sum(added, Mux(self.host_valid[index], self.host_add, 0))),
                less.eq(
                    Mux(taken.a == index, taken.a_count, 0)
                    | Mux(taken.b == index, taken.b_count, 0)
                ),
                after.eq(value + more - less),
                overflows[index].eq(after[VALUE_WIDTH:].any()),
            ]
            m.d.sync += value.eq(Mux(overflows[index], (1 << VALUE_WIDTH) - 1, after))
        m.d.comb += self.overflow.eq(overflows.any())
        for index in reversed(range(self.count)):
            with m.If(overflows[index]):
                m.d.comb += self.overflowing.eq(index)
        return m

    def _grant(self, m: Module) -> data.View:
        """Grant at most one wait for something; return what is taken."""
        taken = Signal(request_layout())
        free = C(1)
        for queue in range(self.queues):
            wait = getattr(self, f"wait_{queue}")
            valid = getattr(self, f"wait_valid_{queue}")
            nothing = Signal(name=f"nothing_{queue}")
            holds = Signal(name=f"holds_{queue}")
            takes = Signal(name=f"takes_{queue}")
            holds_a = Signal(name=f"holds_a_{queue}")
            m.d.comb += [
                nothing.eq((wait.a_count == 0) & (wait.b_count == 0)),
                holds_a.eq(self._holds(wait, "a")),
                holds.eq(holds_a & self._holds(wait, "b")),
                getattr(self, f"missing_{queue}").eq(Mux(holds_a, wait.b, wait.a)),
                takes.eq(valid & ~nothing & holds & free),
                getattr(self, f"granted_{queue}").eq(nothing | takes),
            ]
            with m.If(takes):
                m.d.comb += taken.eq(wait)
            blocked = Signal(name=f"free_{queue}")
            m.d.comb += blocked.eq(free & ~takes)
            free = blocked
        return taken

    def _holds(self, wait, half: str) -> Value:
        """Whether a semaphore holds what is to be taken from it."""
        return Array(self.values)[wait[half]] >= wait[f"{half}_count"]
