"""Bench of the merger of a queue's words: a fetcher, a scalar engine and a queue around it."""

from __future__ import annotations

import os
from collections import deque
from random import Random
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly

from poblano_verif.axi_rules import Hold
from poblano_verif.dut import Dut

CYCLES = int(os.environ.get("POBLANO_CYCLES", "5000"))
DEPTH = 3


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(offers=[0.1, 0.5, 1.0], takes=[0.1, 0.5, 1.0])
async def words_of_both(dut: Any, offers: float, takes: float) -> None:
    """Both sources' words come once and in order, never without room, the scalar engine's first."""
    block = Dut(dut)
    ports = block.ports
    random = Random(cocotb.RANDOM_SEED)
    queue: deque[int] = deque()
    issued: int | None = None
    fetches = -1  # cycles until the fetcher's word is delivered, -1 if none is chosen
    counts = {"issued": 0, "fetched": 0}
    taken = {"issued": 0, "fetched": 0}
    hold = Hold("words")
    block.rest()
    block.clock.start()
    for cycle in range(CYCLES):
        if issued is None and random.random() < offers:
            issued = counts["issued"] << 1
            counts["issued"] += 1
        delivers = fetches == 0
        fetched = counts["fetched"] << 1 | 1
        ports["issued__valid"].drive(int(issued is not None))
        ports["issued__payload"].drive(random.getrandbits(512) if issued is None else issued)
        ports["fetched__valid"].drive(int(delivers))
        ports["fetched__payload"].drive(fetched if delivers else random.getrandbits(512))
        ports["coming"].drive(int(fetches >= 0))
        ports["words__ready"].drive(int(len(queue) < DEPTH))
        await ReadOnly()
        room = len(queue) < DEPTH
        valid, word = ports["words__valid"].bits, ports["words__payload"].bits
        hold.step(cycle, valid, int(room), word if valid else 0)
        chooses = fetches < 0 and ports["fetched__ready"].bits and random.random() < 0.7
        if delivers:
            assert room, "the room of a word that was chosen must stay"
            assert ports["fetched__ready"].bits
            assert (valid, word) == (1, fetched)
            counts["fetched"] += 1
        else:
            first = issued is not None and fetches < 0
            assert valid == first, "a word of the scalar engine waits only for a fetched one"
            assert not valid or word == issued
        assert ports["fetched__ready"].bits == (room and (fetches >= 0 or issued is None))
        accepted = issued is not None and ports["issued__ready"].bits
        assert not (accepted and delivers)
        if valid and room:
            queue.append(word)
        if accepted:
            issued = None
        fetches = random.choice((1, 1, 2, 5)) if chooses else fetches - (fetches >= 0)
        if queue and random.random() < takes:
            word = queue.popleft()
            source = "fetched" if word & 1 else "issued"
            assert word >> 1 == taken[source], f"{source} word {word >> 1} out of order"
            taken[source] += 1
        await block.clock.edge()
    assert taken["issued"] > CYCLES * min(offers, takes) / 4
    assert taken["fetched"] > CYCLES // 100 or offers == 1.0 or takes < offers
