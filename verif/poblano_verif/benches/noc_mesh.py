"""Bench of a network: equal to the model cycle by cycle, nothing lost, latencies, troubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np
from numpy.typing import NDArray

from poblano.noc.timing import zero_load_latency
from poblano_sw.noc.network import Network
from poblano_verif.noc_driver import Account, NocDriver, Packets, cycles_of

Bools = NDArray[np.bool_]
Ready = Callable[[int], Bools]

CYCLES = cycles_of(800)
DRAIN = 4000


async def _begin(dut: Any) -> tuple[NocDriver, np.random.Generator]:
    driver = NocDriver(dut)
    await driver.reset()
    return driver, np.random.default_rng(cocotb.RANDOM_SEED)


class _Run:
    """Packets through the network, beside the model, with everything accounted for."""

    def __init__(self, driver: NocDriver, packets: Packets) -> None:
        self.driver, self.packets = driver, packets
        self.account = Account(driver)
        self.model = Network(driver.network)

    async def cycles(self, count: int, ready: Ready) -> None:
        """Run cycles; in each the network must do what the model does."""
        driver, model = self.driver, self.model
        for index in range(count):
            offered, to, last, bits = self.packets.offer()
            accepts = ready(index)
            wanted = model.step(offered, model.number(bits, to, last), accepts)
            found = await driver.cycle(offered, bits, accepts)
            self._equal("accepted", found.accepted, wanted.accepted)
            self._equal("offers", found.valid, wanted.valid)
            expected = model.parts(wanted.flit)[0]
            self._equal("flit", found.flits * found.valid, expected * found.valid)
            self.packets.accept(found.accepted)
            self.account.receive(found.valid & accepts, found.flits)

    async def drain(self) -> None:
        """Let everything come out, and see that everything came."""
        self.packets.load = self.packets.pause = 0.0
        everyone = np.ones(self.driver.num_nodes, np.bool_)
        for _ in range(DRAIN // 50):
            await self.cycles(50, lambda _: everyone)
            if self.model.num_held == 0:
                break
        missing = self.packets.sent - self.account.received
        assert not missing.any(), f"{missing.sum()} flits are missing, sources by rows: {missing}"
        assert self.packets.packets == self.account.packets

    def _equal(self, what: str, found: NDArray[Any], wanted: NDArray[Any]) -> None:
        if not np.array_equal(found, wanted):
            node = int(np.flatnonzero(found != wanted)[0])
            raise AssertionError(
                f"cycle {self.driver.cycle_number - 1}, node {node}: {what} must be as in the "
                f"model, {int(wanted[node]):#x}; got {int(found[node]):#x}"
            )


def _random_ready(random: np.random.Generator, nodes: int, pause: float) -> Ready:
    return lambda _: random.random(nodes) >= pause


TRAFFIC = {
    "light": ((1, 1), 0.1, 0.0),
    "saturated": ((1, 1), 1.0, 0.0),
    "stalled": ((1, 1), 1.0, 0.3),
    "long_packets": ((1, 6), 1.0, 0.2),
}
"""Flits of a packet, load, and probability of a pause."""


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(traffic=list(TRAFFIC))
async def as_the_model(dut: Any, traffic: str) -> None:
    """Random packets, with and without contention and stalls: flit for flit, cycle by cycle."""
    lengths, load, pause = TRAFFIC[traffic]
    driver, random = await _begin(dut)
    run = _Run(driver, Packets(driver, random, lengths, load, pause))
    await run.cycles(CYCLES, _random_ready(random, driver.num_nodes, pause))
    await run.drain()
    assert run.account.packets > CYCLES * driver.num_nodes * load / lengths[1] / 20


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(flits=[1, 5])
async def latency_without_load(dut: Any, flits: int) -> None:
    """One packet at a time between random pairs takes what the formula says."""
    driver, random = await _begin(dut)
    nodes = driver.num_nodes
    everyone = np.ones(nodes, np.bool_)
    pairs = [(0, nodes - 1), (nodes - 1, 0), *random.integers(nodes, size=(CYCLES // 50, 2))]
    for source, destination in pairs:
        to = np.full(nodes, destination)
        sent, begin, end = 0, -1, -1
        expected = zero_load_latency(driver.network, int(source), int(destination), flits)
        for _ in range(expected + 5):
            now = driver.cycle_number
            offered = (np.arange(nodes) == source) & (sent < flits)
            last = np.full(nodes, sent == flits - 1)
            seen = await driver.cycle(
                offered, driver.flits(to, np.full(nodes, sent), last), everyone
            )
            if seen.accepted.any():
                begin, sent = now if begin < 0 else begin, sent + 1
            if seen.valid.any():
                assert np.flatnonzero(seen.valid).tolist() == [destination]
                if driver.field(seen.flits, "last")[destination]:
                    end = now
        assert end - begin == expected, f"{source} to {destination}: {end - begin}, not {expected}"


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def one_sink_is_stuck(dut: Any) -> None:
    """A sink that accepts nothing loses nothing: all of it comes once the sink is back."""
    driver, random = await _begin(dut)
    stuck = int(random.integers(driver.num_nodes))
    run = _Run(driver, Packets(driver, random, (1, 4), 0.3))
    others = np.arange(driver.num_nodes) != stuck
    await run.cycles(CYCLES // 2, lambda _: others)
    assert run.model.num_held, "something must wait for the sink"
    assert not run.account.received[:, stuck].any()
    await run.cycles(CYCLES // 4, lambda _: np.ones(driver.num_nodes, np.bool_))
    await run.drain()
    assert run.account.received[:, stuck].any()


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def reset_in_traffic(dut: Any) -> None:
    """A reset empties the network: afterwards it is as a new one."""
    driver, random = await _begin(dut)
    for _ in range(3):
        run = _Run(driver, Packets(driver, random, (1, 3)))
        count = int(random.integers(20, max(30, CYCLES // 10)))
        await run.cycles(count, _random_ready(random, driver.num_nodes, 0.5))
        assert run.model.num_held
        await driver.reset()
    run = _Run(driver, Packets(driver, random, (1, 3)))
    await run.cycles(CYCLES // 4, _random_ready(random, driver.num_nodes, 0.1))
    await run.drain()


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
async def destinations_outside(dut: Any) -> None:
    """A flit to a node that does not exist is taken and reported, and nothing comes of it."""
    driver, _ = await _begin(dut)
    network, nodes = driver.network, driver.num_nodes
    spaces = [1 << max(1, (side - 1).bit_length()) for side in (network.width, network.height)]
    everyone = np.ones(nodes, np.bool_)
    for x in range(spaces[0]):
        for y in range(spaces[1]):
            is_outside = x >= network.width or y >= network.height
            inside = driver.flits(np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), everyone)
            flits = inside | x << 1 + network.kind_width
            flits |= y << 1 + network.kind_width + spaces[0].bit_length() - 1
            if not is_outside:
                continue
            seen = await driver.cycle(everyone, flits, everyone)
            assert seen.accepted.all()
            assert int(dut.outside.value) == (1 << nodes) - 1
            quiet = await driver.cycle(~everyone, flits, everyone)
            assert not quiet.valid.any()
    for _ in range(40):
        quiet = await driver.cycle(~everyone, np.zeros(nodes, np.int64), everyone)
        assert not quiet.valid.any()
        assert int(dut.outside.value) == 0
