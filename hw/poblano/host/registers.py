"""The register map of a slice, for a configuration; imports no Amaranth.

The AXI4-Lite slave (`poblano.host.register_file`), the SystemRDL text, the C header and the
reference page come from it: another register is another line here.
"""

from __future__ import annotations

from collections.abc import Iterator

from poblano.commands import HBM_ADDRESS_WIDTH, WORD_BYTES
from poblano.config import L1_ADDRESS_BITS, Configuration
from poblano.faults import Fault
from poblano.host.register_model import (
    ADDRESS_WIDTH,
    WORD_BITS,
    Access,
    Field,
    Register,
    RegisterMap,
    Word,
)
from poblano_golden.errors import PoblanoError

__all__ = [
    "ADDRESS_WIDTH",
    "ID",
    "MAX_PORTS",
    "POINTER_WIDTH",
    "WORD_BITS",
    "Access",
    "Field",
    "Register",
    "RegisterMap",
    "Word",
    "queue_names",
    "register_map",
]

ID = int.from_bytes(b"PBLO", "big")
"""What the register ID holds."""

VERSION = (2, 0)
"""Major and minor version of this map; the major one changes if old software would fail."""

POINTER_WIDTH = 16
"""Bits of the free-running counts of words published and fetched."""

SEMAPHORE_BITS = 16
"""Room for a semaphore's value in its register."""

MAX_PORTS = 126
"""HBM ports whose queues the eight bits of FAULT.queue can name."""

_SEMAPHORES = 0x100
_HBM_COUNTERS = 0x200
_QUEUES = 0x1000
_QUEUE_BYTES = 0x20
_WORD_ZEROS = (WORD_BYTES - 1).bit_length()


def queue_names(configuration: Configuration) -> tuple[str, ...]:
    """Return the queues by their numbers: `tensor`, `vector`, `scalar`, `load_0`, `store_0`, ..."""
    ports = range(configuration.slice.hbm.ports)
    moves = (f"{half}_{port}" for port in ports for half in ("load", "store"))
    return ("tensor", "vector", "scalar", *moves)


def register_map(configuration: Configuration) -> RegisterMap:
    """Return the registers of a slice.

    Raises
    ------
    PoblanoError
        If the configuration has more HBM ports than the map has room for.
    """
    ports = configuration.slice.hbm.ports
    if ports > MAX_PORTS:
        raise PoblanoError(
            f"slice.hbm.ports must be at most {MAX_PORTS} for the register map; got {ports}"
        )
    registers = [*_identity(configuration), *_control(), *_counters()]
    for index in range(configuration.slice.host.semaphores):
        text = f"Semaphore {index}. A write adds the written value, as a signal of a command does."
        value = Field("value", 0, SEMAPHORE_BITS, Access.ADD, "its value")
        registers.append(Register(f"SEMAPHORE_{index}", _SEMAPHORES + 4 * index, text, (value,)))
    for port in range(ports):
        for index, kind in enumerate(("READ", "WRITE")):
            text = f"Beats of {kind.lower()} data that HBM port {port} moved."
            offset = _HBM_COUNTERS + 16 * port + 8 * index
            registers.append(_counter(f"HBM_{port}_{kind}_BEATS", offset, text))
    for index, name in enumerate(queue_names(configuration)):
        registers += _queue(name.upper(), _QUEUES + _QUEUE_BYTES * index)
    return RegisterMap(tuple(registers))


def _identity(configuration: Configuration) -> Iterator[Register]:
    section = configuration.slice
    major, minor = VERSION
    yield _constant("ID", 0x00, "The letters PBLO, P in the highest byte.", ID)
    yield Register(
        "VERSION",
        0x04,
        "Version of this register map.",
        (
            Field("minor", 0, 16, Access.CONSTANT, "grows with every addition", minor),
            Field("major", 16, 16, Access.CONSTANT, "grows when old software would fail", major),
        ),
    )
    text = "The first 64 bits of the hash of the configuration."
    yield _constant("CONFIG_HASH", 0x08, text, configuration.hash64, 64)
    queues = len(queue_names(configuration))
    yield _constant("QUEUES", 0x10, "Queues, one an engine.", queues)
    yield _constant("SEMAPHORES", 0x14, "Semaphores.", section.host.semaphores)
    yield _constant("HBM_PORTS", 0x18, "HBM ports.", section.hbm.ports)
    yield _constant("L1_SIZE", 0x1C, "Bytes of L1.", section.l1.size)


