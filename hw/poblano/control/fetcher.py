"""Fetches command words from the rings in L1 into the queues."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from poblano.commands import ADDRESS_WIDTH, WORD_BYTES
from poblano.component import Component
from poblano.config import L1Configuration
from poblano.engine import fault_layout
from poblano.faults import Fault
from poblano.host.registers import POINTER_WIDTH
from poblano.l1.scratchpad import index_width

__all__ = ["CommandFetcher", "ring_layout"]

_WORD_ZEROS = (WORD_BYTES - 1).bit_length()


def ring_layout() -> data.StructLayout:
    """Return a ring: its base in words, the logarithm of its words, and how many are published."""
    return data.StructLayout(
        {"base": ADDRESS_WIDTH - _WORD_ZEROS, "size_log2": 4, "tail": POINTER_WIDTH}
    )


class CommandFetcher(Component):
    """Reads published words of every queue's ring, one queue after the other.

    Word n of a queue lies at `base + n % 2**size_log2`. A word takes three cycles where L1 does
    not make it wait, so that the engines, whose commands take longer, never starve.

    Parameters
    ----------
    l1:
        The scratchpad.
    queues:
        Queues.

    Members
    -------
    enable:
        Words are fetched only while it is 1.
    ring_Q, fetched_Q:
        The ring of queue Q, and how many of its words have been fetched, modulo 65,536.
    words_Q:
        The words of queue Q.
    coming_Q:
        A word of queue Q was chosen and is delivered in this cycle or later, whatever the queue
        then says: its room must stay.
    idle_Q:
        Every published word of queue Q has been fetched.
    read, read_data:
        A client of L1.
    fault_Q:
        ADDRESS if the next word of queue Q lies outside L1. None of that queue is fetched then.
    """

    def __init__(self, *, l1: L1Configuration, queues: int) -> None:
        self.line = l1.line
        self.lines = l1.size // l1.line
        self.queues = queues
        members = {
            "enable": In(1),
            "read": Out(stream.Signature(index_width(self.lines))),
            "read_data": In(8 * l1.line),
        }
        for queue in range(queues):
            members |= {
                f"ring_{queue}": In(ring_layout()),
                f"fetched_{queue}": Out(POINTER_WIDTH),
                f"words_{queue}": Out(stream.Signature(8 * WORD_BYTES)),
                f"coming_{queue}": Out(1),
                f"idle_{queue}": Out(1),
                f"fault_{queue}": Out(fault_layout()),
            }
        super().__init__(members)

    def elaborate(self, platform) -> Module:
        m = Module()
        wants = Signal(self.queues)
        places = [self._place(m, queue, wants) for queue in range(self.queues)]

        turn = Signal(range(max(2, self.queues)))
        place = Signal(ADDRESS_WIDTH - _WORD_ZEROS)
        m.d.comb += place.eq(Array(places)[turn])
        words_a_line = self.line // WORD_BYTES
        line_zeros = (words_a_line - 1).bit_length()
        column = Signal(max(1, line_zeros))
        word = Signal(8 * WORD_BYTES)
        m.d.comb += [
            self.read.payload.eq(place >> line_zeros),
            word.eq(self.read_data.word_select(column, 8 * WORD_BYTES)),
        ]
        chosen = Signal()
        for queue in range(self.queues):
            m.d.comb += [
                getattr(self, f"words_{queue}").payload.eq(word),
                getattr(self, f"coming_{queue}").eq(chosen & (turn == queue)),
            ]

        with m.FSM():
            with m.State("Choose"):
                # the next queue after this one that wants a word; itself if no other does
                for distance in reversed(range(1, self.queues + 1)):
                    for current in range(self.queues):
                        queue = (current + distance) % self.queues
                        with m.If((turn == current) & wants[queue]):
                            m.d.sync += turn.eq(queue)
                with m.If(wants.any()):
                    m.next = "Read"
            with m.State("Read"):
                m.d.comb += [self.read.valid.eq(1), chosen.eq(1)]
                m.d.sync += column.eq(place[:line_zeros] if line_zeros else 0)
                with m.If(self.read.ready):
                    m.next = "Deliver"
            with m.State("Deliver"):
                m.d.comb += chosen.eq(1)
                with m.Switch(turn):
                    for queue in range(self.queues):
                        with m.Case(queue):
                            fetched = getattr(self, f"fetched_{queue}")
                            m.d.comb += getattr(self, f"words_{queue}").valid.eq(1)
                            m.d.sync += fetched.eq(fetched + 1)
                m.next = "Choose"
        return m

    def _place(self, m: Module, queue: int, wants: Signal) -> Signal:
        """Return the place of the next word of a queue, in words; say whether it is wanted."""
        ring = getattr(self, f"ring_{queue}")
        fetched = getattr(self, f"fetched_{queue}")
        fault = getattr(self, f"fault_{queue}")
        idle = getattr(self, f"idle_{queue}")
        place = Signal(ADDRESS_WIDTH - _WORD_ZEROS, name=f"place_{queue}")
        offset = Signal(POINTER_WIDTH, name=f"offset_{queue}")
        outside = Signal(name=f"outside_{queue}")
        wanted = Signal(name=f"wanted_{queue}")
        full_place = Signal(len(place) + 1, name=f"full_place_{queue}")
        m.d.comb += [
            idle.eq(fetched == ring.tail),
            offset.eq(fetched & ((1 << ring.size_log2) - 1)),
            full_place.eq(ring.base + offset),
            place.eq(full_place),
            outside.eq(full_place >= self.lines * self.line // WORD_BYTES),
            wanted.eq(
                self.enable
                & ~idle
                & getattr(self, f"words_{queue}").ready
                & (fault.kind == Fault.NONE)
            ),
            wants[queue].eq(wanted & ~outside),
        ]
        with m.If(wanted & outside):
            m.d.sync += [
                fault.kind.eq(Fault.ADDRESS),
                fault.address.eq(place << _WORD_ZEROS),
                fault.number.eq(fetched),
            ]
        return place
