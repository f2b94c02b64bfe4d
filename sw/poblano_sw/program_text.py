"""Programs as text: sections of commands, one section a queue."""

from __future__ import annotations

from collections.abc import Mapping

from poblano.commands import WORD_BYTES, CommandError
from poblano.config import Configuration
from poblano.host.registers import queue_names
from poblano_golden.errors import PoblanoError
from poblano_sw.assembler import assemble, disassemble
from poblano_sw.program import Program

__all__ = ["DEFAULT_RING_WORDS", "format_program", "parse_program"]

DEFAULT_RING_WORDS = 16
"""Words of each ring where a program does not say; rings then lie at the end of L1."""


def parse_program(configuration: Configuration, text: str, *, source: str = "program") -> Program:
    """Return the program of a text.

    `.queue NAME` begins the commands of a queue, which follow one a line; `.ring base=N words=N`
    says where the rings lie, by default at the end of L1. `#` begins a comment.

    Raises
    ------
    PoblanoError
        If a line breaks a rule; the message begins with `source:line`.
    """
    ring: dict[str, int] = {}
    queues: dict[str, list[bytes]] = {}
    current: list[bytes] | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{source}:{number}"
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == ".queue":
            current = queues.setdefault(_queue(words, configuration, place), [])
        elif words[0] == ".ring":
            ring |= _ring(words[1:], place)
        elif words[0].startswith("."):
            raise PoblanoError(f"{place}: a directive must be .queue or .ring; got {words[0]}")
        elif current is None:
            raise PoblanoError(f"{place}: a command must follow a .queue; got {words[0]}")
        else:
            try:
                current += assemble(configuration.slice, line)
            except CommandError as error:
                message = str(error).partition(": ")[2]
                raise PoblanoError(f"{place}: {message}") from None
    if not queues:
        raise PoblanoError(f"{source}: a program must have a queue; it has none")
    ring_words = ring.get("words", DEFAULT_RING_WORDS)
    size = WORD_BYTES * ring_words * len(queues)
    base = ring.get("base", configuration.slice.l1.size - size)
    return Program(queues, ring_base=base, ring_words=ring_words)


def _queue(words: list[str], configuration: Configuration, place: str) -> str:
    known = queue_names(configuration)
    if len(words) != 2 or words[1] not in known:
        raise PoblanoError(
            f"{place}: .queue must be followed by one of {', '.join(known)}; "
            f"got {' '.join(words[1:]) or 'nothing'}"
        )
    return words[1]


def _ring(words: list[str], place: str) -> dict[str, int]:
    ring: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            if name not in ("base", "words"):
                raise ValueError
            ring[name] = int(value, 0)
        except ValueError:
            raise PoblanoError(f"{place}: .ring takes base=N and words=N; got {word!r}") from None
    return ring


def format_program(program: Program) -> str:
    """Return the text of a program; `parse_program` gives the program back.

    Raises
    ------
    CommandError
        If a word has an unknown opcode or bits outside every field.
    """
    lines = [f".ring base={program.ring_base:#x} words={program.ring_words}\n"]
    queues: Mapping[str, list[bytes]] = {n: list(w) for n, w in program.queues.items()}
    for name, words in queues.items():
        lines += [f"\n.queue {name}\n", disassemble(words)]
    return "".join(lines)
