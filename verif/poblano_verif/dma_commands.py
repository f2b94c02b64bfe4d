"""Sends command words to an engine, and notes when each was accepted and done."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from poblano_verif.dut import Dut

__all__ = ["CommandPort", "Issued"]


@dataclass
class Issued:
    """A command on its way: its word, and the cycles in which it was accepted and done."""

    word: bytes
    accepted: int = -1
    done: int = -1

    @property
    def cycles(self) -> int:
        """From issue to completion, as the timing contract counts."""
        return self.done - self.accepted - 1


class CommandPort:
    """Drives `command` as fast as the engine takes it, and matches `done` with the commands.

    Parameters
    ----------
    dut:
        The engine.

    Attributes
    ----------
    issued:
        What was sent since the last restart.
    """

    def __init__(self, dut: Dut) -> None:
        self._ports = dut.ports
        self.restart()

    def restart(self) -> None:
        """Forget all commands; none is offered."""
        self.issued: list[Issued] = []
        self._waiting: deque[Issued] = deque()
        self._running: deque[Issued] = deque()
        self._offered: Issued | None = None

    @property
    def pending(self) -> int:
        """Commands that are not done."""
        return len(self._waiting) + len(self._running)

    def send(self, *words: bytes) -> list[Issued]:
        """Queue words, legal or not."""
        issued = [Issued(word) for word in words]
        self.issued += issued
        self._waiting.extend(issued)
        return issued

    def edge(self, cycle: int) -> None:
        """Work at the edge that ends a cycle."""
        ports = self._ports
        if ports["done"].bits:
            if not self._running:
                raise AssertionError(f"cycle {cycle}: done without a command")
            self._running.popleft().done = cycle
        valid = ports["command__valid"]
        if valid.bits and ports["command__ready"].bits:
            accepted = self._waiting.popleft()
            accepted.accepted = cycle
            self._running.append(accepted)
            valid.handle.value = 0
        if self._waiting and self._waiting[0] is not self._offered:
            self._offered = self._waiting[0]
            valid.handle.value = 1
            word = int.from_bytes(self._offered.word, "little")
            ports["command__payload"].handle.value = word
