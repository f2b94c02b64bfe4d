"""The rules of AXI4 (AMBA AXI4, ARM IHI 0022) that a port with INCR bursts is held to.

Both checkers look at one cycle after the other and need no simulator. A sample gives the value of
each signal of the channels by its lower-case name, such as `arvalid`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Burst", "Hold", "ProtocolError", "ReadRules", "WriteRules"]

INCR = 1
BOUNDARY = 4096

ADDRESS = ("id", "addr", "len", "size", "burst")


class ProtocolError(AssertionError):
    """A rule of the bus, or of the port, is broken."""


@dataclass(frozen=True)
class Burst:
    """An accepted burst: its first byte and its beats on a bus of `width` bytes."""

    address: int
    beats: int
    width: int

    def lanes(self, beat: int) -> int:
        """Return the strobe bits that a beat may set."""
        everything = (1 << self.width) - 1
        first = self.address % self.width if beat == 0 else 0
        return everything & (everything << first)


class Hold:
    """What is valid and not accepted stays valid and stays as it is.

    Parameters
    ----------
    name:
        Of the channel, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: object = None

    def step(self, cycle: int, valid: int, ready: int, payload: object) -> None:
        """Check one cycle; `payload` counts only while `valid` is 1."""
        if self._waiting is not None:
            if not valid:
                raise ProtocolError(f"cycle {cycle}: {self._name} was offered and went away")
            if payload != self._waiting:
                raise ProtocolError(
                    f"cycle {cycle}: {self._name} changed while it waited, "
                    f"from {self._waiting} to {payload}"
                )
        self._waiting = payload if valid and not ready else None


class _Addresses:
    """One address channel."""

    def __init__(self, channel: str, width: int) -> None:
        self._channel = channel
        self._width = width
        self._hold = Hold(channel)

    def step(self, cycle: int, sample: Mapping[str, int]) -> Burst | None:
        """Check one cycle; return the burst that was accepted in it."""
        valid, ready = sample[f"{self._channel}valid"], sample[f"{self._channel}ready"]
        payload = _payload(sample, self._channel, ADDRESS) if valid else None
        self._hold.step(cycle, valid, ready, payload)
        if payload is None:
            return None
        self._check(cycle, *payload[1:])
        return Burst(payload[1], payload[2] + 1, self._width) if ready else None

    def _check(self, cycle: int, address: int, length: int, size: int, kind: int) -> None:
        text = f"cycle {cycle}: {self._channel} address {address:#x}, length {length}"
        if kind != INCR:
            raise ProtocolError(f"{text}: the burst must be INCR (1); got {kind}")
        if 1 << size != self._width:
            raise ProtocolError(f"{text}: a beat must have {self._width} bytes; got {1 << size}")
        first = address // self._width * self._width
        end = first + (length + 1) * self._width
        if (end - 1) // BOUNDARY != address // BOUNDARY:
            raise ProtocolError(f"{text}: the burst crosses a 4 KiB boundary")


