# pyright: reportUnknownMemberType=false
# (matplotlib leaves the types of its keyword arguments open)
"""What a simulated program did, as a table, a picture and a Perfetto trace; its bytes of HBM."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from poblano.config import Configuration
from poblano_golden.arrays import U8
from poblano_golden.errors import PoblanoError
from poblano_sw.simulator import Trace

__all__ = ["picture_bytes", "read_memory", "table", "trace_json", "write_back"]

_COLOURS = {
    "load": "#3a62a8",
    "tensor": "#2f7d4f",
    "vector": "#a8446b",
    "scalar": "#6b6f76",
    "store": "#c58a1b",
}
"""A colour for the queues of each engine, in the order of the rows."""


def _number(text: str, what: str, whole: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise PoblanoError(f"{whole}: {what} must be an integer; got {text!r}") from None


def _inside(memory: U8, start: int, length: int, whole: str) -> None:
    if start < 0 or length < 0 or start + length > len(memory):
        raise PoblanoError(
            f"{whole}: bytes must lie in the {len(memory)} bytes of the memory; "
            f"got {start:#x} to {start + length:#x}"
        )


def read_memory(memory: U8, text: str) -> None:
    """Put a file into a memory; `text` is ADDRESS=FILE.

    Raises
    ------
    PoblanoError
        If the text is none, or the bytes do not fit.
    """
    address, equals, name = text.partition("=")
    if not equals:
        raise PoblanoError(f"--load takes ADDRESS=FILE; got {text!r}")
    start = _number(address, "the address", f"--load {text}")
    data = np.frombuffer(Path(name).read_bytes(), np.uint8)
    _inside(memory, start, len(data), f"--load {text}")
    memory[start : start + len(data)] = data


def write_back(memory: U8, text: str) -> None:
    """Write a part of a memory to a file; `text` is ADDRESS:LENGTH=FILE.

    Raises
    ------
    PoblanoError
        If the text is none, or the bytes do not lie in the memory.
    """
    from poblano_flow.output import write_file

    place, equals, name = text.partition("=")
    address, colon, size = place.partition(":")
    if not (equals and colon):
        raise PoblanoError(f"--dump takes ADDRESS:LENGTH=FILE; got {text!r}")
    start = _number(address, "the address", f"--dump {text}")
    length = _number(size, "the length", f"--dump {text}")
    _inside(memory, start, length, f"--dump {text}")
    write_file(Path(name), memory[start : start + length].tobytes())


def table(trace: Trace) -> Table:
    """Return the commands in the order of their issue, with the cycles of issue and end."""
    title = f"{len(trace.spans)} commands, {trace.cycles:,} cycles"
    made = Table(title=title, box=box.SIMPLE, pad_edge=False)
    for name in ("queue", "number", "command"):
        made.add_column(name)
    for name in ("issued", "done", "cycles"):
        made.add_column(name, justify="right")
    for span in sorted(trace.spans, key=lambda span: (span.issued, span.queue)):
        issued, done = span.issued - trace.first, span.done - trace.first
        cycles = f"{done - issued - 1:,}"
        made.add_row(
            span.queue, str(span.number), span.mnemonic, f"{issued:,}", f"{done:,}", cycles
        )
    return made


def trace_json(trace: Trace, configuration: Configuration) -> str:
    """Return the trace in Chrome's trace event format, times in microseconds of the clock.

    Commands that overlap in an engine are asynchronous events, which Perfetto stacks.
    """
    microseconds = 1e6 / configuration.frequency
    queues = sorted({span.queue for span in trace.spans})
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": configuration.name}}
    ]
    for thread, queue in enumerate(queues, start=1):
        events.append(
            {"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": queue}}
        )
    for span in trace.spans:
        common = {
            "name": span.mnemonic,
            "cat": span.queue,
            "id": f"{span.queue} {span.number}",
            "pid": 1,
            "tid": 1 + queues.index(span.queue),
        }
        start, end = span.issued - trace.first, span.done - trace.first
        args = {"number": span.number, "issued": start, "done": end}
        events.append({**common, "ph": "b", "ts": start * microseconds, "args": args})
        events.append({**common, "ph": "e", "ts": end * microseconds})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, indent=1) + "\n"


def picture_bytes(trace: Trace) -> bytes:
    """Return a Gantt chart as PNG: a row a queue, a bar a command, pale while another runs."""
    from matplotlib.figure import Figure

    queues = _order(trace)
    figure = Figure(figsize=(10.4, 0.9 + 0.45 * len(queues)), layout="constrained")
    ax = figure.subplots()
    for row, queue in enumerate(queues):
        colour = _COLOURS[queue.partition("_")[0]]
        before = 0
        for issued, done in trace.of_queue(queue):
            alone = max(issued, before)
            ax.barh(row, done - issued, left=issued, height=0.62, color=colour, alpha=0.22)
            ax.barh(row, done - alone, left=alone, height=0.62, color=colour, edgecolor="white",
                    linewidth=0.6)  # fmt: skip
            before = done
    ax.set_yticks(range(len(queues)), queues)
    ax.invert_yaxis()
    ax.set_xlim(0, trace.cycles + 1)
    ax.set_xlabel("cycles")
    ax.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()


def _order(trace: Trace) -> list[str]:
    """Return the queues, loads first, stores last."""
    rank = list(_COLOURS)
    found = {span.queue for span in trace.spans}
    return sorted(found, key=lambda queue: (rank.index(queue.partition("_")[0]), queue))
