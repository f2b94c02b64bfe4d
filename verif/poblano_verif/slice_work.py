"""Work for every queue of a slice that needs nothing of the others', and what it must leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from poblano.commands import SCALAR_RUN, WORD_BYTES
from poblano_golden import fp32
from poblano_golden.reductions import top_k
from poblano_sw.matmul import golden_bytes
from poblano_sw.program import Program
from poblano_sw.scalar.assembler import assemble_scalar
from poblano_verif.matmul_workload import random_product
from poblano_verif.slice_bench import Bench

__all__ = ["Work"]

_PRODUCT = 24 << 10
"""Bytes of L1, from 0, for the product; what is moved lies behind the vector engine's row."""

_TOPK = _PRODUCT
"""L1 address of a row of binary32 numbers, and of its largest."""

_CODE = _TOPK + 1024
"""L1 address of the scalar engine's program; what it stores lies behind it."""

_STORED = _CODE + 256

_MOVES = _CODE + 1024
"""L1 address of what is moved."""

_MOVE = 2048
"""Bytes of L1 for what a queue moves."""

_RING_WORDS = 4

_TURNS = 9

_SOURCE = f"""
    let r3, {_TURNS}
next: add r4, r4, r2
    addi r3, r3, -1
    bne r3, r0, next
    store32 r4, r1, 0
    halt
"""
"""Adds r2 as often and stores the sum at r1."""

L1 = -1
"""Stands for L1 where other numbers mean the memory of a port."""


class Work:
    """A command for every engine, and for both halves of every port; all can run again.

    Parameters
    ----------
    bench:
        The slice.

    Attributes
    ----------
    words:
        Queue to the word of its command.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        random = bench.random
        self._product = random_product(random, bench.slice, largest=40, window=range(_PRODUCT))
        self._topk = {
            "a": _TOPK,
            "cols": 100,
            "k": 3,
            "values": _TOPK + 512,
            "indices": _TOPK + 576,
        }
        self.words = {
            "tensor": self._product.plan.word,
            "vector": bench.word("vector.topk", **self._topk),
            "scalar": bench.word("scalar.run", pc=_CODE, r1=_STORED, r2=random.getrandbits(32)),
        }
        self._moves: dict[str, tuple[int, dict[str, int]]] = {}
        for port in bench.ports:
            for name in ("load", "store"):
                move = {
                    "hbm": random.randrange(bench.driver.memory_bytes - _MOVE),
                    "l1": _MOVES + len(self._moves) * _MOVE + random.randrange(64),
                    "length": random.randint(400, _MOVE - 64),
                }
                self._moves[f"{name}_{port}"] = (port, move)
                self.words[f"{name}_{port}"] = bench.word(f"{name}.rows", **move)
        self._after: dict[str, list[tuple[int, int, bytes]]] = {}

    async def prepare(self) -> None:
        """Put what is read into L1 and HBM, and random bytes to where something is written."""
        bench, product = self._bench, self._product
        memories = await bench.fill()
        l1 = bytearray(bench.random.randbytes(_MOVES + len(self._moves) * _MOVE))
        for address, data in product.images():
            l1[address : address + len(data)] = data.tobytes()
        code = assemble_scalar(bench.driver.configuration, _SOURCE).code
        l1[_CODE : _CODE + len(code)] = code
        await bench.driver.window.write(0, bytes(l1))
        results = golden_bytes(product.plan, product.a, product.b)
        row = np.frombuffer(bytes(l1[_TOPK : _TOPK + 400]), "<f4")
        best, indices = (part[0] for part in top_k(fp32.canonical(row)[None], self._topk["k"]))
        self._after = {
            "tensor": [(L1, address, data.tobytes()) for address, data in results],
            "vector": [
                (L1, self._topk["values"], best.astype("<f4").tobytes()),
                (L1, self._topk["indices"], indices.astype("<u4").tobytes()),
            ],
            "scalar": [(L1, _STORED, self._sum().to_bytes(4, "little"))],
        }
        for queue, (port, move) in self._moves.items():
            inner = slice(move["l1"], move["l1"] + move["length"])
            outer = slice(move["hbm"], move["hbm"] + move["length"])
            self._after[queue] = [
                (L1, move["l1"], memories[port][outer].tobytes())
                if queue.startswith("load")
                else (port, move["hbm"], bytes(l1[inner]))
            ]

    def _sum(self) -> int:
        """Return what the scalar engine's program stores."""
        values = SCALAR_RUN.decode(self.words["scalar"])
        return values["r2"] * _TURNS % (1 << 32)

    def program(
        self, queues: Mapping[str, Sequence[bytes]] | None = None, *, end: int | None = None
    ) -> Program:
        """Return a program of one command a queue, or of other words.

        The rings end at the end of L1, or at another address.
        """
        words = {queue: [word] for queue, word in self.words.items()} if queues is None else queues
        end = self._bench.slice.l1.size if end is None else end
        return Program(words, end - len(words) * _RING_WORDS * WORD_BYTES, _RING_WORDS)

    async def check(self, *without: str) -> None:
        """Compare what the commands of all queues but some wrote."""
        driver = self._bench.driver
        for queue in self._after.keys() - set(without):
            for memory, address, wanted in self._after[queue]:
                found = (
                    await driver.window.read(address, len(wanted))
                    if memory == L1
                    else (await driver.dump_hbm(memory, address, len(wanted))).tobytes()
                )
                assert found == wanted, f"what {queue} wrote at {address:#x} is wrong"
