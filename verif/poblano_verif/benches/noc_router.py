"""Bench of one router between senders and receivers that keep to its credits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import cocotb
from cocotb.triggers import ReadOnly

from poblano.noc.router import input_channels, output_channels, output_depth
from poblano.noc.routing import turns
from poblano.noc.topology import Port
from poblano_verif.dut import Dut
from poblano_verif.layouts import Value
from poblano_verif.noc_driver import cycles_of, network_of

CYCLES = cycles_of(3000)
X = Y = 1
"""Where the router stands: in the middle of 3x3, so that it has all its neighbours."""

_TARGETS = {
    Port.NORTH: [(1, 2)],
    Port.SOUTH: [(1, 0)],
    Port.EAST: [(2, 0), (2, 1), (2, 2)],
    Port.WEST: [(0, 0), (0, 1), (0, 2)],
    Port.LOCAL: [(1, 1)],
}
"""Output to the positions of nodes behind it."""


class _Seen(NamedTuple):
    cycle: int
    channel: int
    flit: dict[str, Any]


class _Bench:
    """Senders and receivers at the router's links, which count credits as the rules want.

    Attributes
    ----------
    queues:
        For each input what its sender has to send: channel, and flit.
    seen:
        For each output what came.
    drains:
        Whether the receiver of an output gives a channel's flit back as credit in this cycle.
    pulses:
        Credits that came back to the sender of an input's channel.
    """

    def __init__(self, dut: Any) -> None:
        self.block = Dut(dut)
        self.network = network_of()
        self.queues: dict[Port, deque[tuple[int, Value]]] = {}
        self.seen: dict[Port, list[_Seen]] = {}
        self.drains: Callable[[Port, int], bool] = lambda _port, _channel: True
        self.pulses: dict[tuple[Port, int], int] = {}
        self._room: dict[tuple[Port, int], int] = {}
        self._held: dict[tuple[Port, int], int] = {}
        self.cycle = 0
        self.block.rest()
        self.block.clock.start()

    async def begin(self) -> None:
        """Reset everything."""
        network = self.network
        self.block.rest()
        await self.block.clock.reset()
        self.block.ports["x"].drive(X)
        self.block.ports["y"].drive(Y)
        self.queues = {port: deque() for port in Port}
        self.seen = {port: [] for port in Port}
        self.drains = lambda _port, _channel: True
        inputs = [(port, c) for port in Port for c in range(input_channels(network, port))]
        self.pulses = dict.fromkeys(inputs, 0)
        self._room = dict.fromkeys(inputs, network.depth)
        self._held = {(port, c): 0 for port in Port for c in range(output_channels(network, port))}
        self.cycle = 0

    def flit(self, to: Port, tag: int, last: bool = True) -> dict[str, Value]:
        """Return a flit that leaves by a port."""
        x, y = _TARGETS[to][tag % len(_TARGETS[to])]
        return {
            "last": int(last),
            "kind": tag % 16,
            "destination": {"x": x, "y": y},
            "source": {"x": tag % 3, "y": tag // 3 % 3},
            "payload": tag,
        }

    def tags(self, port: Port) -> list[int]:
        """Return the payloads that an output sent so far."""
        return [seen.flit["payload"] for seen in self.seen[port]]

    async def cycles(self, count: int) -> None:
        """Run cycles."""
        for _ in range(count):
            await self._cycle()

    async def _cycle(self) -> None:
        for port, queue in self.queues.items():
            may = bool(queue) and self._room[port, queue[0][0]] > 0
            if may:
                channel, flit = queue.popleft()
                self._room[port, channel] -= 1
                self._port(port, "in", "flit").drive(flit)
                self._port(port, "in", "valid").drive(1 << channel)
            else:
                self._port(port, "in", "valid").drive(0)
        gives = dict.fromkeys(Port, 0)
        for (port, channel), held in self._held.items():
            if held and self.drains(port, channel):
                gives[port] |= 1 << channel
                self._held[port, channel] -= 1
        for port, channels in gives.items():
            self._port(port, "out", "credit").drive(channels)
        await ReadOnly()
        for port in Port:
            self._look(port)
        await self.block.clock.edge()
        self.cycle += 1

    def _look(self, port: Port) -> None:
        valid = self._port(port, "out", "valid").bits
        if valid:
            assert valid & (valid - 1) == 0, f"{port.name}: one flit at a time, not {valid:#b}"
            channel = valid.bit_length() - 1
            flit: Any = self._port(port, "out", "flit").value
            self.seen[port].append(_Seen(self.cycle, channel, flit))
            self._held[port, channel] += 1
            most = output_depth(self.network, port)
            assert self._held[port, channel] <= most, f"{port.name}: more flits than credits"
        returned = self._port(port, "in", "credit").bits
        for channel in range(input_channels(self.network, port)):
            given = returned >> channel & 1
            self.pulses[port, channel] += given
            self._room[port, channel] += given
            assert self._room[port, channel] <= self.network.depth, (
                f"{port.name}: a credit too many"
            )

    def _port(self, port: Port, direction: str, name: str):
        return self.block.ports[f"{port.name.lower()}_{direction}__{name}"]


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(gap=[0, 1, 2, 3])
async def one_flit_behind_a_tail(dut: Any, gap: int) -> None:
    """A packet of one flit from another input, right behind a tail: each leaves exactly once."""
    bench = _Bench(dut)
    await bench.begin()
    bench.queues[Port.WEST] += [
        (0, bench.flit(Port.NORTH, 1, last=False)),
        (0, bench.flit(Port.NORTH, 2)),
    ]
    await bench.cycles(gap + 1)
    bench.queues[Port.LOCAL].append((0, bench.flit(Port.NORTH, 3)))
    await bench.cycles(12)
    assert bench.tags(Port.NORTH) == [1, 2, 3]
    assert not any(bench.seen[port] for port in Port if port is not Port.NORTH)
    assert bench.seen[Port.NORTH][0].cycle == bench.network.hop_cycles


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def a_flit_that_waits_gives_one_credit(dut: Any) -> None:
    """An entry that is held for some cycles comes back as one credit, when it leaves."""
    bench = _Bench(dut)
    await bench.begin()
    depth = bench.network.depth
    bench.drains = lambda _port, _channel: False
    bench.queues[Port.SOUTH] += [(0, bench.flit(Port.NORTH, tag)) for tag in range(depth)]
    await bench.cycles(depth + 6)
    assert bench.tags(Port.NORTH) == list(range(depth))
    bench.queues[Port.WEST].append((0, bench.flit(Port.NORTH, 50)))
    await bench.cycles(5)
    assert bench.pulses[Port.WEST, 0] == 0
    one = iter([True])
    bench.drains = lambda _port, _channel: next(one, False)
    await bench.cycles(10)
    assert bench.tags(Port.NORTH) == [*range(depth), 50]
    assert bench.pulses[Port.WEST, 0] == 1


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(pulses=[1, 2, 3])
async def a_credit_is_one_flit(dut: Any, pulses: int) -> None:
    """Without credits nothing goes; each cycle of credit lets one flit go, no more."""
    bench = _Bench(dut)
    await bench.begin()
    depth = bench.network.depth
    bench.drains = lambda _port, _channel: False
    for index, port in enumerate((Port.SOUTH, Port.WEST, Port.EAST, Port.LOCAL)):
        tags = range(10 * index, 10 * index + depth)
        bench.queues[port] += [(0, bench.flit(Port.NORTH, tag)) for tag in tags]
    await bench.cycles(4 * depth + 8)
    assert len(bench.seen[Port.NORTH]) == depth
    left = iter([True] * min(pulses, depth))
    bench.drains = lambda _port, _channel: next(left, False)
    await bench.cycles(12)
    assert len(bench.seen[Port.NORTH]) == depth + min(pulses, depth)


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def the_inputs_take_turns(dut: Any) -> None:
    """Where all inputs want one output all the time, each gets its share."""
    bench = _Bench(dut)
    await bench.begin()
    askers = [port for port in Port if Port.NORTH in turns(port)]
    rounds = 20
    for port in askers:
        bench.queues[port] += [(0, bench.flit(Port.NORTH, int(port)))] * (2 * rounds)
    await bench.cycles((rounds + 4) * len(askers) * bench.network.hop_cycles)
    tags = bench.tags(Port.NORTH)[len(askers) : rounds * len(askers)]
    for start in range(0, len(tags) - len(askers), len(askers)):
        window = sorted(tags[start : start + len(askers)])
        if bench.network.depth > bench.network.hop_cycles:
            assert window == sorted(map(int, askers)), f"{window} at {start}"
    assert {tags.count(int(port)) for port in askers} <= {rounds - 2, rounds - 1, rounds}


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(stall=[0.0, 0.5, 0.95])
async def random_packets(dut: Any, stall: float) -> None:
    """Random packets and stalls on every link: each flit leaves once, where it should, in order."""
    bench = _Bench(dut)
    await bench.begin()
    random = Random(cocotb.RANDOM_SEED)
    bench.drains = lambda _port, _channel: random.random() >= stall
    expected: dict[tuple[Port, int, Port], deque[dict[str, Value]]] = {}
    origin: dict[int, tuple[Port, int]] = {}
    open_: dict[tuple[Port, int], tuple[Port, int] | None] = {}
    looked = dict.fromkeys(Port, 0)
    tag = 0
    for cycle in range(CYCLES + 60 * 20):
        for port, queue in bench.queues.items():
            if cycle >= CYCLES or queue or random.random() < stall / 2:
                continue
            channel = random.randrange(input_channels(bench.network, port))
            to = random.choice(turns(port))
            length = random.choice((1, 1, 2, 5))
            for index in range(length):
                flit = bench.flit(to, tag, last=index == length - 1)
                flit["payload"] = random.getrandbits(32) << 32 | tag
                queue.append((channel, flit))
                expected.setdefault((port, channel, to), deque()).append(flit)
                origin[tag] = (port, channel)
                tag += 1
        await bench.cycles(1)
        for port in Port:
            for seen in bench.seen[port][looked[port] :]:
                source = origin.pop(seen.flit["payload"] & 0xFFFFFFFF, None)
                assert source is not None, f"{port.name}: {seen} was never sent, or left before"
                due = expected[(*source, port)].popleft()
                assert seen.flit == due, f"{port.name}: {seen} from {source}, due was {due}"
                if port is not Port.LOCAL:
                    assert seen.channel == source[1], f"{port.name}: {seen} came on {source[1]}"
                holder = open_.get((port, seen.channel))
                assert holder in (None, source), f"{port.name}: {seen} within {holder}'s packet"
                open_[port, seen.channel] = None if seen.flit["last"] else source
            looked[port] = len(bench.seen[port])
        if cycle >= CYCLES and not origin:
            break
    assert not origin, f"{len(origin)} flits are missing"
    assert tag > CYCLES * (1 - stall)
