"""Bench of the scalar engine: every cycle of every run beside the interpreter."""

from __future__ import annotations

import os
from typing import Any

import cocotb

from poblano.commands import SCALAR_RUN
from poblano.faults import Fault
from poblano.scalar.instructions import BLOCK_BYTES, INSTRUCTIONS
from poblano_sw.assembler import encode
from poblano_sw.scalar import Wait
from poblano_verif.scalar_bench import ScalarBench
from poblano_verif.scalar_programs import EXTREMES, arithmetic, immediates, memory, random_program

SHARE = float(os.environ.get("POBLANO_BENCH_SHARE", "1"))
LIMIT = 2_000_000_000

WAYS = """
    jump on
back: call r10, sub
    bne r0, r0, back
    beq r0, r0, far
on: jump back
sub: addi r1, r1, 1
    return r10
.align 64
far: set r2, 14
again: addi r2, r2, -1
    bne r2, r0, again
    bltu r0, r1, next
next: call r11, there
there: address r12, there
    sub r11, r11, r12
    bne r11, r0, wrong
    address r12, beyond
    return r12
wrong: issue 0
.align 64
beyond: halt
"""
"""Every way to go on: in the block, out of it, to itself, to the next one, back."""


def some(values: tuple[int, ...]) -> tuple[int, ...]:
    """Return the share of the values that the run takes, at least two."""
    return values[:: max(1, round(len(values) / max(2, len(values) * SHARE)))]


async def works_again(bench: ScalarBench) -> None:
    """After a reset the engine runs programs as before."""
    await bench.reset()
    text = random_program(bench.random, bench.queues, bench.slice.host.semaphores, 30)
    await bench.check(text)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def arithmetic_of_extremes(dut: Any) -> None:
    """Every function, condition and immediate of numbers at the ends of their ranges."""
    bench = ScalarBench(dut)
    await bench.start()
    await bench.check(arithmetic(some(EXTREMES)))
    await bench.check(immediates(some(EXTREMES)))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def every_place_of_a_line(dut: Any) -> None:
    """Loads and stores of every size at every place of two lines, and at both ends of L1."""
    bench = ScalarBench(dut, pause=0.2)
    await bench.start()
    await bench.check(memory(bench.line))
    bench.pause = 0.0
    end = bench.slice.l1.size
    ends = [f"load{8 * n} r3, r1, {-n}\n store{8 * n} r3, r2, 0" for n in (1, 2, 4, 8)]
    code = "\n".join([*ends, "word r1, -64", "issue 0", "word r2, 0", "issue 0", "halt"])
    await bench.check(code, 64, r1=end)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def ways_through_a_program(dut: Any) -> None:
    """Transfers of control cost what is published, wherever the program lies."""
    bench = ScalarBench(dut)
    await bench.start()
    for origin in (0, 64, bench.slice.l1.size - 256):
        await bench.check(WAYS, origin, r1=5)
    assert len(set(bench.cycles)) == 1
    await bench.check("halt", bench.slice.l1.size - 64)
    assert bench.cycles[-1] == 5, f"a run that only halts took {bench.cycles[-1]} cycles"


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def fields_at_every_place(dut: Any) -> None:
    """Every offset of a command word, and fields of every width."""
    bench = ScalarBench(dut)
    await bench.start()
    fields = [(offset, 1 + offset * 7 % 64) for offset in range(0, 512, max(1, round(1 / SHARE)))]
    fields += [(512 - width, width) for width in range(1, 65)] if SHARE >= 1 else [(448, 64)]
    lines = ["address r4, numbers", "load64 r2, r4, 8"]
    for offset, width in fields:
        if offset + width <= 512:
            lines += [f"field r{1 + offset % 2}, {offset}:{width}", "issue 1", "xori r1, r1, -1"]
    await bench.check("\n".join([*lines, "halt", _NUMBERS]), 0, r1=0x0123_4567_89AB_CDEF)


_NUMBERS = "numbers: .data64 0, 0xf0e1d2c3b4a59687"


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(pause=[0.0, 0.4, 0.8])
async def random_programs(dut: Any, pause: float) -> None:
    """Random programs with random arguments, one behind the other, with random waits."""
    bench = ScalarBench(dut, pause)
    await bench.start()
    semaphores = bench.slice.host.semaphores
    for _ in range(max(2, round(25 * SHARE))):
        length = bench.random.choice((5, 40, 300))
        text = random_program(bench.random, bench.queues, semaphores, length)
        _, origin = bench.place(text)
        for _ in range(bench.random.randint(1, 3)):
            numbers = [bench.random.choice((*EXTREMES, bench.random.getrandbits(64)))] * 2
            fields = {"r1": numbers[0], "r2": bench.random.getrandbits(20), "r4": numbers[1]}
            bench.send(encode(bench.slice, "scalar.run", pc=origin, **fields))
        await bench.finish()


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def code_at_hand(dut: Any) -> None:
    """A block of code is read when control enters it, and anew by every run."""
    bench = ScalarBench(dut)
    await bench.start()
    text = """
        address r1, here
        address r2, other
        load32 r3, r2, 0
        store32 r3, r1, 0    # not seen: the block is at hand
    here: set r5, 1
        bne r6, r0, end
        set r6, 1
        jump far
    other: set r5, 2
    .align 64
    far: jump here           # seen
    .align 64
    end: address r7, here
        store64 r5, r7, 64
        halt
    """
    await bench.check(text, 128)
    program, _ = bench.place(text, 128)
    changed = bench.l1[128 + program.labels["here"] + 64 :][:1]
    assert int(changed[0]) != 2, "the second text is there again"
    bench.send(encode(bench.slice, "scalar.run", pc=128))
    await bench.finish()
    bench.write(128, bytes([0x65, 0, 0, 0]))
    bench.send(encode(bench.slice, "scalar.run", pc=128))
    await bench.finish()
    assert bench.cycles[-1] == 5


