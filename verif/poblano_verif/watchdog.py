"""Ends a test in which nothing moves any more, and says what waits for what."""

from __future__ import annotations

from collections.abc import Callable

import cocotb

from poblano_verif.dut import Dut

__all__ = ["HangError", "Watchdog", "handshakes"]


class HangError(AssertionError):
    """Nothing moved for too long."""


class Watchdog:
    """Fails the test if work is left and no progress was made for a number of cycles.

    Parameters
    ----------
    dut:
        The block, whose streams the message shows.
    progress:
        Returns a number that changes whenever something moves.
    busy:
        Returns whether work is left.
    cycles:
        How long nothing may move.
    """

    def __init__(
        self,
        dut: Dut,
        progress: Callable[[], int],
        busy: Callable[[], bool],
        cycles: int = 1000,
    ) -> None:
        self._dut = dut
        self._progress = progress
        self._busy = busy
        self.cycles = cycles

    def start(self) -> None:
        """Begin to watch."""
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        before = -1
        while True:
            now = self._progress()
            if now == before and self._busy():
                raise HangError(
                    f"cycle {self._dut.clock.cycle}: something must move within {self.cycles} "
                    f"cycles while work is left; nothing did\n{handshakes(self._dut)}"
                )
            before = now
            await self._dut.clock.edges(self.cycles)


def handshakes(dut: Dut) -> str:
    """Return one line for each stream of the block: valid, ready, and who waits."""
    lines: list[str] = []
    for name, stream in dut.streams.items():
        parts = ["-" if p is None else str(p.handle.value) for p in (stream.valid, stream.ready)]
        meaning = {("1", "0"): "waits for ready", ("0", "1"): "waits for valid"}
        says = meaning.get((parts[0], parts[1]), "")
        direction = "in " if stream.is_input else "out"
        lines.append(f"  {direction} {name}: valid {parts[0]} ready {parts[1]} {says}".rstrip())
    return "\n".join(lines)
