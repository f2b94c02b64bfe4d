"""Running a program under a time limit, so that it can be asked to end before it is ended."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

__all__ = ["GRACE_SECONDS", "ProcessResult", "supervise"]

GRACE_SECONDS = 8.0
"""Time between SIGINT and SIGKILL; a simulation closes its waveform in it."""

_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class ProcessResult:
    """How a program ended.

    Attributes
    ----------
    status:
        Exit status; negative if a signal ended it.
    timed_out, cancelled:
        Whether it was ended from outside, and why.
    output:
        Its output, if that was not sent to a file.
    seconds:
        Wall time.
    """

    status: int
    timed_out: bool
    cancelled: bool
    output: str
    seconds: float


def supervise(
    command: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    limit: float,
    log: Path | None = None,
    cancelled: threading.Event | None = None,
) -> ProcessResult:
    """Run a program and wait for its end.

    It stays in the group of this process, so that Ctrl-C and `timeout` reach it too.

    Parameters
    ----------
    command, folder, environment:
        What to run, and where.
    limit:
        Wall seconds after which it gets SIGINT, and SIGKILL after the grace time.
    log:
        File that takes the output.
    cancelled:
        Set from another thread to end the program in the same way.
    """
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        if log is None:
            output: IO[bytes] = stack.enter_context(tempfile.TemporaryFile())
        else:
            output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            timed_out, was_cancelled = _wait(process, started + limit, cancelled)
        except BaseException:
            _end(process)
            raise
        text = ""
        if log is None:
            output.seek(0)
            text = output.read().decode(errors="replace")
    return ProcessResult(
        process.returncode, timed_out, was_cancelled, text, time.monotonic() - started
    )


def _wait(
    process: subprocess.Popen[bytes], deadline: float, cancelled: threading.Event | None
) -> tuple[bool, bool]:
    while True:
        try:
            process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            timed_out = time.monotonic() > deadline
            was_cancelled = cancelled is not None and cancelled.is_set()
            if timed_out or was_cancelled:
                _end(process)
                return timed_out, was_cancelled
        else:
            return False, False


def _end(process: subprocess.Popen[bytes]) -> None:
    for number, patience in ((signal.SIGINT, GRACE_SECONDS), (signal.SIGKILL, None)):
        process.send_signal(number)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        else:
            return
