"""The folder through which a simulation gets its jobs and tells how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from poblano_flow.simulate import RunResult
from poblano_golden.errors import PoblanoError

__all__ = ["refuse_failure", "watched"]


def refuse_failure(result: RunResult) -> None:
    """Raise an error that names the first failed test of a run, if one failed."""
    for case in result.cases:
        if case.status == "failed":
            raise PoblanoError(
                f"the simulation must run every product; got: {case.message} (log: {result.log})"
            )


@contextmanager
def watched(path: Path, tell: Callable[[int], None]) -> Generator[None]:
    """Call `tell` with the number of lines in a growing file, now and then, until left."""
    ended = threading.Event()

    def lines() -> int:
        return len(path.read_text("utf-8").splitlines()) if path.exists() else 0

    def watch() -> None:
        while not ended.wait(0.2):
            tell(lines())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        tell(lines())
