"""Faults planted in the scalar engine, each of which its bench must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

ENGINE, MERGER = "scalar_engine:tiny/icarus", "word_merger:default/icarus"

FAULTS = {
    "a run keeps the block of the one before": (
        ENGINE,
        "scalar/fetch.py",
        "self.valid.eq(0), block_valid.eq(0)]",
        "self.valid.eq(0)]",
    ),
    "the next block is taken for this one": (
        ENGINE,
        "scalar/fetch.py",
        "(self.transfers | number.all())",
        "self.transfers",
    ),
    "code outside L1 is not seen": (
        ENGINE,
        "scalar/fetch.py",
        "with m.Elif(self.pc >= self.size):",
        "with m.Elif(self.pc > self.size):",
    ),
    "numbers have no sign": (
        ENGINE,
        "scalar/alu.py",
        "less_unsigned ^ self.a[-1] ^ self.b[-1]",
        "less_unsigned",
    ),
    "a shift by 64 is none": (
        ENGINE,
        "scalar/alu.py",
        "self.b[: (REGISTER_WIDTH - 1).bit_length()]",
        "self.b[: REGISTER_WIDTH.bit_length()]",
    ),
    "a step of a product loses its carry": (
        ENGINE,
        "scalar/multiplier.py",
        "(self.product << _STEP) + part",
        "(self.product << _STEP) | part",
    ),
    "a field ends with its quarter of the word": (
        ENGINE,
        "scalar/word_buffer.py",
        "(first == quarter - 1) & goes_on if quarter",
        "C(0) if quarter",
    ),
    "a field may leave the word": (
        ENGINE,
        "scalar/decode.py",
        "& ~((out.kind == Kind.FIELD) & field_end[FIELD_OFFSET_WIDTH])",
        "",
    ),
    "there is a queue more": (
        ENGINE,
        "scalar/decode.py",
        "out.queue >= self.queues",
        "out.queue > self.queues",
    ),
    "an immediate has no sign": (
        ENGINE,
        "scalar/decode.py",
        "signed(IMM16.width)",
        "unsigned(IMM16.width)",
    ),
    "the highest bits of an address are lost": (
        ENGINE,
        "scalar/l1_access.py",
        "address[HBM_ADDRESS_WIDTH:].any()",
        "C(0)",
    ),
    "a short store writes eight bytes": (
        ENGINE,
        "scalar/l1_access.py",
        "strobe.eq(((1 << size) - 1) << self.place[:_WORD_LOG])",
        "strobe.eq(0xFF)",
    ),
    "registers keep what the run before left": (
        ENGINE,
        "scalar/registers.py",
        "self.arguments[number - 1] if given else 0",
        "self.arguments[number - 1] if given else register",
    ),
    "a budget is one too small": (
        ENGINE,
        "scalar/engine.py",
        "limited & (left == 1)",
        "limited & (left == 2)",
    ),
    "a semaphore is not waited for": (
        ENGINE,
        "scalar/engine.py",
        "self._waits.eq(watch.waiting)",
        "self._waits.eq(0)",
    ),
    "a word is sent without room": (
        ENGINE,
        "scalar/engine.py",
        "with m.If(port.valid & ~port.ready):",
        "with m.If(C(0)):",
    ),
    "a fault has no number": (
        ENGINE,
        "scalar/engine.py",
        "self.fault.number.eq(self._completed)",
        "self.fault.number.eq(0)",
    ),
    "the room of a fetched word is taken": (
        MERGER,
        "control/word_merger.py",
        "issues.eq(self.issued.valid & ~self.coming)",
        "issues.eq(self.issued.valid & ~self.fetched.valid)",
    ),
    "fetched words go first": (
        MERGER,
        "control/word_merger.py",
        "(self.coming | ~self.issued.valid)",
        "(self.coming | 1)",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("job", [ENGINE, MERGER])
def test_the_bench_passes_without_a_fault(job, tmp_path):
    done = run_bench(tmp_path, job)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path):
    job, file, old, new = FAULTS[fault]
    done = run_bench(tmp_path, job, file, old, new)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {job}" in done.stdout
