"""Faults planted in the ideal memory, each of which its bench must find."""

import pytest

from poblano_flow.emission import emit
from poblano_flow.simulate import build, run
from poblano_verif.ideal_memory import IdealMemory

FAULTS = {
    "reads come a cycle late": (
        "read_due[at] = cycle + LATENCY - 1",
        "read_due[at] = cycle + LATENCY",
    ),
    "answers come a cycle early": (
        "write_due[at] = cycle + LATENCY - 1",
        "write_due[at] = cycle + LATENCY - 2",
    ),
    "reads never give way": (" && !(reads & axi__wvalid & has_room)", ""),
    "two beats a cycle": ("axi__wready = has_room & ~reads", "axi__wready = has_room"),
    "a reader that waits stops writes": (
        "axi__wready = has_room & ~reads",
        "axi__wready = has_room & ~axi__rvalid",
    ),
    "strobes are ignored": ("if (beat_strobe[beat_head[7:0]][lane])", "if (1)"),
    "narrow beats step by the bus": (
        "next = ((start >> size) + 1) << size",
        "next = (start / WIDTH + 1) * WIDTH",
    ),
    "every kind of burst is served": ("burst != INCR || ", ""),
    "one beat past the end is served": ("start >= SIZE", "start > SIZE"),
    "identifiers are lost": ("axi__bid <= write_id[at]", "axi__bid <= 0"),
    "beats are counted once a burst": (
        "if (reads) begin\n        read_beats",
        "if (reads & axi__rlast) begin\n        read_beats",
    ),
    "a dump loses its tail": ("while (index < length)", "while (0)"),
}


class Faulty(IdealMemory):
    """An ideal memory with one text of its module replaced."""

    old = new = ""

    def verilog(self):
        text = super().verilog()
        if self.old:
            assert text.count(self.old) == 1, self.old
        return text.replace(self.old, self.new) if self.old else text


def passes(old, new, folder, monkeypatch):
    monkeypatch.setenv("POBLANO_BUILD_DIR", str(folder / "build"))
    kind = type("Faulty", (Faulty,), {"old": old, "new": new})
    memory = kind(width=4, size=12_300, address_width=40, id_width=4, latency=5)
    built = build(emit(memory), "icarus")
    return run(built, "poblano_verif.benches.ideal_memory", folder / "run", seed=1).passed


def test_the_bench_passes_without_a_fault(tmp_path, monkeypatch):
    assert passes("", "", tmp_path, monkeypatch)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_bench_finds(fault, tmp_path, monkeypatch):
    assert not passes(*FAULTS[fault], tmp_path, monkeypatch)
