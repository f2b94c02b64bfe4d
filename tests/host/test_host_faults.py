"""Faults planted in the host port, each of which the named test of its bench must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

REGISTERS, WINDOW = "host_registers:tiny/icarus", "host_window:tiny/icarus"

FAULTS = {
    "clearing a flag wins": (
        f"{REGISTERS}/setting_a_flag_wins",
        "register_file.py",
        "(state[name] & ~clears[name]) | getattr(self, name)",
        "(state[name] | getattr(self, name)) & ~clears[name]",
    ),
    "strobes are ignored": (
        f"{REGISTERS}/every_word/pause=0.0",
        "register_file.py",
        "held.eq((held & ~mask[bits]) | value[bits])",
        "held.eq(value[bits])",
    ),
    "a doorbell rings without its bytes": (
        f"{REGISTERS}/every_word/pause=0.0",
        "register_file.py",
        "eq(mask[bits].any())",
        "eq(1)",
    ),
    "what is added has bytes without strobes": (
        f"{REGISTERS}/every_word/pause=0.0",
        "register_file.py",
        "self.written.eq(value)",
        "self.written.eq(data)",
    ),
    "a write outside the map is OKAY": (
        f"{REGISTERS}/outside_the_map",
        "register_file.py",
        "m.d.sync += axi.bresp.eq(Response.SLVERR)",
        "m.d.sync += axi.bresp.eq(Response.OKAY)",
    ),
    "the upper word is not kept": (
        f"{REGISTERS}/carries",
        "register_file.py",
        "m.d.sync += kept.eq(bits[WORD_BITS:])",
        "m.d.comb += kept.eq(bits[WORD_BITS:])",
    ),
    "a counter counts while it is cleared": (
        f"{REGISTERS}/counters",
        "register_file.py",
        "m.d.sync += count.eq(0)",
        "m.d.sync += count.eq(getattr(self, name))",
    ),
    "a write does not wait for its data": (
        f"{REGISTERS}/address_and_data_in_any_order",
        "register_file.py",
        "writes.eq(has_address & has_data & ~axi.bvalid)",
        "writes.eq(has_address & ~axi.bvalid)",
    ),
    "a response is lost behind another": (
        f"{REGISTERS}/several_in_flight/pause=0.5",
        "register_file.py",
        "writes.eq(has_address & has_data & ~axi.bvalid)",
        "writes.eq(has_address & has_data)",
    ),
    "a masked cause interrupts": (
        f"{REGISTERS}/interrupts",
        "register_file.py",
        "state[name] & state[name.replace(status, enable)]",
        "state[name]",
    ),
    "one beat past L1 is served": (
        f"{WINDOW}/the_last_bytes",
        "burst.py",
        "last >= self.size",
        "last > self.size",
    ),
    "a long burst past L1 is served": (
        f"{WINDOW}/the_last_bytes",
        "burst.py",
        "(waiting.len << waiting.size)",
        "(waiting.len << waiting.size)[:8]",
    ),
    "WRAP bursts are served": (
        f"{WINDOW}/bursts/pause=0.0/l1_pause=0.0",
        "burst.py",
        "waiting.burst != Burst.INCR",
        "waiting.burst == Burst.FIXED",
    ),
    "beats wider than the bus are served": (
        f"{WINDOW}/bursts/pause=0.0/l1_pause=0.0",
        "burst.py",
        "| (waiting.size > (self.width - 1).bit_length())",
        "| 0",
    ),
    "a gap between bursts": (
        f"{WINDOW}/speed",
        "burst.py",
        "starts.eq(has_waiting & (~busy | ends))",
        "starts.eq(has_waiting & ~busy)",
    ),
    "narrow beats advance by the bus": (
        f"{WINDOW}/transfers/pause=0.0",
        "burst.py",
        "beat.address + (1 << size)",
        "beat.address + self.width",
    ),
    "every word of the line is written": (
        f"{WINDOW}/transfers/pause=0.0",
        "window.py",
        "Mux(word == index, held.strobe, 0)",
        "held.strobe",
    ),
    "refused writes write": (
        f"{WINDOW}/bursts/pause=0.0/l1_pause=0.0",
        "window.py",
        "self.write.valid.eq(has_held & ~held.beat.refused & ~waits)",
        "self.write.valid.eq(has_held & ~waits)",
    ),
    "refused reads read": (
        f"{WINDOW}/bursts/pause=0.0/l1_pause=0.0",
        "window.py",
        "self.read.valid.eq(beats.valid & ~beat.refused & has_room)",
        "self.read.valid.eq(beats.valid & has_room)",
    ),
    "stalled read data are dropped": (
        f"{WINDOW}/transfers/pause=0.4",
        "window.py",
        "has_room.eq(asked != _READ_DEPTH)",
        "has_room.eq(1)",
    ),
    "a response is overwritten": (
        f"{WINDOW}/bursts/pause=0.4/l1_pause=0.0",
        "window.py",
        "waits.eq(held.beat.last & axi.bvalid)",
        "waits.eq(0)",
    ),
    "a beat that waits for L1 is overwritten": (
        f"{WINDOW}/bursts/pause=0.0/l1_pause=0.4",
        "window.py",
        "takes.eq(beats.valid & (~has_held | leaves))",
        "takes.eq(beats.valid)",
    ),
    "room for two beats": (
        f"{WINDOW}/speed",
        "window.py",
        "_READ_DEPTH = 4",
        "_READ_DEPTH = 2",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("job", [REGISTERS, WINDOW])
def test_the_bench_passes_without_a_fault(job, tmp_path):
    done = run_bench(tmp_path, job)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path):
    job, file, *texts = FAULTS[fault]
    done = run_bench(tmp_path, job, f"host/{file}", *texts)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {job}" in done.stdout
