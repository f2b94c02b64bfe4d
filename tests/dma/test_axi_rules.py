"""The protocol checker passes a legal exchange and finds every kind of violation in it."""

from __future__ import annotations

import pytest

from poblano_verif.axi_rules import ProtocolError, ReadRules, WriteRules

WIDTH = 16
READ = "arvalid arready arid araddr arlen arsize arburst rvalid rready rid rdata rresp rlast"
WRITE = (
    "awvalid awready awid awaddr awlen awsize awburst "
    "wvalid wready wdata wstrb wlast bvalid bready bid bresp"
)
IDLE_READ = dict.fromkeys(READ.split(), 0)
IDLE_WRITE = dict.fromkeys(WRITE.split(), 0)
ALL = (1 << WIDTH) - 1


def ar(address=0x100, length=1, ready=1, **changes):
    values = {"valid": 1, "ready": ready, "addr": address, "len": length, "size": 4, "burst": 1}
    return {f"ar{name}": value for name, value in values.items()} | changes


def r(last=0, data=7, ready=1, **changes):
    return {"rvalid": 1, "rready": ready, "rdata": data, "rlast": last, **changes}


def aw(address=0x100, length=1, ready=1, **changes):
    values = {"valid": 1, "ready": ready, "addr": address, "len": length, "size": 4, "burst": 1}
    return {f"aw{name}": value for name, value in values.items()} | changes


def w(last=0, strobe=ALL, data=7, ready=1):
    return {"wvalid": 1, "wready": ready, "wdata": data, "wstrb": strobe, "wlast": last}


def b(ready=1, response=0):
    return {"bvalid": 1, "bready": ready, "bresp": response}


def run(rules, idle, cycles):
    for number, cycle in enumerate(cycles):
        rules.step(number, {**idle, **cycle})
    rules.finish()
    return rules


LEGAL_READS = {
    "one burst": [ar(), r(), r(last=1)],
    "stalls": [ar(ready=0), ar(), r(ready=0), r(ready=0), r(), {}, r(last=1)],
    "two in flight": [ar(), ar(0x200, 0), r(), r(last=1), r(last=1)],
    "up to 4 KiB": [ar(0xFFF, 0), r(last=1)],
    "256 beats": [ar(0, 255), *[r()] * 255, r(last=1)],
    "all at once": [ar(), {**ar(0x300, 0), **r()}, r(last=1), r(last=1)],
}

LEGAL_WRITES = {
    "one burst": [aw(), w(), w(last=1), b()],
    "data first": [w(), w(last=1), aw(), b()],
    "unaligned": [aw(0x103), w(strobe=ALL & (ALL << 3)), w(last=1, strobe=0x1F), b()],
    "stalls": [aw(ready=0), aw(), w(ready=0), w(), w(last=1), b(ready=0), b(response=0)],
    "two in flight": [aw(), {**aw(0x200, 0), **w()}, w(last=1), w(last=1), b(), b()],
    "an error": [aw(length=0), w(last=1), b(response=2)],
}

BAD_READS = {
    "AR goes away": ([ar(ready=0), {}], "ar was offered and went away"),
    "AR changes": ([ar(ready=0), ar(0x101)], "ar changed while it waited"),
    "AR len changes": ([ar(ready=0), ar(length=2)], "ar changed while it waited"),
    "R goes away": ([ar(), r(ready=0), {}], "r was offered and went away"),
    "R changes": ([ar(), r(ready=0), r(data=8)], "r changed while it waited"),
    "R without AR": ([r()], "a read beat came that nobody asked for"),
    "R with its AR": ([{**ar(), **r()}], "a read beat came that nobody asked for"),
    "R too early last": ([ar(), r(last=1)], "rlast must be 0 with beat 0 of 2"),
    "R never last": ([ar(), r(), r()], "rlast must be 1 with beat 1 of 2"),
    "R too many": ([ar(), r(), r(last=1), r()], "a read beat came that nobody asked for"),
    "4 KiB": ([ar(0xFF0, 1)], "crosses a 4 KiB boundary"),
    "4 KiB past bit 12": ([ar(0x1FF8, 1)], "crosses a 4 KiB boundary"),
    "long": ([ar(0x10, 255)], "crosses a 4 KiB boundary"),
    "WRAP": ([ar(arburst=2)], "the burst must be INCR"),
    "narrow": ([ar(arsize=3)], "a beat must have 16 bytes; got 8"),
    "too many in flight": ([ar(), ar(), ar(), ar()], "at most 3 bursts may be in flight; got 4"),
    "no answer": ([ar(), r()], "1 bursts got no full answer"),
}

BAD_WRITES = {
    "AW goes away": ([aw(ready=0), {}], "aw was offered and went away"),
    "AW changes": ([aw(ready=0), aw(0x110)], "aw changed while it waited"),
    "W goes away": ([aw(), w(ready=0), {}], "w was offered and went away"),
    "W data changes": ([aw(), w(ready=0), w(data=8)], "w changed while it waited"),
    "W strobe changes": ([aw(), w(ready=0), w(strobe=1)], "w changed while it waited"),
    "B goes away": ([aw(), w(), w(last=1), b(ready=0), {}], "b was offered and went away"),
    "B changes": ([aw(), w(), w(last=1), b(ready=0), b(response=2)], "b changed while it waited"),
    "W too early last": ([aw(), w(last=1)], "wlast must be 0; got 1"),
    "W never last": ([aw(), w(), w()], "wlast must be 1; got 0"),
    "W below the start": ([aw(0x103), w()], "names bytes outside the burst"),
    "B before the data": ([aw(), w(), b()], "a write response came for no finished burst"),
    "B with its last beat": ([aw(length=0), {**w(last=1), **b()}], "for no finished burst"),
    "B twice": ([aw(length=0), w(last=1), b(), b()], "a write response came for no finished"),
    "4 KiB": ([aw(0xFF0, 1)], "crosses a 4 KiB boundary"),
    "FIXED": ([aw(awburst=0)], "the burst must be INCR"),
    "narrow": ([aw(awsize=0)], "a beat must have 16 bytes; got 1"),
    "too many in flight": ([aw(), aw(), aw(), aw()], "at most 3 bursts may be in flight; got 4"),
    "no data": ([aw(), w()], "1 bursts lack data"),
    "no response": ([aw(), w(), w(last=1)], "1 a response"),
    "no address": ([w(last=1)], "1 beats an address"),
}


@pytest.mark.parametrize("name", LEGAL_READS)
def test_legal_reads_pass(name):
    rules = run(ReadRules(WIDTH, 3), IDLE_READ, LEGAL_READS[name])
    assert rules.beats == sum(burst.beats for burst in rules.bursts) > 0


@pytest.mark.parametrize("name", LEGAL_WRITES)
def test_legal_writes_pass(name):
    rules = run(WriteRules(WIDTH, 3), IDLE_WRITE, LEGAL_WRITES[name])
    assert rules.beats == sum(burst.beats for burst in rules.bursts) > 0
    assert rules.responses == len(rules.bursts)


@pytest.mark.parametrize("name", BAD_READS)
def test_every_read_violation_is_found(name):
    cycles, message = BAD_READS[name]
    with pytest.raises(ProtocolError, match=message):
        run(ReadRules(WIDTH, 3), IDLE_READ, cycles)


@pytest.mark.parametrize("name", BAD_WRITES)
def test_every_write_violation_is_found(name):
    cycles, message = BAD_WRITES[name]
    with pytest.raises(ProtocolError, match=message):
        run(WriteRules(WIDTH, 3), IDLE_WRITE, cycles)
