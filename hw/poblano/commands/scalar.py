"""Commands of the scalar engine."""

from __future__ import annotations

from poblano.commands.model import ADDRESS_WIDTH, Command, CommandError, Field, Values
from poblano.config import SliceConfiguration
from poblano.scalar import timing
from poblano.scalar.instructions import INSTRUCTION_BYTES, NUM_ARGUMENTS, REGISTER_WIDTH

__all__ = ["SCALAR_RUN"]


def _check_run(configuration: SliceConfiguration, values: Values) -> None:
    """The first instruction lies in L1, where an instruction may lie."""
    if values["pc"] % INSTRUCTION_BYTES:
        raise CommandError(
            f"pc must be a multiple of {INSTRUCTION_BYTES} bytes; got {values['pc']}"
        )
    if values["pc"] >= configuration.l1.size:
        raise CommandError(
            f"pc must lie inside L1, below byte {configuration.l1.size}; got {values['pc']}"
        )


SCALAR_RUN = Command(
    engine="scalar",
    name="run",
    opcode=0x40,
    summary=(
        "Runs the program in L1 at `pc` until it halts; see the scalar engine's instructions. "
        "Registers that are not given begin as 0, the command buffer as this word."
    ),
    own_fields=(
        Field("pc", ADDRESS_WIDTH, "bytes", "L1 address of the program; a multiple of 4"),
        Field(
            "budget",
            32,
            "instructions",
            "instructions that it may execute, one more is a fault; 0 for any number",
            default=1_000_000,
        ),
        *(
            Field(f"r{number}", REGISTER_WIDTH, "", f"register r{number} at the start", default=0)
            for number in range(1, NUM_ARGUMENTS + 1)
        ),
    ),
    rule=_check_run,
    cycles=timing.run_cycles,
)
"""The command that runs a program."""
