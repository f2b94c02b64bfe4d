"""The in-order queue of one engine."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, fifo, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component
from poblano.control.synchronisation import request_layout, requests
from poblano.engine import fault_layout
from poblano.faults import Fault

__all__ = ["IN_FLIGHT", "CommandQueue"]

IN_FLIGHT = 16
"""Commands that an engine may have accepted and not completed."""


class CommandQueue(Component):
    """Holds command words in order, issues each when its semaphores allow, signals when it is done.

    The first word is issued in the first cycle in which the engine accepts it, its wait is
    granted, and fewer than `IN_FLIGHT` commands are on their way. What it signals is added in the
    cycle in which the engine says that it is done.

    Parameters
    ----------
    depth:
        Words that it holds.
    semaphores:
        Semaphores that exist.

    Members
    -------
    words:
        Command words to be queued.
    enable:
        Words are issued only while it is 1.
    command, done:
        Of the engine.
    wait, wait_valid, granted, missing, signal, signal_valid:
        Of the semaphores.
    patience:
        Cycles that a word may wait for its semaphores, 0 for any number.
    issued, completed:
        Commands since reset.
    issues, busy:
        A command is issued in this cycle; one is on its way.
    empty:
        No word is queued, and no command on its way.
    fault:
        SEMAPHORE for a word that names a semaphore that does not exist or waits for one twice;
        WAIT for one that waited too long. The queue then issues nothing more.
    """

    def __init__(self, *, depth: int, semaphores: int) -> None:
        self.depth = depth
        self.semaphores = semaphores
        super().__init__(
            {
                "words": In(stream.Signature(8 * WORD_BYTES)),
                "enable": In(1),
                "command": Out(stream.Signature(8 * WORD_BYTES)),
                "done": In(1),
                "wait": Out(request_layout()),
                "wait_valid": Out(1),
                "granted": In(1),
                "missing": In(request_layout()["a"].shape),
                "signal": Out(request_layout()),
                "signal_valid": Out(1),
                "patience": In(32),
                "issued": Out(32),
                "completed": Out(32),
                "issues": Out(1),
                "busy": Out(1),
                "empty": Out(1),
                "fault": Out(fault_layout()),
            }
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        m.submodules.queue = queue = fifo.SyncFIFOBuffered(width=8 * WORD_BYTES, depth=self.depth)
        wait, signal = (data.View(request_layout(), part) for part in requests(queue.r_data))
        stopped = Signal()
        offers = Signal()
        room = Signal()
        illegal = Signal()
        wrong = Signal.like(self.missing)
        self._check(m, wait, signal, illegal, wrong)
        m.d.comb += [
            queue.w_data.eq(self.words.payload),
            queue.w_en.eq(self.words.valid),
            self.words.ready.eq(queue.w_rdy),
            stopped.eq(self.fault.kind != Fault.NONE),
            offers.eq(queue.r_rdy & self.enable & ~stopped & ~illegal),
            self.command.payload.eq(queue.r_data),
            self.command.valid.eq(offers & room & self.granted),
            self.wait.eq(wait),
            self.wait_valid.eq(offers & room & self.command.ready),
            self.issues.eq(self.command.valid & self.command.ready),
            queue.r_en.eq(self.issues),
        ]

        m.submodules.on_way = on_way = fifo.SyncFIFO(width=request_layout().size, depth=IN_FLIGHT)
        m.d.comb += [
            on_way.w_data.eq(signal),
            on_way.w_en.eq(self.issues),
            room.eq(on_way.w_rdy),
            on_way.r_en.eq(self.done),
            self.signal.eq(on_way.r_data),
            self.signal_valid.eq(self.done),
            self.busy.eq(on_way.r_rdy),
            self.empty.eq((queue.level == 0) & ~self.busy),
        ]
        m.d.sync += [
            self.issued.eq(self.issued + self.issues),
            self.completed.eq(self.completed + self.done),
        ]

        waited = Signal(32)
        waits = Signal()
        m.d.comb += waits.eq(offers & ~self.granted & self.command.ready & room)
        m.d.sync += waited.eq(Mux(waits, waited + 1, 0))
        with m.If(~stopped):
            with m.If(queue.r_rdy & illegal):
                m.d.sync += [
                    self.fault.kind.eq(Fault.SEMAPHORE),
                    self.fault.field.eq(wrong),
                    self.fault.number.eq(self.issued),
                ]
            with m.Elif(waits & (self.patience != 0) & (waited >= self.patience)):
                m.d.sync += [
                    self.fault.kind.eq(Fault.WAIT),
                    self.fault.field.eq(self.missing),
                    self.fault.number.eq(self.issued),
                ]
        return m

    def _check(self, m: Module, wait, signal, illegal: Signal, wrong: Signal) -> None:
        """Say whether a semaphore of the first word does not exist or is waited for twice."""
        for request in (wait, signal):
            for half in ("a", "b"):
                absent = (request[f"{half}_count"] != 0) & (request[half] >= self.semaphores)
                with m.If(absent):
                    m.d.comb += [illegal.eq(1), wrong.eq(request[half])]
        with m.If((wait.a_count != 0) & (wait.b_count != 0) & (wait.a == wait.b)):
            m.d.comb += [illegal.eq(1), wrong.eq(wait.a)]
