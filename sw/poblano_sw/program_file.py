"""Programs as files: a versioned binary form that names the configuration it was made for.

Little endian: `PBLOPROG`, version (2 bytes), number of queues (2), hash of the configuration (8),
ring base (4), ring words (4); for every queue its number (4), its words (4), the words of 64 bytes;
at the end the CRC-32 of everything before (4).
"""

from __future__ import annotations

import struct
import zlib

from poblano.commands import WORD_BYTES
from poblano.config import Configuration
from poblano.host.registers import queue_names
from poblano_golden.errors import PoblanoError
from poblano_sw.program import Program

__all__ = ["MAGIC", "VERSION", "pack_program", "unpack_program"]

MAGIC = b"PBLOPROG"
VERSION = 1

_HEADER = struct.Struct("<8sHHQII")
_QUEUE = struct.Struct("<II")
_CRC = struct.Struct("<I")


def pack_program(configuration: Configuration, program: Program) -> bytes:
    """Return a program as bytes, checked.

    Raises
    ------
    PoblanoError
        If the configuration cannot run it to its end.
    """
    program.check(configuration)
    numbers = {name: number for number, name in enumerate(queue_names(configuration))}
    data = _HEADER.pack(
        MAGIC,
        VERSION,
        len(program.queues),
        configuration.hash64,
        program.ring_base,
        program.ring_words,
    )
    for name, words in program.queues.items():
        data += _QUEUE.pack(numbers[name], len(words)) + b"".join(words)
    return data + _CRC.pack(zlib.crc32(data))


def unpack_program(
    configuration: Configuration, data: bytes, *, source: str = "program"
) -> Program:
    """Return the program of bytes that `pack_program` made, checked.

    Raises
    ------
    PoblanoError
        If it is no program, of another version, made for another configuration, damaged, or
        cannot run to its end.
    """
    if len(data) < _HEADER.size + _CRC.size or not data.startswith(MAGIC):
        found = data[: len(MAGIC)]
        raise PoblanoError(f"{source}: a program must begin with {MAGIC!r}; got {found!r}")
    _, version, count, found_hash, ring_base, ring_words = _HEADER.unpack_from(data)
    if version != VERSION:
        raise PoblanoError(f"{source}: a program's version must be {VERSION}; got {version}")
    if found_hash != configuration.hash64:
        raise PoblanoError(
            f"{source}: a program must be made for configuration {configuration.name} with hash "
            f"{configuration.hash64:#018x}; got {found_hash:#018x}"
        )
    (crc,) = _CRC.unpack(data[-_CRC.size :])
    wanted = zlib.crc32(data[: -_CRC.size])
    if crc != wanted:
        raise PoblanoError(f"{source}: a program's CRC must be {wanted:#010x}; got {crc:#010x}")
    names = queue_names(configuration)
    queues: dict[str, list[bytes]] = {}
    position, end = _HEADER.size, len(data) - _CRC.size
    for _ in range(count):
        if position + _QUEUE.size > end:
            raise PoblanoError(f"{source}: a program must have {count} queues; it ends before")
        number, words = _QUEUE.unpack_from(data, position)
        position += _QUEUE.size
        if number >= len(names) or position + words * WORD_BYTES > end:
            raise PoblanoError(
                f"{source}: queue {number} with {words} words must exist and lie in the file; "
                f"the configuration has {len(names)} queues, the file {end - position} bytes more"
            )
        queues[names[number]] = [
            data[position + i * WORD_BYTES : position + (i + 1) * WORD_BYTES] for i in range(words)
        ]
        position += words * WORD_BYTES
    if position != end:
        raise PoblanoError(
            f"{source}: a program must end after its queues; {end - position} bytes are left"
        )
    program = Program(queues, ring_base=ring_base, ring_words=ring_words)
    program.check(configuration)
    return program
