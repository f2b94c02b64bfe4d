"""Access to registers by the names of the register map, whatever carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from poblano.host.registers import RegisterMap

__all__ = ["NamedRegisters"]


class NamedRegisters(ABC):
    """Reads and writes registers by name, one word after the other.

    Parameters
    ----------
    registers:
        The map.
    """

    def __init__(self, registers: RegisterMap) -> None:
        self.map = registers
        self._by_name = {register.name: register for register in registers.registers}

    @abstractmethod
    async def write_word(self, offset: int, value: int) -> int:
        """Write the word at a byte offset; return the response."""

    @abstractmethod
    async def read_word(self, offset: int) -> tuple[int, int]:
        """Return the word at a byte offset and the response."""

    async def write(self, name: str, value: int) -> None:
        """Write all of a register.

        Raises
        ------
        AssertionError
            If the response is not OKAY; so do the others.
        """
        for word in self._by_name[name].words:
            response = await self.write_word(word.offset, value >> word.low & 0xFFFF_FFFF)
            _check(response, f"a write to {word.name}")

    async def read(self, name: str) -> int:
        """Return all of a register."""
        value = 0
        for word in self._by_name[name].words:
            part, response = await self.read_word(word.offset)
            _check(response, f"a read of {word.name}")
            value |= part << word.low
        return value

    async def read_fields(self, name: str) -> dict[str, int]:
        """Return a register's fields by name."""
        value = await self.read(name)
        return {
            item.name: value >> item.low & (1 << item.width) - 1
            for item in self._by_name[name].fields
        }


def _check(response: int, what: str) -> None:
    if response:
        raise AssertionError(f"{what} must be answered with OKAY; got {response}")
