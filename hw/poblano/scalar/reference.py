"""The reference of the scalar engine's instructions as Markdown, made from the table."""

from __future__ import annotations

from poblano.scalar.instructions import (
    BLOCK_BYTES,
    INSTRUCTIONS,
    Form,
    Instruction,
    Kind,
    Operand,
)
from poblano.scalar.timing import BEGIN_CYCLES, BLOCK_COST, TRANSFER_CYCLES, cost

__all__ = ["markdown"]

_GROUPS = {
    "Arithmetic": (Kind.ALU, Kind.MULTIPLY, Kind.SET, Kind.APPEND, Kind.ADDRESS),
    "Loads and stores": (Kind.LOAD, Kind.STORE),
    "Control": (Kind.BRANCH, Kind.JUMP, Kind.CALL, Kind.RETURN, Kind.HALT),
    "Commands": (Kind.WORD, Kind.FIELD, Kind.ISSUE),
    "Semaphores": (Kind.WAIT, Kind.SIGNAL),
}

_HEAD = f"""# The scalar engine

This page is made from the instruction table by `poblano commands --scalar --markdown`.

`scalar.run` runs a program that lies in L1. Registers `r1` to `r4` come from the command, the
others begin as 0; `r0` is always 0. Registers have 64 bits and wrap; a signed operand is extended
by its sign. An instruction has 32 bits, little endian, at a multiple of 4; bits that no operand
takes are 0. An access to L1 is at a multiple of its size: 1 to 8 bytes, 64 for a command word.

## A program as text

```
    address r5, template     # r1: where uint32 expert ids lie, r2: how many
    let r7, 0x40000000       # bytes of an expert
next: load32 r6, r1, 0
    mul r6, r6, r7
    word r5, 0
    field r6, load.rows.hbm
    issue load_0
    addi r1, r1, 4
    addi r2, r2, -1
    bne r2, r0, next
    halt
template: .word load.rows hbm=0 l1=0x8000 length=4096 signal_a=1 signal_a_count=1
```

A program runs wherever it lies, at a multiple of 64. `let rd, number` makes one to four
instructions, a `set` and an `append` for every 20 bits more. `.word` holds a command word, `.data8`
to `.data64` hold numbers at a multiple of their size, `.align` goes on at a multiple of 4 to 64.

## Commands

The command buffer holds one command word, at the beginning the run's own. `word` loads it, `field`
changes a field, written as `engine.command.field` or as `offset:width` in bits, `issue` sends it. A
word that is sent can be issued by its queue two cycles later; it goes before words of the ring.

## Cycles

Instructions are executed one after the other. A run takes the cycles of its instructions, and

* {BEGIN_CYCLES} cycle to begin;
* {BLOCK_COST.total} cycles at the beginning, and wherever the next instruction lies in another
  block of {BLOCK_BYTES} bytes of code than the one before: the block is read;
* {TRANSFER_CYCLES} cycle for a transfer of control within a block: a branch that is taken, a jump,
  a call, a return.

What it waits for comes on top: L1, a queue without room, a semaphore. A block of code stays as it
was read until another is read, even if L1 changes. `poblano.scalar.timing` is this as a function.

## Faults

A fault ends the run: `instruction` (no legal instruction), `alignment`, `address` (outside L1),
`loop` (the budget is used up), `semaphore` (one that does not exist), `wait` (longer than the
watchdog allows).
"""


def _legal(operand: Operand) -> str:
    if operand.form is Form.REGISTER:
        return "r0 to r15"
    if operand.form is Form.FIELD:
        return operand.form.value
    low, high = operand.range[0], operand.range[-1]
    text = f"{low} to {high}"
    return text if operand.form is Form.NUMBER else f"{operand.form.value}, {text}"


def _row(instruction: Instruction) -> str:
    names = ", ".join(operand.name for operand in instruction.operands)
    bits = ", ".join(
        f"{operand.name} {operand.low + operand.width - 1}:{operand.low}"
        for operand in instruction.operands
    )
    summary = instruction.summary.replace("|", "\\|")
    written = f"{instruction.mnemonic} {names}".rstrip()
    return (
        f"| `{written}` | {instruction.opcode:#04x} | {bits} | "
        f"{cost(instruction.kind).total} | {summary} |"
    )


def _group(title: str, kinds: tuple[Kind, ...]) -> str:
    rows = [_row(instruction) for instruction in INSTRUCTIONS if instruction.kind in kinds]
    head = ["| instruction | opcode 7:0 | operands | cycles | meaning |", "|---|---|---|---|---|"]
    return "\n".join([f"### {title}", "", *head, *rows, ""])


def _operands() -> str:
    found: dict[str, None] = {}
    for instruction in INSTRUCTIONS:
        for operand in instruction.operands:
            if operand.form is not Form.REGISTER:
                found[f"| `{operand.name}` | {operand.width} | {_legal(operand)} |"] = None
    return "\n".join(["| operand | bits | legal |", "|---|---|---|", *found, ""])


def markdown() -> str:
    """Return the reference of every instruction: encoding, cycles, meaning."""
    groups = "\n".join(_group(title, kinds) for title, kinds in _GROUPS.items())
    return f"{_HEAD}\n## Instructions\n\n{groups}\n### Operands\n\n{_operands()}"
