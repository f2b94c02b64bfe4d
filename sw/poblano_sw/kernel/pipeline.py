"""Software pipelining: jobs of the same stages, each begun while the ones before go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

__all__ = ["Ring", "pipelined"]

_T = TypeVar("_T")


class Ring(Sequence[_T]):
    """Buffers that are used in turn: `ring[job]` is the buffer of a job.

    Parameters
    ----------
    count:
        How many buffers: how many jobs may hold one at a time.
    make:
        Makes one.
    """

    def __init__(self, count: int, make: Callable[[], _T]) -> None:
        self._buffers = [make() for _ in range(count)]

    def __len__(self) -> int:
        return len(self._buffers)

    def __getitem__(self, job: int) -> _T:  # type: ignore[override]
        return self._buffers[job % len(self._buffers)]


def pipelined(jobs: Iterable[Iterator[None]]) -> None:
    """Run generators, each of which yields between its stages, a stage apart from each other.

    In every step each job that has begun goes on by a stage, the oldest first, and then the next
    job begins. So the commands of stage i of a job stand in the queues before those of stage i of
    the next job, and beside those of its stage i - 1.
    """
    running: list[Iterator[None]] = []
    waiting = iter(jobs)
    more = True
    while more or running:
        running = [job for job in running if _goes_on(job)]
        following = next(waiting, None)
        more = following is not None
        if following is not None and _goes_on(following):
            running.append(following)


def _goes_on(job: Iterator[None]) -> bool:
    try:
        next(job)
    except StopIteration:
        return False
    return True
