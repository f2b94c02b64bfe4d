"""The ideal memory keeps the timing contract's latencies to the cycle."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from poblano_verif.axi_memory import Behaviour, IdealReads, IdealWrites, Window

WIDTH = 4
READ = "arvalid arready araddr arlen rvalid rready rdata rresp rlast"
WRITE = "awvalid awready awaddr awlen wvalid wready wdata wstrb bvalid bready bresp"


class FakePort:
    """A port whose value is what was last written to it."""

    def __init__(self):
        self.handle = SimpleNamespace(value=0)

    @property
    def bits(self):
        return self.handle.value


def window(origin=0x100, size=64):
    return Window(origin, np.arange(size, dtype=np.uint8))


def play(server, ports, stimulus, cycles, watched):
    """Return the cycles in which the watched signals were valid and ready, with their values."""
    seen = []
    for cycle in range(cycles):
        for name, value in stimulus.get(cycle, {}).items():
            ports[name].handle.value = value
        valid, ready, *rest = (ports[name].bits for name in watched)
        if valid and ready:
            seen.append((cycle, *rest))
        server.edge(cycle)
    return seen


def reads(behaviour, stimulus, cycles=40):
    ports = {name: FakePort() for name in READ.split()}
    server = IdealReads(ports, WIDTH, window(), behaviour)
    ports["rready"].handle.value = ports["arready"].handle.value = 1
    return play(server, ports, stimulus, cycles, ("rvalid", "rready", "rdata", "rresp", "rlast"))


def address(at, length):
    return {"arvalid": 1, "araddr": at, "arlen": length}


def word(at):
    return int.from_bytes(bytes(range(at - 0x100, at - 0x100 + WIDTH)), "little")


def test_beats_follow_the_latency_one_a_cycle():
    seen = reads(Behaviour(latency=5), {3: address(0x106, 2), 4: {"arvalid": 0}})
    assert seen == [
        (8, word(0x104), 0, 0),
        (9, word(0x108), 0, 0),
        (10, word(0x10C), 0, 1),
    ]


def test_latencies_overlap_and_beats_stay_in_order():
    stimulus = {0: address(0x100, 3), 1: address(0x110, 0), 2: {"arvalid": 0}}
    assert [cycle for cycle, *_ in reads(Behaviour(latency=5), stimulus)] == [5, 6, 7, 8, 9]


def test_a_beat_waits_for_ready():
    stimulus = {0: address(0x100, 1), 1: {"arvalid": 0, "rready": 0}, 9: {"rready": 1}}
    assert [cycle for cycle, *_ in reads(Behaviour(latency=2), stimulus)] == [9, 10]


def test_responses_and_silence_are_by_burst_and_beat():
    behaviour = Behaviour(latency=1, responses={(0, 1): 2}, mute_from=1)
    seen = reads(behaviour, {0: address(0x100, 1), 1: address(0x110, 0), 2: {"arvalid": 0}})
    assert [response for _, _, response, _ in seen] == [0, 2]


def writes(behaviour, stimulus, memory, cycles=40):
    ports = {name: FakePort() for name in WRITE.split()}
    server = IdealWrites(ports, WIDTH, memory, behaviour)
    for name in ("awready", "wready", "bready"):
        ports[name].handle.value = 1
    return play(server, ports, stimulus, cycles, ("bvalid", "bready", "bresp"))


def test_a_response_follows_the_last_beat_by_the_latency():
    memory = window()
    stimulus = {
        2: {"awvalid": 1, "awaddr": 0x105, "awlen": 1},
        3: {"awvalid": 0, "wvalid": 1, "wdata": 0xAABBCCDD, "wstrb": 0xE},
        4: {"wvalid": 0},
        6: {"wvalid": 1, "wdata": 0x11223344, "wstrb": 0x3},
        7: {"wvalid": 0},
    }
    assert writes(Behaviour(latency=7, responses={(0, 0): 3}), stimulus, memory) == [(13, 3)]
    assert memory.data[4:12].tolist() == [4, 0xCC, 0xBB, 0xAA, 0x44, 0x33, 10, 11]


def test_data_may_come_first():
    stimulus = {
        0: {"wvalid": 1, "wdata": 5, "wstrb": 0xF},
        1: {"wvalid": 0},
        4: {"awvalid": 1, "awaddr": 0x100, "awlen": 0},
        5: {"awvalid": 0},
    }
    assert writes(Behaviour(latency=3), stimulus, window()) == [(7, 0)]


def test_what_accepts_nothing_answers_nothing():
    behaviour = Behaviour(latency=1, accepts=False)
    assert reads(behaviour, {1: address(0x100, 0)}) == []


def test_accesses_outside_the_window_fail():
    with pytest.raises(AssertionError, match="0x140, outside what the test uses"):
        window().read(0x140, WIDTH)
    with pytest.raises(AssertionError, match="0x101, outside what may change"):
        Window(0x102, np.zeros(4, np.uint8)).write(0x100, WIDTH, 0, 2)
    assert Window(0x102, np.full(4, 9, np.uint8)).read(0x100, WIDTH) == 0x09090000
