"""When command words reach their queues: the fetcher, which serves the queues in turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

__all__ = ["CYCLES_A_WORD", "Fetcher"]

CYCLES_A_WORD = 3
"""Choose, read, deliver."""

_DELIVER = 2
"""Cycles from the choice of a word to its delivery."""

_VISIBLE = 2
"""Cycles from the delivery of a word to the first in which its queue can issue it."""

_ROOM = 1
"""Cycles from an issue to the first in which the fetcher sees the room."""


class Fetcher:
    """Brings words to queues of a fixed depth; every word is published at the beginning.

    The scalar engine puts words into the queues too, and goes before the fetcher.

    Parameters
    ----------
    words:
        The words of each queue, by its number.
    depth:
        Words that a queue holds.

    Attributes
    ----------
    arrived:
        For each queue the words that reached it, in order.
    visible:
        For each queue the cycles from which those can be issued that are not issued yet.
    """

    def __init__(self, words: Sequence[Sequence[bytes]], depth: int) -> None:
        self.arrived: list[list[bytes]] = [[] for _ in words]
        self.visible: list[deque[int]] = [deque() for _ in words]
        self._words = [deque(queue) for queue in words]
        self._depth = depth
        self._turn = 0
        self._next = 0  # the next cycle in which a word may be chosen
        self._room_at = [0] * len(words)
        self._busy = (-1, -1)  # the queue that was served last, and when it got its word

    def has_words(self, queue: int) -> bool:
        """Whether any word of a queue is not fetched yet."""
        return bool(self._words[queue])

    def issued(self, queue: int, cycle: int) -> None:
        """Take the first word of a queue, which is issued in `cycle`."""
        if len(self.visible[queue]) == self._depth:
            self._room_at[queue] = cycle + _ROOM
        self.visible[queue].popleft()

    def put(self, queue: int, word: bytes, cycle: int) -> bool:
        """Take a word of the scalar engine in `cycle`, if the queue has room; say whether."""
        served, delivered = self._busy
        if (served == queue and cycle <= delivered) or not self._has_room(queue, cycle):
            return False
        self._add(queue, word, cycle)
        return True

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
            self._busy = queue, self._next + _DELIVER
            self._add(queue, self._words[queue].popleft(), self._next + _DELIVER)
            self._next += CYCLES_A_WORD

    def _add(self, queue: int, word: bytes, cycle: int) -> None:
        self.arrived[queue].append(word)
        self.visible[queue].append(cycle + _VISIBLE)

    def _has_room(self, queue: int, cycle: int) -> bool:
        return len(self.visible[queue]) < self._depth and self._room_at[queue] <= cycle

    def _wants(self, queue: int) -> bool:
        return bool(self._words[queue]) and len(self.visible[queue]) < self._depth

    def _choose(self, cycle: int) -> int | None:
        count = len(self._words)
        for distance in range(1, count + 1):
            queue = (self._turn + distance) % count
            if self._words[queue] and self._has_room(queue, cycle):
                return queue
        return None
