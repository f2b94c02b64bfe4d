"""The interpreter against results and cycles worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from poblano.commands import LOAD_ROWS, CommandError
from poblano.config import load
from poblano.faults import Fault
from poblano.host.registers import queue_names
from poblano_sw.assembler import encode
from poblano_sw.scalar import (
    Issue,
    Read,
    ScalarFaultError,
    ScalarRun,
    Signal,
    Store,
    Wait,
    assemble_scalar,
)

TINY = load("tiny", [])
QUEUES = queue_names(TINY)
SEMAPHORES = TINY.slice.host.semaphores
MASK = (1 << 64) - 1


def make(text, origin=0, **fields):
    program = assemble_scalar(TINY, text)
    l1 = np.zeros(TINY.slice.l1.size, np.uint8)
    l1[origin : origin + len(program.code)] = np.frombuffer(program.code, np.uint8)
    word = encode(TINY.slice, "scalar.run", pc=origin, **fields)
    return ScalarRun(TINY.slice, len(QUEUES), l1, word), l1


EXPERTS = """
    address r5, template
    let r7, 0x40000000
next: load32 r6, r1, 0
    mul r6, r6, r7
    word r5, 0
    field r6, load.rows.hbm
    issue load_0
    addi r1, r1, 4
    addi r2, r2, -1
    bne r2, r0, next
    wait 1, 3
    signal 2, 1
    halt
template: .word load.rows hbm=0 l1=0x8000 length=4096 signal_a=1 signal_a_count=1
"""


@pytest.mark.parametrize("origin", [0, 0x4C0])
def test_addresses_come_from_data(origin):
    run, l1 = make(EXPERTS, origin, r1=0x6000, r2=3)
    l1[0x6000:0x600C] = np.array([5, 1023, 0], "<u4").view(np.uint8)
    cycles, events = run.finish()
    issues = [event for event in events if isinstance(event, Issue)]
    values = [LOAD_ROWS.decode(event.word) for event in issues]
    assert [v["hbm"] for v in values] == [5 << 30, 1023 << 30, 0]
    assert all((v["l1"], v["length"], v["signal_a_count"]) == (0x8000, 4096, 1) for v in values)
    assert [event.queue for event in issues] == [QUEUES.index("load_0")] * 3
    assert (events[-2].semaphore, events[-2].count) == (1, 3)
    assert isinstance(events[-2], Wait)
    assert events[-1] == Signal(events[-2].cycle + 1, 2, 1)
    a_round = 4 + 6 + 3 + 1 + 1 + 1 + 1 + 1
    gaps = [b.cycle - a.cycle for a, b in pairwise(issues)]
    assert gaps == [a_round + 1] * 2
    assert cycles == 1 + 3 + 3 + 3 * a_round + 2 + 3


def test_waits_come_on_top():
    run, _ = make("wait 1, 1\nissue tensor\nhalt")
    events = run.events(100)
    assert next(events) == Read(102, 0, 64)
    assert events.send(110) == Wait(113, 1, 1)
    issue = events.send(120)
    assert (issue.cycle, issue.queue) == (121, 0)
    with pytest.raises(StopIteration) as end:
        events.send(121)
    assert end.value.value == 123


def test_the_buffer_begins_as_the_run_itself():
    run, _ = make("addi r1, r1, 1\nfield r1, scalar.run.r1\nissue 2\nhalt", r1=41)
    _, events = run.finish()
    assert events[-1].word == encode(TINY.slice, "scalar.run", pc=0, r1=42)


@pytest.mark.parametrize(
    ("code", "a", "b", "result"),
    [
        ("add", MASK, 2, 1),
        ("sub", 1, 2, MASK),
        ("mul", 1 << 40, 1 << 23, 1 << 63),
        ("mul", MASK, MASK, 1),
        ("mul", 0x1_0000_0001, 0x1_0000_0001, 0x2_0000_0001),
        ("shl", 3, 63, 1 << 63),
        ("shl", 3, 64, 3),
        ("shr", MASK, 63, 1),
        ("shr", 1 << 63, 65, 1 << 62),
        ("slt", MASK, 0, 1),
        ("slt", 1 << 63, (1 << 63) - 1, 1),
        ("sltu", MASK, 0, 0),
        ("sltu", 0, MASK, 1),
        ("xor", MASK, 5, MASK - 5),
    ],
)
def test_numbers_wrap(code, a, b, result):
    run, _ = make(f"{code} r3, r1, r2\nadd r0, r1, r1\nhalt", r1=a, r2=b)
    run.finish()
    assert run.registers[3] == result
    assert run.registers[0] == 0


def test_bytes_are_little_endian_and_zeros_enter():
    text = """
    store32 r1, r2, 4
    store16 r1, r2, 14
    load64 r3, r2, 0
    load8 r4, r2, 7
    load16 r5, r2, 6
    halt
    """
    run, l1 = make(text, r1=0xAABB_CCDD_EEFF_8899, r2=0x1000)
    _, events = run.finish()
    assert l1[0x1004:0x1008].tolist() == [0x99, 0x88, 0xFF, 0xEE]
    assert l1[0x100E:0x1010].tolist() == [0x99, 0x88]
    assert run.registers[3:6] == [0xEEFF_8899_0000_0000, 0xEE, 0xEEFF]
    assert [type(e) for e in events] == [Read, Store, Store, Read, Read, Read]


@pytest.mark.parametrize(
    ("text", "kind", "address"),
    [
        (".data32 0\nhalt", Fault.INSTRUCTION, 0),
        ("jump 0", Fault.LOOP, 0),
        ("load64 r1, r2, 4", Fault.ALIGNMENT, 4),
        ("load8 r1, r2, -1", Fault.ADDRESS, (1 << 40) - 1),
        ("jump 16384", Fault.ADDRESS, 65536),
        ("set r1, 6\nreturn r1", Fault.ALIGNMENT, 6),
        (f"wait {SEMAPHORES}, 1", Fault.SEMAPHORE, 0),
        (f"issue {len(QUEUES)}", Fault.INSTRUCTION, 0),
    ],
)
def test_faults(text, kind, address):
    run, _ = make(text, budget=1000)
    with pytest.raises(
        ScalarFaultError, match=f"the scalar engine stops: {kind.name} at "
    ) as error:
        run.finish()
    assert (error.value.kind, error.value.address) == (kind, address)


@pytest.mark.parametrize(
    ("pc", "message"),
    [
        (2, "pc must be a multiple of 4 bytes; got 2"),
        (65536, "pc must lie inside L1, below byte 65536; got 65536"),
    ],
)
def test_a_run_begins_in_l1(pc, message):
    with pytest.raises(CommandError, match=f"^{message}$"):
        encode(TINY.slice, "scalar.run", pc=pc)
