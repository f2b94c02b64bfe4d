"""The command table: every command of every engine, described once.

The hardware decoder, the assembler, the disassembler, the checks and the documentation come from
it. Imports no Amaranth.
"""

from __future__ import annotations

from poblano.commands.dma import (
    DMA_COMMANDS,
    LOAD_GATHER,
    LOAD_ROWS,
    STORE_ROWS,
    STORE_SCATTER,
)
from poblano.commands.model import (
    ADDRESS_WIDTH,
    HBM_ADDRESS_WIDTH,
    OPCODE_WIDTH,
    SYNCHRONISATION,
    WORD_BYTES,
    Command,
    CommandError,
    Field,
    Values,
)
from poblano.commands.scalar import SCALAR_RUN
from poblano.commands.tensor import MATMUL
from poblano.commands.vector import CHAIN, PASS, TOPK, VECTOR_COMMANDS

__all__ = [
    "ADDRESS_WIDTH",
    "CHAIN",
    "COMMANDS",
    "HBM_ADDRESS_WIDTH",
    "LOAD_GATHER",
    "LOAD_ROWS",
    "MATMUL",
    "OPCODE_WIDTH",
    "PASS",
    "SCALAR_RUN",
    "STORE_ROWS",
    "STORE_SCATTER",
    "SYNCHRONISATION",
    "TOPK",
    "WORD_BYTES",
    "Command",
    "CommandError",
    "Field",
    "Values",
    "by_mnemonic",
    "by_opcode",
]

COMMANDS: tuple[Command, ...] = (MATMUL, *DMA_COMMANDS, *VECTOR_COMMANDS, SCALAR_RUN)
"""Every command."""


def by_mnemonic(mnemonic: str) -> Command:
    """Return the command that programs call `mnemonic`."""
    for command in COMMANDS:
        if command.mnemonic == mnemonic:
            return command
    known = ", ".join(command.mnemonic for command in COMMANDS)
    raise CommandError(f"a command must be one of {known}; got {mnemonic!r}")


def by_opcode(opcode: int) -> Command:
    """Return the command with that opcode."""
    for command in COMMANDS:
        if command.opcode == opcode:
            return command
    known = ", ".join(f"{command.opcode:#04x}" for command in COMMANDS)
    raise CommandError(f"an opcode must be one of {known}; got {opcode:#04x}")
