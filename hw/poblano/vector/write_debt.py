"""Holds beats back while the writes that earlier ones cause are not made."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import *
from amaranth.lib.wiring import In, Out

from poblano.component import Component
from poblano.vector.job import Reduction, Store, chain_layout
from poblano.vector.timing import DEBT_LIMIT
from poblano_golden.formats import BLOCK_SIZE

__all__ = ["WriteDebt"]


class WriteDebt(Component):
    """Counts the writes that emitted beats cause; one is made in each cycle.

    A beat of wide results takes one write, or two if places may straddle lines; a block takes two
    or three; a row's reduction takes one a word.

    Parameters
    ----------
    lanes:
        Elements of a beat, a power of two.

    Members
    -------
    chain, topk, straddles:
        What the pass writes.
    emits, count, last:
        A beat is emitted, its elements if that may be several blocks, and whether it is the last
        of its row.
    room:
        So few writes are owed that a beat may be emitted.
    """

    def __init__(self, *, lanes: int) -> None:
        self.lanes = lanes
        self.has_count = lanes >= BLOCK_SIZE
        super().__init__(
            {
                "chain": In(chain_layout()),
                "topk": In(1),
                "straddles": In(1),
                "emits": In(1),
                **({"count": In(range(lanes + 1))} if self.has_count else {}),
                "last": In(1),
                "room": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        blocks_of_beat = max(1, self.lanes // BLOCK_SIZE)
        most = DEBT_LIMIT + 3 * blocks_of_beat + 2
        debt, stored = Signal(range(most + 1)), Signal(range(most + 1))
        blocks, reduced = self._blocks(m, blocks_of_beat), Signal(2)
        reduction = self.chain.reduction
        with m.If(self.topk):
            m.d.comb += reduced.eq(2)
        with m.Else():
            m.d.comb += reduced.eq(
                Mux(reduction == Reduction.SOFTMAX, 2, reduction != Reduction.NONE)
            )
            with m.Switch(self.chain.store):
                with m.Case(Store.WIDE):
                    m.d.comb += stored.eq(1 + self.straddles)
                with m.Case(Store.MX):
                    m.d.comb += stored.eq(blocks * Mux(self.straddles, 3, 2))
        writes = stored + Mux(self.last, reduced, 0)
        m.d.sync += debt.eq(debt - debt.any() + Mux(self.emits, writes, 0))
        m.d.comb += self.room.eq(debt <= DEBT_LIMIT)
        return m

    def _blocks(self, m: Module, most: int) -> Value:
        """Return how many blocks the beat completes."""
        blocks = Signal(range(most + 1))
        if self.has_count:
            m.d.comb += blocks.eq((self.count + BLOCK_SIZE - 1)[5:])
            return blocks
        beats = BLOCK_SIZE // self.lanes
        place = Signal(range(beats))
        m.d.comb += blocks.eq(self.last | (place == beats - 1))
        with m.If(self.emits):
            m.d.sync += place.eq(Mux(blocks.any(), 0, place + 1))
        return blocks
