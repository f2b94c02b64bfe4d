"""Drives a network on buses a cycle at a time, and keeps account of its flits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from cocotb.triggers import Timer
from numpy.typing import NDArray

from poblano.noc.flit import flit_places
from poblano.noc.parameters import NocParameters
from poblano_verif.batch import block_parameters, reset

__all__ = ["Account", "Cycle", "NocDriver", "Packets", "cycles_of", "network_of"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def network_of() -> NocParameters:
    """Return the parameters of the network under test, from the manifest."""
    return NocParameters(**block_parameters()[0]["parameters_of"])


@dataclass(frozen=True)
class Cycle:
    """What the network did in a cycle, an entry a node: took a flit, offers one, which."""

    accepted: Bools
    valid: Bools
    flits: Ints


class NocDriver:
    """The network's ports.

    Parameters
    ----------
    dut:
        The cocotb handle of a `NocOnBuses`.

    Attributes
    ----------
    network, num_nodes:
        What it is made from, and its nodes.
    cycle_number:
        Cycles since reset.
    """

    def __init__(self, dut: Any) -> None:
        self._dut = dut
        self.network = network_of()
        self.num_nodes = self.network.shape.num_nodes
        self._places = flit_places(self.network)
        y, x = np.divmod(np.arange(self.num_nodes), self.network.width)
        self._positions = {"x": x, "y": y}
        self.cycle_number = 0

    async def reset(self) -> None:
        """Hold the reset for a cycle, with every input at 0."""
        await reset(self._dut)
        self.cycle_number = 0

    def flits(self, destination: Ints, payload: Ints, last: Bools) -> Ints:
        """Return the bits of a flit of every node; the kind is the payload's low bits."""
        x, y = destination % self.network.width, destination // self.network.width
        values = {
            "last": last.astype(np.int64),
            "kind": payload & ((1 << self.network.kind_width) - 1),
            "destination.x": x,
            "destination.y": y,
            "source.x": self._positions["x"],
            "source.y": self._positions["y"],
            "payload": payload,
        }
        bits = np.zeros(self.num_nodes, np.int64)
        for name, (offset, _) in self._places.items():
            bits |= values[name] << offset
        return bits

    def field(self, flits: Ints, name: str) -> Ints:
        """Return a field of flits."""
        offset, width = self._places[name]
        return flits >> offset & ((1 << width) - 1)

    def node(self, flits: Ints, name: str) -> Ints:
        """Return the node in `destination` or `source`."""
        return self.field(flits, f"{name}.y") * self.network.width + self.field(flits, f"{name}.x")

    async def cycle(self, offered: Bools, flits: Ints, ready: Bools) -> Cycle:
        """Run a cycle."""
        dut = self._dut
        dut.i_valid.value = _bits(offered)
        dut.i_flits.value = int.from_bytes(flits.astype("<i8").tobytes(), "little")
        dut.o_ready.value = _bits(ready)
        dut.clk.value = 0
        await Timer(1, unit="step")
        taken, valid = (self._bools(int(port.value)) for port in (dut.i_ready, dut.o_valid))
        found = int(dut.o_flits.value) if valid.any() else 0
        dut.clk.value = 1
        await Timer(1, unit="step")
        self.cycle_number += 1
        words = np.frombuffer(found.to_bytes(8 * self.num_nodes, "little"), "<i8")
        return Cycle(taken & offered, valid, words.astype(np.int64))

    def _bools(self, bits: int) -> Bools:
        row = np.frombuffer(bits.to_bytes(-(-self.num_nodes // 8), "little"), np.uint8)
        return np.unpackbits(row, bitorder="little", count=self.num_nodes).astype(np.bool_)


def _bits(values: Bools) -> int:
    return int.from_bytes(np.packbits(values, bitorder="little").tobytes(), "little")


class Packets:
    """Random packets from every node.

    Parameters
    ----------
    driver:
        The network.
    random:
        Source of destinations and of pauses.
    lengths:
        Flits of a packet: the least and the most.
    load:
        Probability that a node which is free offers the next packet.
    pause:
        Probability that a node holds a flit within a packet back, anew after every cycle.
    """

    def __init__(
        self,
        driver: NocDriver,
        random: np.random.Generator,
        lengths: tuple[int, int] = (1, 1),
        load: float = 1.0,
        pause: float = 0.0,
    ) -> None:
        self._driver, self._random = driver, random
        self._lengths, self.load, self.pause = lengths, load, pause
        nodes = driver.num_nodes
        self._nodes = np.arange(nodes)
        self.to = np.zeros(nodes, np.int64)
        self._left = np.zeros(nodes, np.int64)
        self.offered = np.zeros(nodes, np.bool_)
        self.sent = np.zeros((nodes, nodes), np.int64)
        self.packets = 0

    def offer(self) -> tuple[Bools, Ints, Bools, Ints]:
        """Return for every node whether it offers a flit, where to, if it is the last, its bits."""
        random, nodes = self._random, len(self._nodes)
        begins = (self._left == 0) & (random.random(nodes) < self.load)
        length = random.integers(self._lengths[0], self._lengths[1] + 1, nodes)
        self._left = np.where(begins, length, self._left)
        self.to = np.where(begins, random.integers(nodes, size=nodes), self.to)
        # what was offered and not taken stays
        self.offered = (self._left > 0) & (self.offered | (random.random(nodes) >= self.pause))
        last = self._left == 1
        bits = self._driver.flits(self.to, self.sent[self._nodes, self.to], last)
        return self.offered, self.to, last, bits

    def accept(self, accepted: Bools) -> None:
        """Take what went in off the packets."""
        self.sent[self._nodes, self.to] += accepted
        self.packets += int((accepted & (self._left == 1)).sum())
        self._left -= accepted
        self.offered &= ~accepted


class Account:
    """What every node received of what was sent to it: each flit once, in order, packets whole."""

    def __init__(self, driver: NocDriver) -> None:
        self._driver = driver
        nodes = driver.num_nodes
        self.received = np.zeros((nodes, nodes), np.int64)
        self._open = np.full(nodes, -1, np.int64)
        self.packets = 0

    def receive(self, taken: Bools, flits: Ints) -> None:
        """Check the flits that nodes took in this cycle.

        Raises
        ------
        AssertionError
            If a flit is at the wrong node, is not the next of its source, or comes within another
            packet.
        """
        driver = self._driver
        at = np.flatnonzero(taken)
        flits = flits[at]
        source, destination = (driver.node(flits, name) for name in ("source", "destination"))
        payload, last = driver.field(flits, "payload"), driver.field(flits, "last") == 1
        self._check(destination == at, "a flit must be at its destination", at, flits)
        due = self.received[source, at]
        self._check(payload == due, "a flit must be the next of its source", at, flits)
        kinds = payload & ((1 << driver.network.kind_width) - 1)
        self._check(driver.field(flits, "kind") == kinds, "the kind must arrive", at, flits)
        inside = (self._open[at] < 0) | (self._open[at] == source)
        self._check(inside, "packets must not mix at a sink", at, flits)
        self._open[at] = np.where(last, -1, source)
        self.received[source, at] += 1
        self.packets += int(last.sum())

    def _check(self, good: Bools, rule: str, at: Ints, flits: Ints) -> None:
        if not good.all():
            bad = int(np.flatnonzero(~good)[0])
            flit, node = flits[bad : bad + 1], int(at[bad])
            source = int(self._driver.node(flit, "source")[0])
            raise AssertionError(
                f"cycle {self._driver.cycle_number}, node {node}: {rule}; got a flit from "
                f"{source} to {int(self._driver.node(flit, 'destination')[0])} with payload "
                f"{int(self._driver.field(flit, 'payload')[0])}, due is "
                f"{int(self.received[source, node])} (bits {int(flit[0]):#x})"
            )


def cycles_of(usual: int) -> int:
    """Return the cycles of a test: POBLANO_CYCLES, or the usual number."""
    return int(os.environ.get("POBLANO_CYCLES", usual))
