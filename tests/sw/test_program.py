"""What a program must be to run to its end."""

import re

import pytest

from poblano.config import load
from poblano_golden.errors import PoblanoError
from poblano_sw.assembler import encode
from poblano_sw.program import Program

TINY = load("tiny")
RINGS = 0x8000


def move(half="load", **values):
    """Return the word of a small move."""
    return encode(TINY.slice, f"{half}.rows", **{"hbm": 0, "l1": 0, "length": 64, **values})


def wait(semaphore, count=1, half="a"):
    return {f"wait_{half}": semaphore, f"wait_{half}_count": count}


def signal(semaphore, count=1, half="a"):
    return {f"signal_{half}": semaphore, f"signal_{half}_count": count}


def refusal(queues, **rings):
    with pytest.raises(PoblanoError) as caught:
        Program(queues, **{"ring_base": RINGS, **rings}).check(TINY)
    return str(caught.value)


def test_queues_that_hand_over_and_back_are_legal():
    loads = [move(**signal(3)), move(**signal(3)), *[move(**wait(4), **signal(3))] * 2]
    stores = [move("store", **wait(3), **signal(4))] * 2 + [move("store", **wait(3))] * 2
    Program({"load_0": loads, "store_0": stores}, RINGS).check(TINY)
    Program({"store_0": stores, "load_0": loads}, RINGS).check(TINY)


def test_rings_lie_one_behind_the_other():
    program = Program({"store_0": [move("store")], "load_0": [move()]}, RINGS, 4)
    assert program.rings == {"store_0": RINGS, "load_0": RINGS + 4 * 64}
    size = TINY.slice.l1.size
    Program(program.queues, size - 2 * program.ring_bytes, 4).check(TINY)
    message = "rings must end at or below byte 0x10000 of L1; got 0x10040"
    assert refusal(program.queues, ring_base=size - 2 * 256 + 64, ring_words=4) == message


def test_a_ring_is_aligned_and_a_power_of_two():
    queues = {"load_0": [move()]}
    assert refusal(queues, ring_base=96) == "rings must begin at a multiple of 64; got 0x60"
    for words in (0, 3, -4, 1 << 16):
        message = f"the words of a ring must be a power of two up to 32768; got {words}"
        assert refusal(queues, ring_words=words) == message


def test_queues_exist_and_have_commands():
    message = "a queue must be one of tensor, vector, scalar, load_0, store_0; got 'load_1'"
    assert refusal({"load_1": [move()]}) == message
    assert refusal({"load_0": []}) == "queue load_0 must have a command; it has none"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (move("store"), "the command must be one of load; got store.rows"),
        (move()[:-1], "a word must have 64 bytes; got 63"),
        (bytes(64), "an opcode must be one of .*; got 0x00"),
    ],
)
def test_a_word_is_a_command_of_its_engine(word, message):
    text = refusal({"load_0": [move(), word]})
    assert re.fullmatch(f"queue load_0, command 1: {message}", text)


def test_a_command_is_legal_for_the_configuration():
    large = load("tiny", ["slice.l1.size=128 KiB"]).slice
    word = encode(large, "load.rows", hbm=0, l1=100_000, length=64)
    assert refusal({"load_0": [word]}).startswith("queue load_0, command 0: l1 must end inside L1")


def test_a_wait_without_enough_signals():
    queues = {"load_0": [move(**signal(5, 2))], "store_0": [move("store", **wait(5, 3))]}
    assert refusal(queues) == (
        "queue store_0, command 0: semaphore 5 must be signalled 3 times before; "
        "it need not be more than 2 times"
    )


def test_queues_that_wait_for_each_other():
    """Signals are enough in number, and none can come."""
    queues = {
        "load_0": [move(), move(**wait(1), **signal(2))],
        "store_0": [move("store", **wait(2), **signal(1))],
    }
    assert refusal(queues) == (
        "queue load_0, command 1: semaphore 1 must be signalled 1 times before; "
        "it need not be more than 0 times"
    )


def test_the_second_semaphore_of_a_command_counts_too():
    queues = {
        "load_0": [move(**signal(1), **signal(2, half="b"))],
        "store_0": [move("store", **wait(1), **wait(2, 2, half="b"))],
    }
    assert "queue store_0, command 0: semaphore 2 must be signalled 2" in refusal(queues)


def test_signals_that_are_left_over():
    queues = {
        "load_0": [move(**signal(7, 5)), move(**signal(7)), move()],
        "store_0": [move("store", **wait(7, 4))],
    }
    assert refusal(queues) == (
        "queue load_0, command 1: semaphore 7 must be waited for as often as it is signalled; "
        "2 signals are left over"
    )
