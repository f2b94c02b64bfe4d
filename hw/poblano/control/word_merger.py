"""Merges the two sources of a queue's command words: the fetcher, and the scalar engine."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from poblano.commands import WORD_BYTES
from poblano.component import Component

__all__ = ["WordMerger"]


class WordMerger(Component):
    """Lets words of the scalar engine go before words that are fetched. Combinational.

    The fetcher chooses a queue that has room and delivers its word some cycles later, whatever
    the queue then says. So while a word is `coming` its place is kept: a word of the scalar
    engine waits until it was delivered; and while the scalar engine offers one, the fetcher sees
    no room and serves other queues.

    Members
    -------
    issued:
        Words of the scalar engine.
    fetched:
        Words of the fetcher, which it offers for one cycle each.
    coming:
        The fetcher has chosen this queue and not yet delivered the word, or does so in this cycle.
    words:
        Words for the queue, whose room no one else takes.
    """

    def __init__(self) -> None:
        word = stream.Signature(8 * WORD_BYTES)
        super().__init__(
            {"issued": In(word), "fetched": In(word), "coming": In(1), "words": Out(word)}
        )

    def elaborate(self, platform) -> Module:
        m = Module()
        issues = Signal()
        m.d.comb += [
            issues.eq(self.issued.valid & ~self.coming),
            self.issued.ready.eq(self.words.ready & ~self.coming),
            self.fetched.ready.eq(self.words.ready & (self.coming | ~self.issued.valid)),
            self.words.valid.eq(issues | self.fetched.valid),
            self.words.payload.eq(Mux(issues, self.issued.payload, self.fetched.payload)),
        ]
        return m
