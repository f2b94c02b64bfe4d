"""A testbench put together: sources, sinks, monitors, scoreboards and the watchdog of a block."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import cocotb

from poblano_verif.clock import PERIOD
from poblano_verif.dut import Dut
from poblano_verif.layouts import Value
from poblano_verif.scoreboard import Scoreboard
from poblano_verif.streams import StreamMonitor, StreamSink, StreamSource
from poblano_verif.watchdog import Watchdog

__all__ = ["Bench"]


class Bench:
    """Drives every stream of a block, and compares what comes out.

    Parameters
    ----------
    handle:
        The cocotb handle of the top.
    period:
        Clock period in simulation steps.
    pause:
        Probability of a pause in each cycle of each stream.
    patience:
        Cycles without progress after which the test fails, if work is left.
    floats:
        Output stream to what `Scoreboard` takes as `floats`.

    Attributes
    ----------
    dut:
        The block.
    random:
        Seeded by the run's seed and the test's name; every driver has a stream of its own.
    sources, scoreboards:
        By name of the input stream, and of the output stream.
    received:
        Output stream to the values that came out, in order.
    """

    def __init__(
        self,
        handle: Any,
        *,
        period: int = PERIOD,
        pause: float = 0.0,
        patience: int = 1000,
        floats: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self.dut = Dut(handle, period=period)
        self.random = Random(cocotb.RANDOM_SEED)
        clock = self.dut.clock
        inputs = [stream for stream in self.dut.streams.values() if stream.is_input]
        outputs = [stream for stream in self.dut.streams.values() if not stream.is_input]
        self.sources = {
            stream.name: StreamSource(stream, clock, self._own_random(), pause) for stream in inputs
        }
        self.sinks = {
            stream.name: StreamSink(stream, clock, self._own_random(), pause) for stream in outputs
        }
        self.scoreboards = {
            stream.name: Scoreboard(
                stream.name, stream.payload.layout, clock, (floats or {}).get(stream.name)
            )
            for stream in outputs
        }
        self.received: dict[str, list[Value]] = {stream.name: [] for stream in outputs}
        self._compared = {stream.name: True for stream in outputs}
        self._monitors = [
            StreamMonitor(stream, clock, self._receiver(stream.name)) for stream in outputs
        ]
        self._watchdog = Watchdog(self.dut, self._progress, lambda: self.pending > 0, patience)

    def _own_random(self) -> Random:
        return Random(self.random.getrandbits(64))

    async def start(self) -> None:
        """Start the clock, reset the block, and begin to drive and to watch."""
        self.dut.rest()
        self.dut.clock.start()
        await self.dut.clock.reset()
        for part in (*self.sources.values(), *self.sinks.values(), *self._monitors):
            part.start()
        self._watchdog.start()

    def send(self, stream: str, *values: Value) -> None:
        """Queue values for an input stream."""
        self.sources[stream].send(*values)

    def expect(self, stream: str, *values: Value) -> None:
        """Expect values from an output stream, in this order."""
        self.scoreboards[stream].expect(*values)

    def accept_anything(self, stream: str) -> None:
        """Compare nothing on an output stream; `received` still takes what comes."""
        self._compared[stream] = False

    @property
    def pending(self) -> int:
        """Values that were not accepted yet, and transactions that are still expected."""
        waiting = sum(source.pending for source in self.sources.values())
        return waiting + sum(board.pending for board in self.scoreboards.values())

    async def finish(self, quiet: int = 20) -> None:
        """Wait until everything was sent and everything expected came, and `quiet` cycles more.

        Raises
        ------
        AssertionError
            If something was not expected, or nothing moves any more.
        """
        while self.pending:
            await self.dut.clock.edge()
        await self.dut.clock.edges(quiet)
        for board in self.scoreboards.values():
            board.check_empty()

    def _receiver(self, stream: str) -> Any:
        layout = self.dut.streams[stream].payload.layout

        def receive(bits: int) -> None:
            self.received[stream].append(layout.unpack(bits))
            if self._compared[stream]:
                self.scoreboards[stream].receive(bits)

        return receive

    def _progress(self) -> int:
        sent = sum(source.sent for source in self.sources.values())
        return sent + sum(monitor.count for monitor in self._monitors)
