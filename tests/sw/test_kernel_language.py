"""The kernel language: order by semaphores, places, operands, and errors that name the line."""

import inspect
from random import Random

import numpy as np
import pytest

from poblano.config import load
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXFP4, MXINT8
from poblano_sw.kernel import BF16, UINT32, Builder, KernelError, dependencies
from poblano_sw.kernel.pipeline import pipelined
from poblano_sw.simulator import Memories, simulate
from poblano_verif.kernel_workload import in_order, random_kernel

TINY = load("tiny", [])
NOTHING = np.zeros(0, np.uint8)


def overlapped(builder, memory):
    memories = Memories(TINY.slice, len(memory))
    memories.hbm[0][:] = memory
    simulate(TINY, builder.program(), memories)
    return memories


def kernel_and_memory(seed):
    random = Random(seed)
    builder = Builder(TINY)
    random_kernel(random, builder, random.randint(5, 30))
    numbers = np.random.default_rng(seed).standard_normal(builder.hbm_end // 4, np.float32)
    return builder, numbers.view(np.uint8)


@pytest.mark.parametrize("seed", range(60))
def test_overlapped_commands_do_what_the_kernel_says_in_order(seed):
    builder, memory = kernel_and_memory(seed)
    wanted, found = in_order(builder, NOTHING, memory), overlapped(builder, memory)
    end = builder.l1_peak
    assert np.array_equal(found.hbm[0], wanted.hbm[0])
    assert np.array_equal(found.l1[:end], wanted.l1[:end])


def test_without_waits_the_order_is_lost(monkeypatch):
    monkeypatch.setattr(dependencies.Ordering, "add", lambda *_: None)
    monkeypatch.setattr("poblano_sw.program.Program.check", lambda *_: None)
    different = 0
    for seed in range(10):
        builder, memory = kernel_and_memory(seed)
        wanted, found = in_order(builder, NOTHING, memory), overlapped(builder, memory)
        different += not np.array_equal(found.hbm[0], wanted.hbm[0])
    assert different > 0


def test_independent_commands_wait_for_nothing():
    builder = Builder(TINY)
    for _ in range(3):
        builder.load(builder.matrix(2, 8), builder.matrix(2, 8, place="hbm_0"))
        builder.vector(builder.matrix(2, 8), d=builder.matrix(2, 8))
    assert not any(operation.waits for operation in builder.operations)


def test_what_a_wait_implies_is_not_waited_for():
    builder = Builder(TINY)
    x, outside = builder.matrix(1, 8), builder.matrix(1, 8, place="hbm_0")
    builder.load(x, outside)
    builder.vector(x, d=x)
    builder.store(outside, x)  # after the vector engine, which was after the load
    store = builder.operations[-1]
    assert set(store.waits) == {"vector"}


def test_a_scope_gives_its_bytes_back():
    builder = Builder(TINY)
    with builder.scope():
        first = builder.matrix(4, 64)
    second = builder.matrix(4, 64)
    assert first.address == second.address
    assert builder.l1_peak == 4 * 64 * 4


def test_a_pipeline_runs_its_jobs_a_stage_apart():
    said = []

    def job(name):
        for stage in range(3):
            said.append(f"{name}{stage}")
            yield

    pipelined(job(name) for name in "ab")
    assert said == ["a0", "a1", "b0", "a2", "b1", "b2"]


def test_a_chain_that_is_set_is_not_set_again():
    builder = Builder(TINY)
    x = builder.matrix(1, 8)
    for _ in range(3):
        builder.vector(x, factor1=2.0, d=x)
    names = [operation.mnemonic for operation in builder.operations]
    assert names == ["vector.chain", "vector.pass", "vector.pass", "vector.pass"]


def wrong(builder, what):
    """Do something that is refused."""
    x, y = builder.matrix(2, 32), builder.matrix(2, 32, place="hbm_0")
    b = builder.blocks(2, 32, MXFP4)
    match what:
        case "place":
            builder.matrix(1, 1, place="hbm_7")
        case "overflow":
            builder.matrix(1024, 1024, name="much")
        case "shape":
            builder.load(x[:1], y)
        case "columns":
            builder.matmul(x, b, builder.blocks(2, 64, MXFP4))
        case "operand":
            builder.vector(x, factor1=x[:, :3], d=x)
        case "operands":
            more = [builder.matrix(2, 32) for _ in range(3)]
            builder.vector(
                x, factor1=more[0], operation1=("add", more[1]), operation2=("add", more[2]), d=x
            )
        case "function":
            builder.vector(x, function="tanh", d=x)
        case "indices":
            builder.topk(x, builder.matrix(2, 3), builder.matrix(2, 3))
        case "k":
            builder.topk(x, builder.matrix(2, 33), builder.matrix(2, 33, UINT32))
        case "empty":
            builder.matrix(0, 4)
        case "view":
            builder.view(x, 3, 32)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("place", "a place must be l1, hbm_0; got 'hbm_7'"),
        ("overflow", "much takes 4194304 bytes of L1 at "),
        ("shape", "shapes must be (2, 32); got (1, 32)"),
        ("columns", "columns of a and b must be 64; got 32"),
        ("operand", "an operand must be [1, 32], [2, 32] or 2 adjacent numbers; "),
        ("operands", "a pass has no more room than b, c for matrix [2, 32] fp32"),
        ("function", "function must be one of pass, negate, absolute, exp2, exp, sigmoid"),
        ("indices", "format of the indices must be"),
        ("k", "k must be at most cols, 32; got 33"),
        ("empty", "must be at least 1; got [0, 4]"),
        ("view", "must be at most [2, 32]; got [3, 32]"),
    ],
)
def test_an_error_names_the_kernels_line(what, message):
    with pytest.raises(KernelError) as error:
        wrong(Builder(TINY), what)
    place, _, told = str(error.value).partition(": ")
    assert message in told
    line = int(place.removeprefix("test_kernel_language.py:"))
    source = inspect.getsource(wrong).splitlines()
    assert "builder." in source[line - inspect.getsourcelines(wrong)[1]]