def _payload(sample: Mapping[str, int], channel: str, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(sample[channel + name] for name in names)


class ReadRules:
    """Checks the read channels.

    Parameters
    ----------
    width:
        Bytes of the data bus.
    outstanding:
        The most bursts that may be in flight.

    Attributes
    ----------
    bursts:
        Every burst that was accepted, in order.
    beats:
        Beats that were transferred.
    """

    def __init__(self, width: int, outstanding: int) -> None:
        self._outstanding = outstanding
        self._addresses = _Addresses("ar", width)
        self._data = Hold("r")
        self._open: deque[Burst] = deque()
        self._beat = 0
        self.bursts: list[Burst] = []
        self.beats = 0

    @property
    def transfers(self) -> int:
        """Transfers on all channels."""
        return len(self.bursts) + self.beats

    @property
    def in_flight(self) -> int:
        """Bursts that were accepted and not answered in full."""
        return len(self._open)

    def step(self, cycle: int, sample: Mapping[str, int]) -> None:
        """Check one cycle.

        Raises
        ------
        ProtocolError
            If a rule is broken.
        """
        valid, ready = sample["rvalid"], sample["rready"]
        payload = _payload(sample, "r", ("id", "data", "resp", "last")) if valid else None
        self._data.step(cycle, valid, ready, payload)
        if payload is not None:
            if not self._open:
                raise ProtocolError(f"cycle {cycle}: a read beat came that nobody asked for")
            burst = self._open[0]
            is_last = self._beat == burst.beats - 1
            if payload[3] != is_last:
                raise ProtocolError(
                    f"cycle {cycle}: rlast must be {int(is_last)} with beat {self._beat} of "
                    f"{burst.beats}; got {payload[3]}"
                )
            if ready:
                self.beats += 1
                self._beat = 0 if is_last else self._beat + 1
                if is_last:
                    self._open.popleft()
        accepted = self._addresses.step(cycle, sample)
        if accepted is not None:
            self.bursts.append(accepted)
            self._open.append(accepted)
        if len(self._open) > self._outstanding:
            raise ProtocolError(
                f"cycle {cycle}: at most {self._outstanding} bursts may be in flight; "
                f"got {len(self._open)}"
            )

    def finish(self) -> None:
        """Refuse bursts that were not answered in full."""
        if self._open:
            raise ProtocolError(f"{len(self._open)} bursts got no full answer")


class WriteRules:
    """Checks the write channels; data may come before their address.

    Parameters and attributes are those of `ReadRules`.
    """

    def __init__(self, width: int, outstanding: int) -> None:
        self._outstanding = outstanding
        self._addresses = _Addresses("aw", width)
        self._data = Hold("w")
        self._answers = Hold("b")
        self._unmatched: deque[tuple[int, int]] = deque()
        self._waiting: deque[Burst] = deque()
        self._beat = 0
        self._owed = 0
        self.bursts: list[Burst] = []
        self.beats = 0
        self.responses = 0

    @property
    def transfers(self) -> int:
        """Transfers on all channels."""
        return len(self.bursts) + self.beats + self.responses

    @property
    def in_flight(self) -> int:
        """Bursts that were accepted and not answered."""
        return len(self.bursts) - self.responses

    def step(self, cycle: int, sample: Mapping[str, int]) -> None:
        """Check one cycle.

        Raises
        ------
        ProtocolError
            If a rule is broken.
        """
        valid, ready = sample["bvalid"], sample["bready"]
        payload = _payload(sample, "b", ("id", "resp")) if valid else None
        self._answers.step(cycle, valid, ready, payload)
        if valid and not self._owed:
            raise ProtocolError(f"cycle {cycle}: a write response came for no finished burst")
        if valid and ready:
            self._owed -= 1
            self.responses += 1

        valid, ready = sample["wvalid"], sample["wready"]
        payload = _payload(sample, "w", ("data", "strb", "last")) if valid else None
        self._data.step(cycle, valid, ready, payload)
        if payload is not None and ready:
            self.beats += 1
            self._unmatched.append((payload[1], payload[2]))
        accepted = self._addresses.step(cycle, sample)
        if accepted is not None:
            self.bursts.append(accepted)
            self._waiting.append(accepted)
        if self.in_flight > self._outstanding:
            raise ProtocolError(
                f"cycle {cycle}: at most {self._outstanding} bursts may be in flight; "
                f"got {self.in_flight}"
            )
        while self._waiting and self._unmatched:
            self._match(cycle, self._waiting[0], *self._unmatched.popleft())

    def _match(self, cycle: int, burst: Burst, strobe: int, last: int) -> None:
        is_last = self._beat == burst.beats - 1
        text = f"cycle {cycle}: beat {self._beat} of {burst.beats} at {burst.address:#x}"
        if last != is_last:
            raise ProtocolError(f"{text}: wlast must be {int(is_last)}; got {last}")
        if strobe & ~burst.lanes(self._beat):
            raise ProtocolError(f"{text}: strobe {strobe:#x} names bytes outside the burst")
        self._beat = 0 if is_last else self._beat + 1
        if is_last:
            self._waiting.popleft()
            self._owed += 1

    def finish(self) -> None:
        """Refuse bursts without all their data or without response, and data without address."""
        if self._unmatched or self._waiting or self._owed:
            raise ProtocolError(
                f"{len(self._waiting)} bursts lack data, {self._owed} a response, "
                f"{len(self._unmatched)} beats an address"
            )