def _control() -> Iterator[Register]:
    flag, control, status = Access.FLAG, Access.CONTROL, Access.STATUS
    yield Register(
        "CONTROL",
        0x20,
        "Switches of the whole slice.",
        (
            Field("enable", 0, 1, control, "queues fetch and issue commands only while it is 1"),
            Field("clear_counters", 1, 1, Access.PULSE, "sets every counter to 0"),
        ),
    )
    yield Register(
        "STATUS",
        0x24,
        "State of the whole slice.",
        (
            Field("fault", 0, 1, status, "FAULT holds a fault"),
            Field("busy", 1, 1, status, "an engine has a command that is not complete"),
            Field("idle", 2, 1, status, "every published command is complete"),
        ),
    )
    causes = (("fault", "a fault occurred"), ("notify", "a queue completed its NOTIFY-th command"))
    for name, offset, access, text in (
        ("INTERRUPT_ENABLE", 0x28, control, "Which causes raise the interrupt."),
        ("INTERRUPT_STATUS", 0x2C, flag, "Causes since they were cleared by writing 1."),
    ):
        fields = [Field(cause, at, 1, access, why) for at, (cause, why) in enumerate(causes)]
        yield Register(name, offset, text, tuple(fields))
    kinds = {kind.name.lower(): kind.value for kind in Fault}
    yield Register(
        "FAULT",
        0x30,
        "The first fault since reset; the fields that a kind does not need are 0.",
        (
            Field("kind", 0, 4, status, "what went wrong", choices=kinds),
            Field("response", 4, 2, status, "the memory's answer (xRESP)"),
            Field("index", 8, 8, status, "which field of the command, or which semaphore"),
            Field("queue", 16, 8, status, "number of the queue"),
        ),
    )
    text = "Number of the command in its queue, counted from 0."
    yield Register("FAULT_COMMAND", 0x34, text, (Field("value", 0, 32, status, "number"),))
    address = Field("value", 0, HBM_ADDRESS_WIDTH, status, "byte address")
    yield Register("FAULT_ADDRESS", 0x38, "Where the access went.", (address,), 64)
    text = "Patience for a semaphore or a silent memory before it is a fault."
    patience = Field("value", 0, 32, control, "cycles; 0 for any number", 1_000_000)
    yield Register("WATCHDOG", 0x40, text, (patience,))


def _counters() -> Iterator[Register]:
    yield _counter("CYCLES", 0x80, "Cycles of the clock.")
    for index, kind in enumerate(("READ", "WRITE")):
        text = f"Cycles in which a client of L1 had to wait with a {kind.lower()}."
        yield _counter(f"L1_{kind}_CONFLICTS", 0x88 + 8 * index, text)


def _queue(name: str, start: int) -> Iterator[Register]:
    """Yield the registers of a queue; its ring holds 2**SIZE_LOG2 command words."""
    control, status = Access.CONTROL, Access.STATUS
    base_bits = L1_ADDRESS_BITS - _WORD_ZEROS
    rows = (
        ("BASE", "L1 byte address of the ring.", _WORD_ZEROS, base_bits, control, "in words"),
        ("SIZE_LOG2", "Size of the ring.", 0, 4, control, "logarithm of the words that it holds"),
        ("TAIL", "Words published so far.", 0, POINTER_WIDTH, Access.DOORBELL, "free running"),
        ("FETCHED", "Words fetched so far.", 0, POINTER_WIDTH, status, "free running"),
        ("ISSUED", "Commands issued since reset.", 0, 32, status, "free running"),
        ("COMPLETED", "Commands completed since reset.", 0, 32, status, "free running"),
        ("NOTIFY", "When to set INTERRUPT_STATUS.notify.", 0, 32, control, "a value of COMPLETED"),
        ("BUSY_CYCLES", "Cycles with a command in the engine.", 0, 32, Access.COUNTER, "cycles"),
    )
    for index, (register, text, low, width, access, meaning) in enumerate(rows):
        value = Field("value", low, width, access, meaning)
        yield Register(f"QUEUE_{name}_{register}", start + 4 * index, text, (value,))


def _constant(name: str, offset: int, text: str, value: int, width: int = 32) -> Register:
    item = Field("value", 0, width, Access.CONSTANT, "of this configuration", value)
    return Register(name, offset, text, (item,), width)


def _counter(name: str, offset: int, text: str) -> Register:
    return Register(name, offset, text, (Field("value", 0, 64, Access.COUNTER, "count"),), 64)
