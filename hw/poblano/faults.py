"""Why an engine stops; imports no Amaranth."""

from __future__ import annotations

import enum

__all__ = ["Fault"]


class Fault(enum.IntEnum):
    """What went wrong first since reset."""

    NONE = 0
    OPCODE = 1
    """A word's opcode is none of the engine's."""
    FIELD = 2
    """A field is out of range; `field` is its index in the command table."""
    FORMATS = 3
    """The tensor engine does not have this combination of formats."""
    ADDRESS = 4
    """An access outside L1 or HBM; `address` is where."""
    RESPONSE = 5
    """The memory answered `response` (SLVERR or DECERR) for `address`."""
    SEMAPHORE = 6
    """Semaphore `field` does not exist, is waited for twice by a command, or overflowed."""
    WAIT = 7
    """A command waited too long for semaphore `field`."""
    SILENCE = 8
    """The memory did not answer for too long; `address` is the oldest burst's."""
    INSTRUCTION = 9
    """The scalar engine found no legal instruction at `address`."""
    LOOP = 10
    """A program used up its budget of instructions; the next is at `address`."""
    ALIGNMENT = 11
    """An instruction, or what one reads or writes, is at no multiple of its size: `address`."""
