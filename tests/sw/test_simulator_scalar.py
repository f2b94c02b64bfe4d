"""The scalar engine in the simulator: it issues, waits and signals among the other queues."""

import numpy as np
import pytest

from poblano.config import load
from poblano_golden.errors import PoblanoError
from poblano_sw.assembler import encode
from poblano_sw.program import Program
from poblano_sw.scalar.assembler import assemble_scalar
from poblano_sw.scalar.interpreter import ScalarFaultError
from poblano_sw.simulator import Memories, simulate

TINY = load("tiny", [])
RINGS = 16384
LOADS = """
    address r5, template
next: word r5, 0
    field r1, load.rows.hbm
    field r1, load.rows.l1
    issue load_0
    addi r1, r1, 64
    addi r2, r2, -1
    bne r2, r0, next
    wait 9, {count}
    signal 10, 1
    halt
template: .word load.rows hbm=0 l1=0 length=64 signal_a=9 signal_a_count=1
"""


def run(source, *, more=None, **registers):
    """Run a program of the scalar engine that lies at 0, beside other queues."""
    memories = Memories(TINY.slice, 1 << 16)
    memories.hbm[0][:] = np.random.default_rng(1).integers(0, 256, 1 << 16, np.uint8)
    code = assemble_scalar(TINY, source).code
    memories.l1[: len(code)] = np.frombuffer(code, np.uint8)
    word = encode(TINY.slice, "scalar.run", pc=0, **registers)
    program = Program({"scalar": [word], **(more or {})}, RINGS, 4)
    return simulate(TINY, program, memories), memories


def test_a_loop_issues_more_commands_than_a_queue_holds():
    store = encode(TINY.slice, "store.rows", hbm=0, l1=4096, length=64, wait_a=10, wait_a_count=1)
    more = {"store_0": [store]}
    trace, memories = run(LOADS.format(count=30), more=more, r1=4096, r2=30)
    assert np.array_equal(memories.l1[4096 : 4096 + 30 * 64], memories.hbm[0][4096:][: 30 * 64])
    assert np.array_equal(memories.hbm[0][:64], memories.l1[4096:4160])
    spans = {span.queue: span for span in trace.spans}
    assert len([span for span in trace.spans if span.queue == "load_0"]) == 30
    assert spans["store_0"].issued > spans["load_0"].done
    assert spans["scalar"].done > spans["load_0"].done


def test_alone_a_run_takes_what_the_contract_says():
    source = "let r2, 5\nnext: addi r2, r2, -1\nbne r2, r0, next\nhalt\n"
    trace, _ = run(source)
    # begin, block, set, five of addi and bne with four transfers, halt
    assert trace.cycles == 1 + 3 + 1 + 5 * 2 + 4 + 1


def test_a_wait_for_ever_is_told():
    with pytest.raises(PoblanoError, match="it waits for ever at the scalar engine's program"):
        run("wait 3, 1\nhalt\n")


def test_a_fault_ends_the_simulation():
    with pytest.raises(ScalarFaultError, match="the scalar engine stops: LOOP at"):
        run("here: jump here\n", budget=100)


def test_ring_words_and_issued_words_share_a_queue():
    ring = [encode(TINY.slice, "load.rows", hbm=0, l1=8192 + 64 * i, length=64) for i in range(9)]
    trace, memories = run(LOADS.format(count=9), more={"load_0": ring}, r1=4096, r2=9)
    assert len([span for span in trace.spans if span.queue == "load_0"]) == 18
    assert np.array_equal(memories.l1[4096 : 4096 + 9 * 64], memories.hbm[0][4096:][: 9 * 64])
    for number in range(9):
        assert np.array_equal(memories.l1[8192 + 64 * number :][:64], memories.hbm[0][:64])
