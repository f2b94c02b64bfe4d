"""Programs of the scalar engine: assembler, disassembler and interpreter."""

from __future__ import annotations

from poblano_sw.scalar.assembler import ScalarProgram, assemble_scalar
from poblano_sw.scalar.disassembler import disassemble_scalar
from poblano_sw.scalar.interpreter import (
    Event,
    Issue,
    Read,
    ScalarFaultError,
    ScalarRun,
    Signal,
    Store,
    Wait,
)

__all__ = [
    "Event",
    "Issue",
    "Read",
    "ScalarFaultError",
    "ScalarProgram",
    "ScalarRun",
    "Signal",
    "Store",
    "Wait",
    "assemble_scalar",
    "disassemble_scalar",
]
