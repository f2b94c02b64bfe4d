"""Keeps the first fault of a slice."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.engine import NUMBER_WIDTH, fault_layout
from poblano.faults import Fault

__all__ = ["NO_QUEUE", "FaultRegister"]

NO_QUEUE = 255
"""The queue of a fault that is no queue's."""


class FaultRegister(Component):
    """Takes the first fault of engines, queues, rings and semaphores, and says whose it is.

    Of faults in one cycle the queue with the lowest number is taken, its engine first.

    Parameters
    ----------
    queues:
        Queues.

    Members
    -------
    engine_Q, queue_Q, ring_Q:
        Faults of queue Q: of its engine, of itself, and of fetching its words.
    completed_Q:
        Commands of queue Q completed since reset.
    overflow, overflowing:
        Of the semaphores.
    fault, queue_number:
        The first fault since reset, and its queue; `NO_QUEUE` for an overflow.
    number:
        The command, counted from 0.
    """

    def __init__(self, *, queues: int) -> None:
        self.queues = queues
        members = {
            "overflow": In(1),
            "overflowing": In(8),
            "fault": Out(fault_layout()),
            "queue_number": Out(8),
            "number": Out(32),
        }
        for index in range(queues):
            for kind in ("engine", "queue", "ring"):
                members[f"{kind}_{index}"] = In(fault_layout())
            members[f"completed_{index}"] = In(32)
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        with m.If((self.fault.kind == Fault.NONE) & self.overflow):
            m.d.sync += [
                self.fault.kind.eq(Fault.SEMAPHORE),
                self.fault.field.eq(self.overflowing),
                self.queue_number.eq(NO_QUEUE),
            ]
        for index in reversed(range(self.queues)):
            completed = getattr(self, f"completed_{index}")
            for source in ("ring", "queue", "engine"):
                fault = getattr(self, f"{source}_{index}")
                # a command with a fault is never complete
                ahead = (fault.number - completed)[:NUMBER_WIDTH]
                with m.If((self.fault.kind == Fault.NONE) & (fault.kind != Fault.NONE)):
                    m.d.sync += [
                        self.fault.eq(fault),
                        self.queue_number.eq(index),
                        self.number.eq(completed + ahead),
                    ]
        return m
