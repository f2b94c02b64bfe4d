"""A program: the command words of every queue of a slice, and where their rings lie in L1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from poblano.commands import WORD_BYTES, CommandError, Values, by_opcode
from poblano.config import Configuration
from poblano.host.registers import POINTER_WIDTH, queue_names
from poblano_golden.errors import PoblanoError

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """Command words by queue.

    Parameters
    ----------
    queues:
        Name of a queue (`poblano.host.registers.queue_names`) to its words, in order.
    ring_base:
        L1 address of the rings, a multiple of 64. They lie one behind the other in the order of
        `queues`.
    ring_words:
        Words that each ring holds, a power of two. A longer queue is published piece by piece.
    """

    queues: Mapping[str, Sequence[bytes]]
    ring_base: int
    ring_words: int = 64

    @property
    def ring_bytes(self) -> int:
        """Bytes of one ring."""
        return WORD_BYTES * self.ring_words

    @property
    def rings(self) -> dict[str, int]:
        """Queue to L1 address of its ring."""
        return {
            name: self.ring_base + index * self.ring_bytes for index, name in enumerate(self.queues)
        }

    def check(self, configuration: Configuration) -> None:
        """Refuse what the slices of a configuration cannot run to its end.

        Raises
        ------
        PoblanoError
            If a queue does not exist or is empty; a command is illegal, or not of its queue's
            engine; rings do not lie in L1; a command waits for a signal that need not come; or
            something is left in a semaphore at the end. The message names queue, command
            (counted from 0) and semaphore. Of a program for the scalar engine, which signals and
            issues what only the data say, the semaphores are not checked.
        """
        self._check_rings(configuration)
        commands = dict(self._decode(configuration))
        if "scalar" not in commands:
            _check_semaphores(commands)

    def _check_rings(self, configuration: Configuration) -> None:
        words, largest = self.ring_words, 1 << (POINTER_WIDTH - 1)
        if words & (words - 1) or not 0 < words <= largest:
            raise PoblanoError(
                f"the words of a ring must be a power of two up to {largest}; got {words}"
            )
        if self.ring_base % WORD_BYTES:
            raise PoblanoError(
                f"rings must begin at a multiple of {WORD_BYTES}; got {self.ring_base:#x}"
            )
        size = configuration.slice.l1.size
        end = self.ring_base + len(self.queues) * self.ring_bytes
        if self.ring_base < 0 or end > size:
            raise PoblanoError(f"rings must end at or below byte {size:#x} of L1; got {end:#x}")

    def _decode(self, configuration: Configuration) -> Iterator[tuple[str, list[Values]]]:
        """Yield every queue with the fields of its commands, checked one by one."""
        known = queue_names(configuration)
        for name, words in self.queues.items():
            if name not in known:
                raise PoblanoError(f"a queue must be one of {', '.join(known)}; got {name!r}")
            if not words:
                raise PoblanoError(f"queue {name} must have a command; it has none")
            found: list[Values] = []
            for number, word in enumerate(words):
                try:
                    found.append(_decode(word, name.partition("_")[0], configuration))
                except CommandError as error:
                    raise PoblanoError(f"queue {name}, command {number}: {error}") from None
            yield name, found


def _decode(word: bytes, engine: str, configuration: Configuration) -> Values:
    if len(word) != WORD_BYTES:
        raise CommandError(f"a word must have {WORD_BYTES} bytes; got {len(word)}")
    command = by_opcode(word[0])
    if command.engine != engine:
        raise CommandError(f"the command must be one of {engine}; got {command.mnemonic}")
    values = command.decode(word)
    command.check(configuration.slice, values)
    return values


def _requests(values: Values, kind: str) -> Iterator[tuple[int, int]]:
    """Yield the semaphores that a command waits for or signals, and how much."""
    for half in ("a", "b"):
        count = values[f"{kind}_{half}_count"]
        if count:
            yield values[f"{kind}_{half}"], count


def _check_semaphores(queues: Mapping[str, Sequence[Values]]) -> None:
    """Let the queues run, each as far as it can before the next: one of the orders that may be."""
    held: dict[int, int] = {}
    signalled: dict[int, str] = {}
    done = dict.fromkeys(queues, 0)
    moves = True
    while moves:
        moves = False
        for name, commands in queues.items():
            while done[name] < len(commands) and not _missing(commands[done[name]], held):
                values = commands[done[name]]
                for semaphore, count in _requests(values, "wait"):
                    held[semaphore] -= count
                for semaphore, count in _requests(values, "signal"):
                    held[semaphore] = held.get(semaphore, 0) + count
                    signalled[semaphore] = f"queue {name}, command {done[name]}"
                done[name] += 1
                moves = True
    for name, commands in queues.items():
        if done[name] < len(commands):
            semaphore, count = _missing(commands[done[name]], held)[0]
            raise PoblanoError(
                f"queue {name}, command {done[name]}: semaphore {semaphore} must be signalled "
                f"{count} times before; it need not be more than {held.get(semaphore, 0)} times"
            )
    for semaphore, count in held.items():
        if count:
            raise PoblanoError(
                f"{signalled[semaphore]}: semaphore {semaphore} must be waited for as often as it "
                f"is signalled; {count} signals are left over"
            )


def _missing(values: Values, held: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return what a command waits for and the semaphores do not hold."""
    return [
        (semaphore, count)
        for semaphore, count in _requests(values, "wait")
        if held.get(semaphore, 0) < count
    ]
