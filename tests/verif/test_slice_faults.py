"""Faults planted in what joins a slice's engines, each of which a named test must find."""

from __future__ import annotations

import pytest
from planted_fault import run_bench

SLICE, AXI = "slice:tiny/verilator", "slice_axi:tiny/icarus"

FAULTS = {
    "a fault is the oldest command's": (
        f"{SLICE} and ring_outside",
        "control/fault_register.py",
        "self.number.eq(completed + ahead)",
        "self.number.eq(completed)",
    ),
    "a fault is the first queue's": (
        f"{SLICE} and wait_without_end",
        "control/fault_register.py",
        "self.queue_number.eq(index)",
        "self.queue_number.eq(0)",
    ),
    "an overflow is a queue's": (
        f"{SLICE} and overflow_by_host_and_command",
        "control/fault_register.py",
        "self.queue_number.eq(NO_QUEUE)",
        "self.queue_number.eq(0)",
    ),
    "a fault's address and response are lost": (
        f"{AXI} and errors_of_the_memory",
        "control/fault_register.py",
        "self.fault.eq(fault)",
        "self.fault.kind.eq(fault.kind)",
    ),
    "patience for any number of cycles ends at once": (
        f"{SLICE} and wait_without_end",
        "control/command_queue.py",
        "waits & (self.patience != 0) &",
        "waits &",
    ),
    "a word does not wait": (
        f"{SLICE} and slice_products.two_products_in_one_program",
        "control/command_queue.py",
        "self.command.valid.eq(offers & room & self.granted)",
        "self.command.valid.eq(offers & room)",
    ),
    "a command signals when the next is issued": (
        f"{SLICE} and slice_products.two_products_in_one_program",
        "control/command_queue.py",
        "self.signal_valid.eq(self.done)",
        "self.signal_valid.eq(self.issues)",
    ),
    "a small overflow is not told": (
        f"{SLICE} and overflow_by_host_and_command",
        "control/semaphores.py",
        "overflows[index].eq(after[VALUE_WIDTH:].any())",
        "overflows[index].eq(after[VALUE_WIDTH + 1 :].any())",
    ),
    "half of a wait is granted": (
        f"{SLICE} and wait_without_end",
        "control/semaphores.py",
        'holds.eq(holds_a & self._holds(wait, "b"))',
        "holds.eq(holds_a)",
    ),
    "the word behind L1 is fetched": (
        f"{SLICE} and ring_outside",
        "control/fetcher.py",
        "outside.eq(full_place >= self",
        "outside.eq(full_place > self",
    ),
    "rings do not wrap": (
        f"{SLICE} and reset_in_mid_burst",
        "control/fetcher.py",
        "place.eq(full_place)",
        "place.eq(ring.base)",
    ),
    "two clients have one bank": (
        f"{SLICE} and host_beside_a_program",
        "l1/scratchpad.py",
        "port.ready.eq(free)",
        "port.ready.eq(1)",
    ),
    "conflicts of reads are not counted": (
        f"{SLICE} and host_beside_a_program",
        "slice.py",
        "registers.l1_read_conflicts.eq(l1.read_conflict)",
        "registers.l1_read_conflicts.eq(0)",
    ),
    "an issue is a busy cycle": (
        f"{SLICE} and counters",
        "slice.py",
        "registers_of.busy_cycles.eq(queue.busy)",
        "registers_of.busy_cycles.eq(queue.busy | queue.issues)",
    ),
    "beats of reads are those of writes": (
        f"{SLICE} and counters",
        "slice.py",
        '((loads[index], "read"), (stores[index], "write"))',
        '((loads[index], "write"), (stores[index], "read"))',
    ),
    "a fault raises no interrupt": (
        f"{SLICE} and wait_without_end",
        "slice.py",
        "registers.interrupt_status_fault.eq(failed & ~before)",
        "registers.interrupt_status_fault.eq(0)",
    ),
    "the watchdog does not watch the memory": (
        f"{AXI} and responses_withheld",
        "slice.py",
        "half.patience.eq(registers.watchdog)",
        "half.patience.eq(0)",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("selection", sorted({fault[0] for fault in FAULTS.values()}))
def test_the_bench_passes_without_a_fault(selection, tmp_path):
    done = run_bench(tmp_path, selection)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path):
    selection, *change = FAULTS[fault]
    done = run_bench(tmp_path, selection, *change)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED {selection.partition(' ')[0]}" in done.stdout
