"""Words that must stop their queue, and what the fault registers must say then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poblano.arith.modes import modes
from poblano.commands import by_mnemonic, by_opcode
from poblano.config import SliceConfiguration
from poblano.faults import Fault
from poblano.scalar.instructions import INSTRUCTION_BYTES
from poblano_golden.formats import MX_FORMATS
from poblano_verif.slice_bench import Bench, with_fields

__all__ = ["DECERR", "PATIENCE", "Trouble", "troubles"]

DECERR = 3

PATIENCE = 400
"""Cycles that a word may wait for its semaphores, more than a memory takes."""

NEVER = 17
"""A semaphore that nothing signals."""


@dataclass(frozen=True)
class Trouble:
    """A word, and the fault that it is.

    Attributes
    ----------
    kind, index, address, response:
        What the registers say.
    """

    queue: str
    word: bytes
    kind: Fault
    index: int = 0
    address: int = 0
    response: int = 0


def troubles(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    """Yield everything that can be wrong with a good word of a queue."""
    yield from _synchronisation(bench, queue, good)
    other = "store.rows" if queue.startswith("load") else "load.rows"
    for opcode in (0, 0xFF, by_mnemonic(other).opcode):
        yield Trouble(queue, bytes([opcode, *good[1:]]), Fault.OPCODE)
    kinds = {"tensor": _of_products, "vector": _of_rows, "scalar": _of_runs}
    makes = kinds.get(queue, _of_moves)
    yield from makes(bench, queue, good)


def _field(queue: str, good: bytes, name: str, value: int) -> Trouble:
    names = [item.name for item in by_opcode(good[0]).fields]
    word = with_fields(good, **{name: value})
    return Trouble(queue, word, Fault.FIELD, index=names.index(name))


def _synchronisation(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    absent = bench.slice.host.semaphores
    for half in ("wait_a", "wait_b", "signal_a", "signal_b"):
        word = with_fields(good, **{half: absent, f"{half}_count": 1})
        yield Trouble(queue, word, Fault.SEMAPHORE, index=absent)
    twice = {"wait_a": 3, "wait_a_count": 1, "wait_b": 3, "wait_b_count": 1}
    yield Trouble(queue, with_fields(good, **twice), Fault.SEMAPHORE, index=3)
    for half in ("wait_a", "wait_b"):
        word = with_fields(good, **{half: NEVER, f"{half}_count": 2})
        yield Trouble(queue, word, Fault.WAIT, index=NEVER)


def _of_moves(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    for name in ("length", "rows", "planes"):
        yield _field(queue, good, name, 0)
    l1, hbm = bench.slice.l1.size, bench.slice.hbm.port_bytes
    values = by_opcode(good[0]).decode(good)
    length = values["length"]
    for name, end in (("l1", l1), ("hbm", hbm)):
        at = end - length + 1
        yield Trouble(queue, with_fields(good, **{name: at}), Fault.ADDRESS, address=at)
    word = with_fields(good, rows=2, l1_row_stride=l1)
    yield Trouble(queue, word, Fault.ADDRESS, address=l1 + values["l1"])
    indexed = by_mnemonic("load.gather" if queue.startswith("load") else "store.scatter")
    kept = {name: values[name] for name in ("hbm", "l1", "length")}
    word = indexed.encode(indexed.complete({**kept, "rows": 1, "indices": l1}))
    yield Trouble(queue, word, Fault.ADDRESS, address=l1)
    past = bench.driver.memory_bytes
    word = with_fields(good, hbm=past)
    yield Trouble(queue, word, Fault.RESPONSE, address=past, response=DECERR)


def _of_products(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    for name in ("m", "n", "k"):
        yield _field(queue, good, name, 0)
    for name in ("a_format", "d_format"):
        yield _field(queue, good, name, 15)
    a, b = _absent_pair(bench.slice)
    yield Trouble(queue, with_fields(good, a_format=a, b_format=b), Fault.FORMATS)
    size = bench.slice.l1.size
    for name in ("a_scales", "b_codes", "d_codes"):
        yield Trouble(queue, with_fields(good, **{name: size}), Fault.ADDRESS, address=size)


def _of_rows(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    for name in ("rows", "k"):
        yield _field(queue, good, name, 0)
    yield _field(queue, good, "a_format", 15)
    size = bench.slice.l1.size
    for name in ("a", "values", "indices"):
        yield Trouble(queue, with_fields(good, **{name: size}), Fault.ADDRESS, address=size)


def _of_runs(bench: Bench, queue: str, good: bytes) -> Iterator[Trouble]:
    size = bench.slice.l1.size
    pc = by_opcode(good[0]).decode(good)["pc"]
    yield Trouble(queue, with_fields(good, pc=size), Fault.ADDRESS, address=size)
    yield _field(queue, good, "pc", pc + 2)
    yield Trouble(queue, with_fields(good, budget=1), Fault.LOOP, address=pc + INSTRUCTION_BYTES)


def _absent_pair(configuration: SliceConfiguration) -> tuple[int, int]:
    """Return the codes of formats that the engine does not multiply."""
    present = {(mode.a, mode.b) for mode in modes(configuration.tensor.formats)}
    return next(
        (a.code, b.code)
        for a in MX_FORMATS.values()
        for b in MX_FORMATS.values()
        if (a, b) not in present
    )
