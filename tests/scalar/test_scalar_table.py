"""The instruction table: encodings, costs, and the page made from it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from poblano.scalar.instructions import (
    INSTRUCTIONS,
    InstructionError,
    Kind,
    find,
    pack_field,
    unpack_field,
)
from poblano.scalar.reference import markdown
from poblano.scalar.timing import BLOCK_COST, Step, cost, run_cycles

BY_NAME = {instruction.mnemonic: instruction for instruction in INSTRUCTIONS}


def test_names_and_opcodes_are_unique():
    assert len(BY_NAME) == len({i.opcode for i in INSTRUCTIONS}) == len(INSTRUCTIONS)
    assert {i.kind for i in INSTRUCTIONS} == set(Kind)


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=lambda i: i.mnemonic)
def test_a_word_gives_its_operands_back(instruction):
    random = Random(1)
    taken = 0xFF
    for operand in instruction.operands:
        bits = ((1 << operand.width) - 1) << operand.low
        assert not taken & bits
        taken |= bits
    assert taken == instruction.mask < 1 << 32
    for _ in range(50):
        numbers = [random.choice(operand.range) for operand in instruction.operands]
        if instruction.kind is Kind.FIELD:
            numbers[1] = pack_field(random.randint(0, 448), random.randint(1, 64))
        word = instruction.encode(numbers)
        assert find(word) is instruction
        assert list(instruction.decode(word)) == numbers
        for bit in range(32):
            if not taken >> bit & 1:
                assert find(word | 1 << bit) is None


def test_zeros_and_ones_are_no_instruction():
    assert find(0) is None
    assert find(0xFFFF_FFFF) is None


@pytest.mark.parametrize(("offset", "width"), [(0, 1), (511, 1), (448, 64), (72, 40)])
def test_fields_are_packed(offset, width):
    assert unpack_field(pack_field(offset, width)) == (offset, width)


@pytest.mark.parametrize(("offset", "width"), [(0, 0), (0, 65), (512, 1), (449, 64), (-1, 4)])
def test_fields_end_in_the_word(offset, width):
    with pytest.raises(InstructionError, match=f"got {width} bits at {offset}$"):
        pack_field(offset, width)


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("addi", (1, 2, 1 << 15), "imm of addi must be in -32768..32767; got 32768"),
        ("add", (1, 2, 16), "rb of add must be in 0..15; got 16"),
        ("append", (1, -1), "imm of append must be in 0..1048575; got -1"),
        ("jump", (), "jump takes 1 operands; got 0"),
    ],
)
def test_what_does_not_fit_is_named(name, numbers, message):
    with pytest.raises(InstructionError) as error:
        BY_NAME[name].encode(numbers)
    assert str(error.value) == message


def test_cycles_are_a_sum():
    add, load, branch = BY_NAME["add"], BY_NAME["load64"], BY_NAME["beq"]
    begin = 1 + BLOCK_COST.total

    def cycles(*steps):
        return run_cycles(None, {}, steps)

    assert cycles(Step(0, add)) == begin + 1
    assert cycles(Step(0, add), Step(4, load)) == begin + 1 + 4
    assert cycles(Step(0, add), Step(4, load, waits=9)) == begin + 1 + 4 + 9
    assert cycles(Step(60, add), Step(64, add)) == begin + 1 + 3 + 1
    assert cycles(Step(0, branch), Step(4, add)) == begin + 2
    assert cycles(Step(0, branch, transfers=True), Step(32, add)) == begin + 3
    assert cycles(Step(0, branch, transfers=True), Step(64, add)) == begin + 1 + 3 + 1
    assert cycles(Step(64, branch, transfers=True), Step(64, add)) == begin + 3


def test_most_instructions_take_a_cycle():
    slow = {kind.name: cost(kind).total for kind in Kind if cost(kind).total > 1}
    assert slow == {"MULTIPLY": 6, "LOAD": 4, "WORD": 3, "STORE": 2}


def test_the_page_is_the_table():
    page = Path(__file__).parents[2] / "docs" / "scalar.md"
    assert page.read_text() == markdown(), "poblano commands --scalar --markdown > docs/scalar.md"
