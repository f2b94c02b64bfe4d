"""Bench of L1: random clients against a model of its banks, cycle by cycle."""

from __future__ import annotations

import os
from random import Random
from typing import Any, cast

import cocotb
from cocotb.triggers import ReadOnly

from poblano_verif.dut import Dut

CYCLES = int(os.environ.get("POBLANO_CYCLES", "5000"))


class Clients:
    """What every client asks for in a cycle: it goes on asking until it is served."""

    def __init__(self, dut: Dut, random: Random, kind: str, lines: int, near: bool) -> None:
        count = sum(name.startswith(f"{kind}_") and name[-1].isdigit() for name in dut.streams)
        self.streams = [dut.streams[f"{kind}_{client}"] for client in range(count)]
        self.wanted: list[dict[str, int] | None] = [None] * count
        self.random = random
        self.lines = lines
        self.near = near

    def choose(self, line_bytes: int) -> None:
        """Let idle clients ask for something now and then, and drive all ports."""
        for client, stream in enumerate(self.streams):
            if self.wanted[client] is None and self.random.random() < 0.7:
                span = min(self.lines, 8) if self.near else self.lines
                self.wanted[client] = {
                    "address": self.random.randrange(span),
                    "data": self.random.getrandbits(8 * line_bytes),
                    "strobe": self.random.choice((0, 1, -1)) % (1 << line_bytes)
                    or self.random.getrandbits(line_bytes),
                }
            wanted = self.wanted[client]
            assert stream.valid is not None
            stream.valid.drive(int(wanted is not None))
            if wanted is not None:
                whole = len(stream.payload.handle) > 8 * line_bytes
                stream.payload.drive(cast("Any", wanted if whole else wanted["address"]))

    def served(self, banks: int) -> list[int]:
        """Return the clients that must be served: the first of every bank."""
        first: dict[int, int] = {}
        for client, wanted in enumerate(self.wanted):
            if wanted is not None:
                first.setdefault(wanted["address"] % banks, client)
        return sorted(first.values())


@cocotb.test(timeout_time=1_000_000_000, timeout_unit="step")
@cocotb.parametrize(near=[False, True])
async def clients_share_banks(dut: Any, near: bool) -> None:
    """Who is served, what is read and written, and when a conflict is reported."""
    block = Dut(dut)
    random = Random(cocotb.RANDOM_SEED)
    parameters = block.manifest["modules"][-1]["parameters"]
    line, banks = int(parameters["line"]), int(parameters["banks"])
    lines = int(parameters["size"]) // line
    memory = [[0] * line for _ in range(lines)]
    reads, writes = (Clients(block, random, kind, lines, near) for kind in ("read", "write"))
    block.rest()
    block.clock.start()
    await block.clock.reset()
    first = writes.streams[0]
    assert first.valid is not None
    for address in range(lines):
        first.valid.drive(1)
        first.payload.drive({"address": address, "data": 0, "strobe": (1 << line) - 1})
        await block.clock.edge()
    due: dict[int, int] = {}
    for _ in range(CYCLES):
        reads.choose(line)
        writes.choose(line)
        await ReadOnly()
        for client, expected in due.items():
            found = block.ports[f"read_data_{client}"].bits
            assert found == expected, f"client {client} read {found:#x}, expected {expected:#x}"
        due = {}
        for clients, kind in ((reads, "read"), (writes, "write")):
            served = clients.served(banks)
            asking = [c for c, wanted in enumerate(clients.wanted) if wanted is not None]
            ready = [c for c in asking if clients.streams[c].handshake()[1]]
            assert ready == served, f"{kind}: clients {ready} were served, not {served}"
            conflict = block.ports[f"{kind}_conflict"].bits
            assert conflict == (len(served) < len(asking)), f"{kind}: conflict {conflict}"
        for client in reads.served(banks):
            wanted = reads.wanted[client]
            assert wanted is not None
            due[client] = int.from_bytes(bytes(memory[wanted["address"]]), "little")
            reads.wanted[client] = None
        for client in writes.served(banks):
            wanted = writes.wanted[client]
            assert wanted is not None
            for byte in range(line):
                if wanted["strobe"] >> byte & 1:
                    memory[wanted["address"]][byte] = wanted["data"] >> 8 * byte & 0xFF
            writes.wanted[client] = None
        await block.clock.edge()
