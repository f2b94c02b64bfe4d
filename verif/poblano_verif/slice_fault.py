"""A fault of a slice, told in the program's terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poblano.commands import by_opcode
from poblano.faults import Fault
from poblano_verif.named_registers import NamedRegisters

__all__ = ["SliceFault", "SliceFaultError", "read_fault"]


@dataclass(frozen=True)
class SliceFault:
    """What the fault registers say.

    Attributes
    ----------
    kind:
        What went wrong.
    queue:
        Name of the queue; empty for a fault that is no queue's.
    command:
        Number of the command in the program, counted from 0.
    index:
        Of a semaphore, or of a field of the command.
    address, response:
        Where an access went, and the memory's answer.
    field:
        Name of the field, for `Fault.FIELD`.
    """

    kind: Fault
    queue: str
    command: int
    index: int
    address: int
    response: int
    field: str = ""

    def __str__(self) -> str:
        """Say it in a line."""
        details = {
            Fault.FIELD: f"field {self.field}",
            Fault.ADDRESS: f"address {self.address:#x}",
            Fault.RESPONSE: f"response {self.response} for address {self.address:#x}",
            Fault.SILENCE: f"no answer for address {self.address:#x}",
            Fault.SEMAPHORE: f"semaphore {self.index}",
            Fault.WAIT: f"waited too long for semaphore {self.index}",
            Fault.INSTRUCTION: f"no instruction at {self.address:#x}",
            Fault.LOOP: f"budget used up before {self.address:#x}",
            Fault.ALIGNMENT: f"address {self.address:#x} is no multiple",
        }
        where = f"queue {self.queue}, command {self.command}" if self.queue else "no queue"
        detail = details.get(self.kind)
        return f"{where}: fault {self.kind.name}" + (f", {detail}" if detail else "")


class SliceFaultError(AssertionError):
    """A slice stopped with a fault, which is in `fault`."""

    def __init__(self, fault: SliceFault) -> None:
        super().__init__(str(fault))
        self.fault = fault


async def read_fault(
    registers: NamedRegisters,
    queues: Sequence[str],
    programs: Mapping[str, tuple[int, Sequence[bytes]]],
) -> SliceFault:
    """Read the fault registers.

    Parameters
    ----------
    registers:
        Access to them.
    queues:
        Names of the queues in the order of their numbers.
    programs:
        Queue to the number of its first command since reset, and its words.
    """
    fields = await registers.read_fields("FAULT")
    number = await registers.read("FAULT_COMMAND")
    kind = Fault(fields["kind"])
    queue = queues[fields["queue"]] if fields["queue"] < len(queues) else ""
    first, words = programs.get(queue, (0, ()))
    number -= first
    field = ""
    if kind is Fault.FIELD and 0 <= number < len(words):
        field = by_opcode(words[number][0]).fields[fields["index"]].name
    return SliceFault(
        kind=kind,
        queue=queue,
        command=number,
        index=fields["index"],
        address=await registers.read("FAULT_ADDRESS"),
        response=fields["response"],
        field=field,
    )
