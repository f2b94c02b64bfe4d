"""The simulator: results are the golden ones, a command alone takes what the contract says."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from test_streamed_matmul import CASES, operands

from poblano.commands import by_mnemonic
from poblano.config import load
from poblano_golden.errors import PoblanoError
from poblano_sw.program import Program
from poblano_sw.simulator import Memories, simulate
from poblano_sw.streamed_matmul import StreamedMatmul

TINY = load("tiny", ["slice.l1.size=16 KiB"])
HBM = 1 << 17
RINGS = 15 << 10


def run(queues, memories=None):
    memories = memories or Memories(TINY.slice, HBM)
    return simulate(TINY, Program(queues, ring_base=RINGS, ring_words=4), memories), memories


def streamed(product, chunks, buffers, seed):
    plan = StreamedMatmul(TINY.slice, product, chunks, buffers, hbm=4096)
    a, b = operands(product, seed)
    memories = Memories(TINY.slice, HBM)
    for address, data in plan.images(a, b):
        memories.hbm[0][address : address + len(data)] = data
    return plan, plan.golden_bytes(a, b), memories


@pytest.mark.parametrize(("product", "chunks", "buffers"), CASES)
def test_streamed_products_are_golden(product, chunks, buffers):
    plan, expected, memories = streamed(product, chunks, buffers, 1)
    trace, _ = run(plan.queues, memories)
    assert np.array_equal(memories.hbm[0][plan.hbm_d : plan.hbm_end], expected)
    assert {span.queue for span in trace.spans} == set(plan.queues)
    assert len(trace.spans) == sum(len(words) for words in plan.queues.values())
    for queue in plan.queues:
        spans = trace.of_queue(queue)
        issues, ends = zip(*spans, strict=True)
        assert list(issues) == sorted(issues)
        assert list(ends) == sorted(ends)


def test_the_same_program_gives_the_same_trace():
    plan, _, memories = streamed(*CASES[1], 2)
    first, _ = run(plan.queues, memories)
    _, _, again = streamed(*CASES[1], 2)
    assert run(plan.queues, again)[0] == first


def random_move(random, mnemonic):
    length, rows = random.choice((1, 17, 90, 300)), random.randint(1, 8)
    values = {"length": length, "rows": rows}
    for side, size in (("l1", 8000), ("hbm", 20_000)):
        values[f"{side}_row_stride"] = random.choice((length, 128, 333))
        values[side] = random.randrange(size - length - 8 * 333)
    if mnemonic.endswith(("gather", "scatter")):
        values["indices"] = 4 * random.randrange(2500, 3000)
    return values


@pytest.mark.parametrize(
    "mnemonic", ["load.rows", "load.gather", "store.rows", "store.scatter", "tensor.matmul"]
)
def test_a_command_alone_takes_what_the_contract_says(mnemonic):
    random = Random(mnemonic)
    command = by_mnemonic(mnemonic)
    for _ in range(20):
        memories = Memories(TINY.slice, HBM)
        memories.l1[:] = np.frombuffer(random.randbytes(len(memories.l1)), np.uint8)
        arguments = []
        if mnemonic == "tensor.matmul":
            plan, _, _ = streamed(*CASES[0], 3)
            values = {**plan.matmul_values(0), "n": random.randint(1, 32)}
            values |= {name: 0 for name in values if name.endswith("_count")}
            values |= {f"{half}_code_stride": 512 for half in "abd"}
        else:
            values = random_move(random, mnemonic)
            if "indices" in values:
                indices = [random.randrange(9) for _ in range(values["rows"])]
                raw = np.array(indices, "<u4").view(np.uint8)
                memories.l1[values["indices"] : values["indices"] + len(raw)] = raw
                arguments = [indices]
        values = command.complete(values)
        queue = "tensor" if command.engine == "tensor" else f"{command.engine}_0"
        trace, _ = run({queue: [command.encode(values)]}, memories)
        assert trace.cycles == command.cycles(TINY.slice, values, *arguments)


def test_moves_do_what_they_say():
    memories = Memories(TINY.slice, HBM)
    data = np.arange(256, dtype=np.uint8)
    memories.hbm[0][1000:1256] = data
    memories.l1[64:76] = np.array([2, 0, 1], "<u4").view(np.uint8)
    gather = by_mnemonic("load.gather")
    word = gather.encode(
        gather.complete(
            {"hbm": 1000, "l1": 200, "length": 3, "rows": 3, "hbm_row_stride": 10,
             "l1_row_stride": 5, "indices": 64}
        )
    )  # fmt: skip
    run({"load_0": [word]}, memories)
    assert memories.l1[200:215].tolist() == [20, 21, 22, 0, 0, 0, 1, 2, 0, 0, 10, 11, 12, 0, 0]


def test_what_cannot_end_is_refused():
    load_rows = by_mnemonic("load.rows")
    word = load_rows.encode(
        load_rows.complete({"hbm": 0, "l1": 0, "length": 4, "wait_a": 3, "wait_a_count": 1})
    )
    with pytest.raises(PoblanoError, match="queue load_0, command 0: semaphore 3"):
        run({"load_0": [word]})


def test_a_move_past_the_memory_is_named():
    load_rows = by_mnemonic("load.rows")
    word = load_rows.encode(load_rows.complete({"hbm": HBM - 3, "l1": 0, "length": 4}))
    with pytest.raises(PoblanoError, match=f"must end in the {HBM} bytes of HBM port 0"):
        run({"load_0": [word]})
