"""What every engine shows the slice."""

from __future__ import annotations

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from poblano.commands import HBM_ADDRESS_WIDTH, WORD_BYTES

__all__ = ["NUMBER_WIDTH", "engine_members", "fault_layout"]

NUMBER_WIDTH = 8
"""Bits of a faulty command's number: more than there are commands fetched and not complete."""


def fault_layout() -> data.StructLayout:
    """Return a fault: what `poblano.faults.Fault` says of its kind, the rest 0, and its command.

    `number` has the lowest bits of the command's number in its queue since reset.
    """
    return data.StructLayout(
        {
            "kind": unsigned(4),
            "field": 8,
            "address": HBM_ADDRESS_WIDTH,
            "response": 2,
            "number": NUMBER_WIDTH,
        }
    )


def engine_members() -> dict[str, wiring.Member]:
    """Return the members that every engine has.

    command:
        Command words. A command is issued when its word is accepted; cycle 0 follows.
    done:
        Pulses once for every command, in order, in the cycle after its last byte was written.
    fault:
        The first fault since reset (`Fault`). An engine with a fault issues nothing more and
        pulses `done` no more; what it has asked of a memory before, it still takes.
    """
    return {
        "command": In(stream.Signature(8 * WORD_BYTES)),
        "done": Out(1),
        "fault": Out(fault_layout()),
    }
