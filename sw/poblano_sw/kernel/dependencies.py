"""Which command must wait for which, and the semaphores that see to it.

Two commands that touch the same bytes, one of them writing, keep the order in which the kernel
gives them. Commands of a queue are issued in order, and a vector command begins when the one before
has ended; nothing else is ordered by itself. What a wait already implies needs no wait of its own.

A command waits for two queues at most. Where one would wait for more, a command before it in its
queue waits for some of them, if they do not come after that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poblano_golden.errors import PoblanoError
from poblano_sw.kernel.tensors import Run

__all__ = ["Operation", "Ordering", "semaphores"]

_SERIAL = ("vector", "scalar")
"""Engines that run one command at a time."""

_MOST = 2
"""Semaphores that a command waits for or signals."""


@dataclass
class Operation:
    """A command of a kernel.

    Attributes
    ----------
    queue, number:
        Its queue, and its place there.
    mnemonic, values:
        What it is.
    line:
        `file:line` of the kernel that asked for it.
    waits:
        For each queue the number of the command there that must be complete before.
    """

    queue: str
    number: int
    mnemonic: str
    values: dict[str, int]
    line: str
    waits: dict[str, int] = field(default_factory=dict)


class _Bytes:
    """Who last wrote and who since read each byte of a place, as disjoint intervals."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int, Operation | None, tuple[Operation, ...]]] = []

    def touch(
        self, begin: int, end: int, operation: Operation, *, write: bool
    ) -> Iterable[Operation]:
        """Note an access; return what must come before it."""
        before: list[Operation] = []
        kept: list[tuple[int, int, Operation | None, tuple[Operation, ...]]] = []
        position = begin
        fresh: list[tuple[int, int, Operation | None, tuple[Operation, ...]]] = []

        def note(low: int, high: int, writer: Operation | None, readers: tuple[Operation, ...]):
            if write:
                return
            last = tuple(reader for reader in readers if reader.queue != operation.queue)
            fresh.append((low, high, writer, (*last, operation)))

        for low, high, writer, readers in self._spans:
            if high <= begin or low >= end:
                kept.append((low, high, writer, readers))
                continue
            if low < begin:
                kept.append((low, begin, writer, readers))
            if high > end:
                kept.append((end, high, writer, readers))
            inner_low, inner_high = max(low, begin), min(high, end)
            if position < inner_low:
                note(position, inner_low, None, ())
            position = inner_high
            if writer is not None:
                before.append(writer)
            if write:
                before += readers
            note(inner_low, inner_high, writer, readers)
        if position < end:
            note(position, end, None, ())
        if write:
            fresh.append((begin, end, operation, ()))
        self._spans = sorted([*kept, *fresh], key=lambda span: span[0])
        return before


class Ordering:
    """Finds for every command what it must wait for."""

    def __init__(self) -> None:
        self._places: dict[str, _Bytes] = {}
        self._done_before: dict[tuple[str, int], dict[str, int]] = {}
        self._issued_after: dict[str, dict[str, int]] = {}
        self._queues: dict[str, list[Operation]] = {}

    def add(self, operation: Operation, reads: Sequence[Run], writes: Sequence[Run]) -> None:
        """Give a command the waits that it needs.

        What is known complete at the issue of a command is complete for all that follow in its
        queue, and for whoever waits for that command.
        """
        needed: dict[str, int] = {}
        for runs, write in ((reads, False), (writes, True)):
            for run in runs:
                place = self._places.setdefault(run.place, _Bytes())
                for begin, end in run.intervals():
                    for other in place.touch(begin, end, operation, write=write):
                        if other is not operation:
                            needed[other.queue] = max(needed.get(other.queue, -1), other.number)
        known = self._issued_after.setdefault(operation.queue, {})
        if operation.queue.partition("_")[0] in _SERIAL:
            needed.pop(operation.queue, None)
            known[operation.queue] = operation.number - 1
        # the latest first: it may imply the others
        for queue, number in sorted(needed.items(), key=lambda item: -item[1]):
            if known.get(queue, -1) >= number:
                continue
            operation.waits[queue] = number
            known[queue] = number
            for other, done in self._done_before[queue, number].items():
                known[other] = max(known.get(other, -1), done)
        for queue in list(operation.waits):
            implied = any(
                self._done_before[other, number].get(queue, -1) >= operation.waits[queue]
                for other, number in operation.waits.items()
                if other != queue
            )
            if implied:
                del operation.waits[queue]
        self._done_before[operation.queue, operation.number] = dict(known)
        if len(operation.waits) > _MOST:
            for queue in sorted(operation.waits, key=lambda queue: operation.waits[queue]):
                if len(operation.waits) > _MOST and self._moved(operation, queue):
                    del operation.waits[queue]
        self._queues.setdefault(operation.queue, []).append(operation)

    def _moved(self, operation: Operation, queue: str) -> bool:
        """Let a command before this one wait for what this one needs of a queue, if one can."""
        number = operation.waits[queue]
        after = self._done_before[queue, number].get(operation.queue, -1)
        for before in reversed(self._queues.get(operation.queue, ())):
            if before.number <= after:
                return False
            if queue in before.waits or len(before.waits) < _MOST:
                before.waits[queue] = number
                return True
        return False


def semaphores(operations: Sequence[Operation], count: int) -> dict[tuple[str, str], int]:
    """Put waits and signals into the fields of the commands; return a semaphore for every pair.

    A pair is the queue that signals and the queue that waits. A command that is waited for adds one
    to the semaphore of the pair; both queues being in order, the waiting command takes one.

    Raises
    ------
    PoblanoError
        If a command would wait for or signal more than two queues, or there are too few semaphores.
    """
    by_place = {(operation.queue, operation.number): operation for operation in operations}
    pairs: dict[tuple[str, str], int] = {}
    for operation in operations:
        for queue, number in operation.waits.items():
            pair = (queue, operation.queue)
            semaphore = pairs.setdefault(pair, len(pairs))
            _add(operation, "wait", semaphore, f"waits for {', '.join(operation.waits)}")
            _add(by_place[queue, number], "signal", semaphore, f"is waited for by {queue}")
    if len(pairs) > count:
        raise PoblanoError(
            f"the kernel's pairs of queues must be at most {count}, the semaphores of a slice; "
            f"got {len(pairs)}"
        )
    return pairs


def _add(operation: Operation, kind: str, semaphore: int, why: str) -> None:
    values: Mapping[str, int] = operation.values
    for half in ("a", "b"):
        if not values.get(f"{kind}_{half}_count", 0):
            operation.values |= {f"{kind}_{half}": semaphore, f"{kind}_{half}_count": 1}
            return
    raise PoblanoError(
        f"{operation.line}: {operation.mnemonic} must {kind} at most two queues; it {why}"
    )