def test_a_slice_of_columns_must_be_whole_blocks():
    b = Builder(TINY).blocks(2, 64, MXFP4)
    with pytest.raises(KernelError, match=r"py:.*must be whole blocks of 32; got 0:16"):
        _ = b[:, :16]
    with pytest.raises(KernelError, match=r"py:.*must be a range within 0:2; got"):
        _ = b[1:5]


def test_a_kernel_without_commands_is_refused():
    with pytest.raises(PoblanoError, match="it has no command"):
        Builder(TINY).program()


def three_waits(builder, *, before):
    """Let a product need three queues; perhaps after one that needs none."""
    d, a, b = builder.matrix(4, 4), builder.blocks(4, 32, MXINT8), builder.blocks(4, 32, MXINT8)
    other = builder.blocks(4, 32, MXINT8)
    if before:
        builder.matmul(builder.matrix(4, 4), other, other)
    builder.store(builder.matrix(4, 4, place="hbm_0"), d)
    builder.vector(builder.matrix(4, 32), d=a)
    builder.load(b, builder.blocks(4, 32, MXINT8, place="hbm_0"))
    builder.matmul(d, a, b)


def test_a_third_wait_goes_to_a_command_before():
    builder = Builder(TINY)
    three_waits(builder, before=True)
    waits = [
        len(operation.waits) for operation in builder.operations if operation.queue == "tensor"
    ]
    assert waits == [1, 2]
    builder.program().check(TINY)


def test_more_than_two_queues_to_wait_for_are_refused_with_the_line():
    builder = Builder(TINY)
    three_waits(builder, before=False)
    with pytest.raises(PoblanoError, match=r"py:\d+: tensor.matmul must wait at most two queues"):
        builder.program()


def test_numbers_are_read_as_they_were_written():
    builder = Builder(TINY)
    memory = np.zeros(4096, np.uint8)
    x = np.random.default_rng(1).standard_normal((3, 5), np.float32)
    wide = builder.matrix(3, 8)[:, 2:7]
    wide.write(memory, x)
    assert np.array_equal(wide.read(memory), x)
    narrow = builder.matrix(3, 5, BF16)
    narrow.write(memory, x)
    assert np.abs(narrow.read(memory) / x - 1).max() < 2**-8
