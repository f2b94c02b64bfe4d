"""Programs for the scalar engine's bench, as text: every instruction, and random ones that end."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from poblano.scalar.instructions import INSTRUCTIONS, SIZES, Alu, Condition, Kind

__all__ = ["EXTREMES", "arithmetic", "immediates", "memory", "random_program"]

EXTREMES = (
    0,
    1,
    2,
    63,
    64,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0001,
    0x0123_4567_89AB_CDEF,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    0x8000_0000_0000_0001,
    0xFFFF_FFFF_0000_0000,
    0xFFFF_FFFF_FFFF_FFFE,
    0xFFFF_FFFF_FFFF_FFFF,
)
"""Numbers at the ends of ranges and of shifts."""

_IMMEDIATES = (-32768, -32767, -1, 0, 1, 31, 63, 64, 65, 32767)


def _table(numbers: tuple[int, ...]) -> str:
    return f"numbers: .data64 {', '.join(map(str, numbers))}\n"


def arithmetic(numbers: tuple[int, ...]) -> str:
    """Return a program that stores every function and condition of every pair of numbers."""
    lines = ["address r1, numbers", "address r9, results", f"set r3, {len(numbers)}"]
    lines += ["outer: load64 r5, r1, 0", "address r2, numbers", f"set r4, {len(numbers)}"]
    lines += ["inner: load64 r6, r2, 0"]
    for name in [function.name.lower() for function in Alu] + ["mul"]:
        lines += [f"{name} r7, r5, r6", "store64 r7, r9, 0"]
    lines += ["set r8, 0"]
    for number, condition in enumerate(Condition):
        name = f"b{condition.name.lower()}"
        lines += [f"{name} r5, r6, yes{number}", "jump no" + str(number)]
        lines += [f"yes{number}: ori r8, r8, {1 << number}", f"no{number}:"]
    lines += ["store64 r8, r9, 8", "addi r2, r2, 8", "addi r4, r4, -1", "bne r4, r0, inner"]
    lines += ["addi r1, r1, 8", "addi r3, r3, -1", "bne r3, r0, outer", "halt"]
    return "\n".join(lines) + "\n" + _table(numbers) + "results: .data64 0, 0\n"


def immediates(numbers: tuple[int, ...]) -> str:
    """Return a program that stores every function of every number with extreme immediates."""
    lines = ["address r1, numbers", "address r9, results", f"set r3, {len(numbers)}"]
    lines += ["outer: load64 r5, r1, 0"]
    for instruction in INSTRUCTIONS:
        if instruction.mnemonic.endswith("i") and instruction.kind in (Kind.ALU, Kind.MULTIPLY):
            for number in _IMMEDIATES:
                lines += [f"{instruction.mnemonic} r7, r5, {number}", "store64 r7, r9, 0"]
    for number in (-(1 << 19), (1 << 19) - 1, -1, 0):
        lines += [f"set r5, {number}", "store64 r5, r9, 0"]
    for number in (0, (1 << 20) - 1, 1 << 19):
        lines += [f"append r5, {number}", "store64 r5, r9, 0"]
    lines += ["addi r1, r1, 8", "addi r3, r3, -1", "bne r3, r0, outer", "halt"]
    return "\n".join(lines) + "\n" + _table(numbers) + "results: .data64 0\n"


def memory(line: int) -> str:
    """Return a program that loads and stores every size at every place of two lines.

    Both lines are `.data8` bytes of the program, at a multiple of 64.
    """
    span = 2 * line
    lines = ["address r1, bytes"]
    for size in SIZES:
        lines += ["set r2, 0", "addi r3, r1, 0", f"at{size}: load{8 * size} r4, r3, 0"]
        lines += ["xori r4, r4, -1", f"store{8 * size} r4, r3, 0", f"load64 r5, r1, {span - 8}"]
        lines += ["add r6, r6, r5", f"addi r3, r3, {size}", f"addi r2, r2, {size}"]
        lines += [f"slti r7, r2, {span}", f"bne r7, r0, at{size}"]
    lines += [f"addi r8, r1, {span}", "load8 r9, r8, -1", "store8 r9, r8, -2", "halt"]
    data = ", ".join(str(number * 37 % 256) for number in range(span))
    return "\n".join(lines) + f"\n.align 64\nbytes: .data8 {data}\n"


_FREE = [f"r{number}" for number in (*range(10), 14, 15)]
"""Registers that random code changes; the others hold its data, its loops and its returns."""

_DATA_BYTES = 256


class _Writer:
    def __init__(self, random: Random, queues: int, semaphores: int) -> None:
        self._random = random
        self._queues = queues
        self._semaphores = semaphores
        self._labels = 0
        self._two_sources = [
            i.mnemonic
            for i in INSTRUCTIONS
            if i.kind in (Kind.ALU, Kind.MULTIPLY) and not i.mnemonic.endswith("i")
        ]
        self._one_source = [
            i.mnemonic
            for i in INSTRUCTIONS
            if i.kind in (Kind.ALU, Kind.MULTIPLY) and i.mnemonic.endswith("i")
        ]
        self._conditions = [i.mnemonic for i in INSTRUCTIONS if i.kind is Kind.BRANCH]

    def label(self) -> str:
        self._labels += 1
        return f"l{self._labels}"

    def register(self) -> str:
        return self._random.choice(_FREE)

    def number(self) -> int:
        random = self._random
        return random.choice(
            (random.choice(EXTREMES), random.getrandbits(64), random.getrandbits(8))
        )

    def plain(self) -> str:
        """Return an instruction that goes on to the next one."""
        random, r = self._random, self.register
        size = random.choice(SIZES)
        place = f"r13, {size * random.randrange(_DATA_BYTES // size)}"
        width = random.choice((1, random.randint(1, 64), 64))
        offset = random.choice((0, 512 - width, random.randint(0, 512 - width)))
        return random.choice(
            [f"{random.choice(self._two_sources)} {r()}, {r()}, {r()}"] * 3
            + [f"{random.choice(self._one_source)} {r()}, {r()}, {random.randint(-32768, 32767)}"]
            + [f"let {r()}, {self.number()}"] * 2
            + [f"append {r()}, {random.getrandbits(20)}"]
            + [f"load{8 * size} {r()}, {place}", f"store{8 * size} {r()}, {place}"] * 2
            + [f"word r13, {64 * random.randrange(_DATA_BYTES // 64)}"]
            + [f"field {r()}, {offset}:{width}"] * 2
            + [f"issue {random.randrange(self._queues)}"]
            + [f"wait {random.randrange(self._semaphores)}, {random.choice((0, 1, 1023))}"]
            + [f"signal {random.randrange(self._semaphores)}, {random.choice((0, 1, 1023))}"]
            + [f"address {r()}, data"]
        )

    def body(self, length: int, depth: int) -> Iterator[str]:
        """Yield code that ends: plain instructions, branches forwards, counted loops, calls."""
        random = self._random
        while length > 0:
            length -= 1
            what = random.random()
            if what < 0.75 or not depth:
                yield self.plain()
            elif what < 0.88:
                over = self.label()
                condition = random.choice(self._conditions)
                yield random.choice(
                    [f"{condition} {self.register()}, {self.register()}, {over}", f"jump {over}"]
                )
                inner = random.randint(0, min(length, 25))
                length -= inner
                yield from self.body(inner, depth - 1)
                yield f"{over}:"
            elif what < 0.95:
                again, counter = self.label(), f"r{10 + depth}"
                yield f"set {counter}, {random.randint(1, 3)}"
                yield f"{again}:"
                inner = random.randint(1, 20)
                length -= inner
                yield from self.body(inner, depth - 1)
                yield f"addi {counter}, {counter}, -1"
                yield f"bne {counter}, r0, {again}"
            else:
                yield f"call r10, sub{random.randrange(2)}"


def random_program(random: Random, queues: int, semaphores: int, length: int) -> str:
    """Return a program of about `length` instructions whose loops are counted.

    At its end it stores every register and issues the command buffer, so that whatever went wrong
    before shows.
    """
    writer = _Writer(random, queues, semaphores)
    lines = ["address r13, data", *writer.body(length, 2)]
    lines += [f"store64 r{n}, r13, {8 * n}" for n in range(16)]
    lines += ["issue 0", "halt"]
    for number in range(2):
        lines += [f"sub{number}:", *writer.body(random.randint(0, 20), 0), "return r10"]
    numbers = ", ".join(str(random.getrandbits(64)) for _ in range(_DATA_BYTES // 8))
    gap = ".align 64\n" if random.random() < 0.5 else ""
    text = "\n".join(lines)
    return f"{text}\n.align 64\n{gap}data: .data64 {numbers}\n"
