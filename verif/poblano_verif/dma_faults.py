"""Tests of what goes wrong, which both halves of the DMA engine pass; their benches import them."""

from __future__ import annotations

from typing import Any

import cocotb

from poblano.commands import by_mnemonic
from poblano.faults import Fault
from poblano_verif.axi_memory import Behaviour
from poblano_verif.dma_bench import DmaBench
from poblano_verif.dma_moves import LIMIT, count
from poblano_verif.dma_workload import plain_move, put_indices, random_move, rows_command

__all__ = [
    "illegal_words",
    "places_outside",
    "reset_in_flight",
    "silent_memory",
    "slow_l1_is_no_silence",
]


def mnemonics(bench: DmaBench) -> tuple[str, str]:
    """Return the names of the half's two commands."""
    return ("load.rows", "load.gather") if bench.is_load else ("store.rows", "store.scatter")


async def works_again(bench: DmaBench) -> None:
    """Reset, and run a move exactly."""
    await bench.reset(behaviour=Behaviour())
    await bench.check([random_move(bench, 300)])


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def illegal_words(dut: Any) -> None:
    """A word that breaks a rule of the table is refused; what came before it is not."""
    bench = DmaBench(dut, Behaviour(latency=8))
    await bench.start()
    rows, indexed = map(by_mnemonic, mnemonics(bench))
    good = {"hbm": 8, "l1": 16, "length": 40, "rows": 1}
    cases = [
        (bytes([opcode, *rows.encode(good)[1:]]), Fault.OPCODE, 0)
        for opcode in (0x00, 0xFF, 0x10, 0x28 if bench.is_load else 0x20)
    ]
    for command, names in ((rows, ("length", "rows", "planes")), (indexed, ("length", "rows"))):
        values = good if command is rows else good | {"indices": 64}
        place = [item.name for item in command.fields].index
        cases += [(command.encode({**values, name: 0}), Fault.FIELD, place(name)) for name in names]
        if command is indexed:
            cases += [
                (command.encode({**values, "indices": odd}), Fault.FIELD, place("indices"))
                for odd in (1, 2, 67)
            ]
    for word, kind, field in bench.random.sample(cases, count(len(cases))):
        before = rows_command(bench, hbm=3, l1=9, length=100)
        wanted = bench.after([before])
        bench.commands.send(before, word, before)
        await bench.finish()
        bench.expect_fault(kind, field=field, number=1)
        bench.compare(wanted, "before an illegal word")
        await bench.reset()
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def places_outside(dut: Any) -> None:
    """A row that leaves L1 or HBM stops the engine; rows before it are moved, none after it."""
    bench = DmaBench(dut, Behaviour(latency=8), window=1 << 17)
    await bench.start()
    rows, indexed = map(by_mnemonic, mnemonics(bench))
    size, end = len(bench.l1), bench.slice.hbm.port_bytes
    put_indices(bench, 0, [1, 2, 7, 0xFFFFFFFF, 3])
    good = {"hbm": 8, "l1": 256, "length": 40}
    cases = [
        (rows, good | {"l1": size - 39}, 0, size - 39),
        (rows, good | {"l1": size - 80, "rows": 9, "l1_row_stride": 20}, 3, size - 20),
        (rows, good | {"rows": 4, "l1_row_stride": size - 300}, 2, 2 * size - 344),
        (rows, good | {"planes": 3, "l1_plane_stride": size}, 1, size + 256),
        (rows, good | {"hbm": end - 39}, 0, end - 39),
        (rows, good | {"hbm": (1 << 40) - 1, "length": (1 << 24) - 1}, 0, (1 << 40) - 1),
        (rows, good | {"rows": 4, "hbm_row_stride": (1 << 40) - 1}, 1, (1 << 40) + 7),
        (rows, good | {"planes": 3, "hbm_plane_stride": end - 20}, 1, end - 12),
        (indexed, good | {"rows": 4, "hbm_row_stride": 1 << 12}, None, None),
        (indexed, good | {"rows": 5, "hbm_row_stride": 1 << 14}, None, None),
        (indexed, good | {"rows": 5, "hbm_row_stride": (1 << 40) - 1}, None, None),
        (indexed, good | {"rows": 9, "hbm_row_stride": 16, "indices": size - 12}, 3, size),
        (indexed, good | {"rows": 9, "hbm_row_stride": 16, "indices": (1 << 24) - 4}, 0, None),
    ]
    for command, given, moved, address in bench.random.sample(cases, count(len(cases))):
        values = command.complete({"indices": 0, **given} if command is indexed else given)
        if command is indexed and address is None and values["indices"] == 0:
            moved, address = _first_outside([1, 2, 7, 0xFFFFFFFF, 3], values, end)
        elif address is None:
            address = values["indices"]
        if command is indexed and values["indices"] > 4096:
            put_indices(bench, size - 12, [1, 2, 3])
        wanted = bench.after([command.encode(values)], rows=moved)
        bench.commands.send(command.encode(values), rows_command(bench, hbm=0, l1=0, length=9))
        await bench.finish()
        bench.expect_fault(Fault.ADDRESS, address=address)
        bench.compare(wanted, f"a row outside: {bench.describe(command.encode(values))}")
        assert not any(issued.done >= 0 for issued in bench.commands.issued), (
            "a refused move is not done"
        )
        await bench.reset()
    await works_again(bench)


