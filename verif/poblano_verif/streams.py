"""Drivers and monitors of streams: a source, a sink, and what watches the rules between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

import cocotb
from cocotb.triggers import Event

from poblano_verif.clock import ClockDomain
from poblano_verif.dut import StreamPort
from poblano_verif.layouts import Value, text_of

__all__ = ["StreamMonitor", "StreamSink", "StreamSource"]


class StreamSource:
    """Sends values into an input stream, in order, with random pauses.

    While `valid` is 0 the payload carries random bits.

    Parameters
    ----------
    stream, clock:
        The stream and its clock domain.
    random:
        Source of the pauses and of the idle payload.
    pause:
        Probability that a cycle without a pending value stays so although one is queued.
    """

    def __init__(
        self, stream: StreamPort, clock: ClockDomain, random: Random, pause: float = 0.0
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._random = random
        self.pause = pause
        self._queue: deque[int] = deque()
        self._filled = Event()
        self.sent = 0

    @property
    def pending(self) -> int:
        """Number of values that have not been accepted yet."""
        return len(self._queue)

    def start(self) -> None:
        """Begin to drive the stream."""
        cocotb.start_soon(self._run())

    def send(self, *values: Value) -> None:
        """Queue values."""
        self._queue.extend(map(self._stream.payload.layout.pack, values))
        self._filled.set()

    async def _run(self) -> None:
        payload, valid = self._stream.payload, self._stream.valid
        while True:
            if not self._queue or self._random.random() < self.pause:
                payload.handle.value = self._random.getrandbits(max(1, payload.layout.width))
                if valid is not None:
                    valid.handle.value = 0
                if not self._queue:
                    self._filled.clear()
                    await self._filled.wait()
                await self._clock.edge()
                continue
            payload.handle.value = self._queue[0]
            if valid is not None:
                valid.handle.value = 1
            await self._clock.edge()
            while self._stream.ready is not None and not self._stream.ready.bits:
                await self._clock.edge()
            self._queue.popleft()
            self.sent += 1


class StreamSink:
    """Accepts what an output stream offers, with random pauses.

    Parameters
    ----------
    stream, clock, random:
        As in `StreamSource`.
    pause:
        Probability that `ready` is 0 in a cycle.
    """

    def __init__(
        self, stream: StreamPort, clock: ClockDomain, random: Random, pause: float = 0.0
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._random = random
        self.pause = pause

    def start(self) -> None:
        """Begin to drive `ready`; a stream without `ready` needs no driving."""
        if self._stream.ready is not None:
            cocotb.start_soon(self._run())

    async def _run(self) -> None:
        assert self._stream.ready is not None
        while True:
            self._stream.ready.handle.value = int(self._random.random() >= self.pause)
            await self._clock.edge()


class StreamMonitor:
    """Reports every transfer of a stream, and holds the stream to its rules.

    A payload that is valid and not accepted must stay valid, and stay as it is.

    Parameters
    ----------
    stream, clock:
        The stream and its clock domain.
    receive:
        Called with the bits of every payload that is transferred, in the cycle of the transfer.

    Attributes
    ----------
    count:
        Number of transfers.
    """

    def __init__(
        self, stream: StreamPort, clock: ClockDomain, receive: Callable[[int], None]
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._receive = receive
        self.count = 0

    def start(self) -> None:
        """Begin to watch."""
        cocotb.start_soon(self._run())

    async def _run(self) -> None:
        stalled: int | None = None
        while True:
            await self._clock.edge()
            valid, ready = self._stream.handshake()
            if stalled is not None and not valid:
                self._fail(stalled, "valid went away")
            if not valid:
                continue
            bits = self._stream.payload.bits
            if stalled is not None and bits != stalled:
                self._fail(stalled, f"changed to {self._text(bits)}")
            stalled = None if ready else bits
            if ready:
                self.count += 1
                self._receive(bits)

    def _text(self, bits: int) -> str:
        return text_of(self._stream.payload.layout, bits)

    def _fail(self, stalled: int, what: str) -> None:
        raise AssertionError(
            f"transaction {self.count} of {self._stream.name}, cycle {self._clock.cycle}: "
            f"a payload that waits must hold still; {self._text(stalled)} waited, {what}"
        )