def _words(*words: int) -> str:
    return f".data32 {', '.join(map(str, words))}\nhalt"


def _illegal() -> list[str]:
    """Return programs that begin with an opcode or a bit that the table lacks."""
    known = {instruction.opcode for instruction in INSTRUCTIONS}
    unknown = [opcode for opcode in range(256) if opcode not in known]
    unused = [
        instruction.opcode | 1 << bit
        for instruction in INSTRUCTIONS
        for bit in range(8, 32)
        if not instruction.mask >> bit & 1
    ]
    return list(map(_words, unknown + unused))


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def illegal_instructions(dut: Any) -> None:
    """Every opcode that the table lacks, every bit that must be 0, fields and queues outside."""
    bench = ScalarBench(dut)
    await bench.start()
    fields = [0x61 | (width - 1) << 25 | (513 - width) << 16 for width in (2, 33, 64)]
    cases = [*map(_words, fields), f"issue {bench.queues}\nhalt", "issue 255\nhalt"]
    for text in [*cases, *_illegal()[:: max(1, round(0.2 / SHARE))]]:
        await bench.reset()
        _, origin = bench.place(text)
        bench.send(encode(bench.slice, "scalar.run", pc=origin))
        await bench.expect_fault(Fault.INSTRUCTION, address=origin)
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def places_outside_l1(dut: Any) -> None:
    """Accesses and code outside L1, and at no multiple of their size, stop the engine."""
    bench = ScalarBench(dut)
    await bench.start()
    end = bench.slice.l1.size
    cases: list[tuple[str, Fault, int]] = []
    for size in (1, 2, 4, 8):
        for name in (f"load{8 * size} r9", f"store{8 * size} r9"):
            cases += [
                (f"{name}, r1, 0", Fault.ADDRESS, end),
                (f"{name}, r0, {-size}", Fault.ADDRESS, -size),
                (f"let r1, {1 << 40}\n{name}, r1, 8", Fault.ADDRESS, 8),
                (f"let r1, {1 << 63}\n{name}, r1, 0", Fault.ADDRESS, 0),
            ]
            cases += [(f"{name}, r1, {-n}", Fault.ALIGNMENT, end - n) for n in range(1, size)]
            cases += [(f"{name}, r1, 1", Fault.ALIGNMENT, end + 1)] if size > 1 else []
    for low in (1, 2, 4, 8, 16, 32):
        cases.append((f"word r1, {-low}", Fault.ALIGNMENT, end - low))
    cases += [
        ("word r1, 0", Fault.ADDRESS, end),
        ("addi r1, r1, -2\nreturn r1", Fault.ALIGNMENT, end - 2),
        ("address r1, 5\nreturn r1", Fault.ALIGNMENT, 64 + 5),
        ("return r1", Fault.ADDRESS, end),
        (f"let r1, {1 << 24}\nreturn r1", Fault.ADDRESS, 1 << 24),
        (f"let r1, {1 << 24 | 64}\nreturn r1", Fault.ADDRESS, 1 << 24 | 64),
        (f"let r1, {1 << 40 | 64}\nreturn r1", Fault.ADDRESS, 64),
        ("jump -100", Fault.ADDRESS, 64 - 400),
        ("beq r0, r0, 32767", Fault.ADDRESS, 64 + 4 * 32767),
        (f"call r1, {1 << 19 - 1}", Fault.ADDRESS, 64 + (1 << 20)),
    ]
    for text, kind, address in cases[:: max(1, round(0.5 / SHARE))]:
        await bench.reset()
        bench.place(f"{text}\nhalt", 64)
        bench.send(encode(bench.slice, "scalar.run", pc=64, r1=end))
        await bench.expect_fault(kind, address=address % (1 << 40))
    await bench.reset()
    for place in range(end - 2 * BLOCK_BYTES, end, 4):
        bench.write(place, bytes([0x10, 0, 0, 0]))  # add r0, r0, r0
    bench.send(encode(bench.slice, "scalar.run", pc=end - 2 * BLOCK_BYTES))
    await bench.expect_fault(Fault.ADDRESS, address=end)
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def budgets(dut: Any) -> None:
    """A run may execute as many instructions as its budget, and not one more."""
    bench = ScalarBench(dut, pause=0.3)
    await bench.start()
    text = "set r1, 4\nagain: addi r1, r1, -1\nbne r1, r0, again\nsignal 1, 1\nhalt"
    needs = 1 + 2 * 4 + 2
    _, origin = bench.place(text)
    for runs, (budget, following) in enumerate(((1, 1), (2, 2), (5, 1), (needs - 1, 4))):
        await bench.reset()
        for _ in range(runs):
            bench.send(encode(bench.slice, "scalar.run", pc=origin, budget=needs))
        if runs:
            await bench.finish()
        bench.send(encode(bench.slice, "scalar.run", pc=origin, budget=budget))
        await bench.expect_fault(Fault.LOOP, address=origin + 4 * following, number=runs)
    await bench.reset()
    for budget in (0, needs, needs + 1):
        bench.send(encode(bench.slice, "scalar.run", pc=origin, budget=budget))
    await bench.finish()
    await bench.reset()
    _, origin = bench.place("here: jump here")
    bench.send(encode(bench.slice, "scalar.run", pc=origin, budget=500))
    await bench.expect_fault(Fault.LOOP, address=origin)
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def semaphores_that_do_not_exist(dut: Any) -> None:
    """A semaphore beyond the last is a fault of wait and signal, unless the count is 0."""
    bench = ScalarBench(dut)
    await bench.start()
    count = bench.slice.host.semaphores
    for name in ("wait", "signal"):
        for semaphore in (count, 63):
            await bench.reset()
            _, origin = bench.place(f"{name} {semaphore}, 1\nhalt")
            bench.send(encode(bench.slice, "scalar.run", pc=origin))
            await bench.expect_fault(Fault.SEMAPHORE, address=origin, field=semaphore)
    await bench.reset()
    await bench.check(f"wait 63, 0\nsignal 63, 0\nwait {count - 1}, 1023\nhalt")


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
@cocotb.parametrize(patience=[0, 1, 50])
async def waits_that_never_end(dut: Any, patience: int) -> None:
    """A semaphore that is never had is a fault after the patience, and never if that is 0."""
    bench = ScalarBench(dut)
    bench.granting = False
    await bench.start(patience)
    _, origin = bench.place("set r1, 1\nwait 5, 2\nhalt")
    bench.send(encode(bench.slice, "scalar.run", pc=origin))
    while not isinstance(bench.happening, Wait):
        await bench.dut.clock.edge()
    begin = bench.happening.cycle
    for _ in range(200):
        await bench.dut.clock.edge()
        if bench.fault["kind"]:
            break
    waited = bench.dut.clock.cycle - 1 - begin
    if patience:
        assert waited == patience + 1, f"the fault came after {waited} cycles"
        bench.stopped()
        await bench.expect_fault(Fault.WAIT, address=origin + 4, field=5)
    else:
        bench.granting = True
        await bench.finish()
    bench.granting = True
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def commands_that_are_illegal(dut: Any) -> None:
    """Another opcode, or a program at no multiple of four: nothing is read."""
    bench = ScalarBench(dut)
    await bench.start()
    good = encode(bench.slice, "scalar.run", pc=64)
    place = [item.name for item in SCALAR_RUN.fields].index("pc")
    values = SCALAR_RUN.decode(good)
    cases = [(bytes([opcode, *good[1:]]), Fault.OPCODE, 0) for opcode in (0, 0x41, 0xC0)]
    cases += [
        (SCALAR_RUN.encode({**values, "pc": 64 + low}), Fault.FIELD, place) for low in (1, 2, 3)
    ]
    for word, kind, field in cases:
        await bench.reset()
        bench.send(word)
        await bench.expect_fault(kind, field=field)
    await bench.reset()
    bench.send(SCALAR_RUN.encode({**values, "pc": (1 << 24) - 64}))
    if bench.slice.l1.size < 1 << 24:
        await bench.expect_fault(Fault.ADDRESS, address=(1 << 24) - 64)
    await works_again(bench)


@cocotb.test(timeout_time=LIMIT, timeout_unit="step")
async def reset_at_any_moment(dut: Any) -> None:
    """A reset in the middle of a run; the engine then works as after the first."""
    bench = ScalarBench(dut, pause=0.3)
    await bench.start()
    semaphores = bench.slice.host.semaphores
    for _ in range(max(3, round(12 * SHARE))):
        _, origin = bench.place(random_program(bench.random, bench.queues, semaphores, 100))
        bench.send(encode(bench.slice, "scalar.run", pc=origin, r2=3))
        await bench.dut.clock.edges(bench.random.randint(1, 150))
        await works_again(bench)