def _first_outside(indices: list[int], values: dict[str, int], end: int) -> tuple[int, int]:
    """Return the number of rows before the first that leaves HBM, and where it begins."""
    for number, index in enumerate(indices):
        place = values["hbm"] + index * values["hbm_row_stride"]
        if place + values["length"] > end:
            return number, place
    raise AssertionError("some row must leave HBM")


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def silent_memory(dut: Any) -> None:
    """A memory that stops answering is noticed after `patience` cycles, and only then."""
    behaviours = (
        (Behaviour(latency=8, mute_from=0), 0),
        (Behaviour(latency=8, mute_from=2), 2),
        (Behaviour(latency=8, accepts=False), 0),
    )
    bench = DmaBench(dut, Behaviour())
    await bench.start()
    window = min(4096, 256 * bench.width)
    word = rows_command(bench, hbm=8, l1=0, length=3 * window + 500)
    long = 4 * window // bench.width + 500
    for behaviour, oldest in behaviours:
        await bench.reset(patience=300, behaviour=behaviour)
        bench.commands.send(word)
        for _ in range(long):
            await bench.dut.clock.edge()
            if bench.fault["kind"]:
                break
        assert 290 < bench.quiet < 310, f"patience of 300 cycles ended after {bench.quiet}"
        await bench.dut.clock.edges(20)  # what is offered still stays
        bench.expect_fault(Fault.SILENCE, address=oldest * window if oldest else 8)
        await works_again(bench)
        await bench.reset(patience=0, behaviour=behaviour)
        bench.commands.send(word)
        await bench.dut.clock.edges(long + 1000)
        bench.expect_fault(Fault.NONE)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def slow_l1_is_no_silence(dut: Any) -> None:
    """L1 makes the engine wait far longer than its patience with the memory."""
    bench = DmaBench(dut, Behaviour(latency=8), l1_pause=0.95)
    await bench.start(patience=12)
    await bench.check([rows_command(bench, hbm=5, l1=70, length=2500)], exactly=False)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reset_in_flight(dut: Any) -> None:
    """A reset at any moment of a move; the engine then works as after the first."""
    bench = DmaBench(dut, Behaviour(), l1_pause=0.2)
    await bench.start()
    for _ in range(count(12)):
        bench.commands.send(random_move(bench, 2000), plain_move(bench), plain_move(bench))
        await bench.dut.clock.edges(bench.random.randint(1, 250))
        bench.scratchpad.pause = 0.0
        await works_again(bench)
        bench.scratchpad.pause = 0.2
