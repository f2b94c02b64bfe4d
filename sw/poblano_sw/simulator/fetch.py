"""When command words reach their queues: the fetcher, which serves the queues in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

__all__ = ["CYCLES_A_WORD", "Fetcher"]

CYCLES_A_WORD = 3
"""Choose, read, deliver."""

_VISIBLE = 4
"""Cycles from the choice of a word to the first in which its queue can issue it."""

_ROOM = 1
"""Cycles from an issue to the first in which the fetcher sees the room."""


class Fetcher:
    """Brings words to queues of a fixed depth; every word is published at the beginning.

    Parameters
    ----------
    words:
        Words of each queue, by its number.
    depth:
        Words that a queue holds.

    Attributes
    ----------
    visible:
        For each queue the cycles from which its fetched words can be issued, those that are not
        issued yet.
    """

    def __init__(self, words: Sequence[int], depth: int) -> None:
        self.visible: list[deque[int]] = [deque() for _ in words]
        self._left = list(words)
        self._depth = depth
        self._turn = 0
        self._next = 0  # the next cycle in which a word may be chosen
        self._room_at = [0] * len(words)

    def issued(self, queue: int, cycle: int) -> None:
        """Take the first word of a queue, which is issued in `cycle`."""
        if len(self.visible[queue]) == self._depth:
            self._room_at[queue] = cycle + _ROOM
        self.visible[queue].popleft()

    def advance(self, cycle: int) -> None:
        """Choose every word that is chosen up to and with `cycle`."""
        while self._next <= cycle:
            queue = self._choose(self._next)
            if queue is None:
                later = [at for q, at in enumerate(self._room_at) if self._wants(q)]
                if not later:
                    self._next = cycle + 1
                    return
                self._next = max(self._next + 1, min(later))
                continue
            self._turn = queue
            self._left[queue] -= 1
            self.visible[queue].append(self._next + _VISIBLE)
            self._next += CYCLES_A_WORD

    def _wants(self, queue: int) -> bool:
        return self._left[queue] > 0 and len(self.visible[queue]) < self._depth

    def _choose(self, cycle: int) -> int | None:
        count = len(self._left)
        for distance in range(1, count + 1):
            queue = (self._turn + distance) % count
            if self._wants(queue) and self._room_at[queue] <= cycle:
                return queue
        return None
