"""The published figures of the network on chip, on the RTL under Verilator."""

from __future__ import annotations

import json
from typing import Any

from poblano.noc.flit import header_width
from poblano.noc.parameters import NocParameters
from poblano.noc.router import Router
from poblano_flow.build_cache import build_root
from poblano_flow.emission import emit
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import build, run
from poblano_flow.synthesis.generic_cells import generic_cells
from poblano_golden.errors import PoblanoError
from poblano_verif.noc_on_buses import NocOnBuses

__all__ = ["cells", "hops", "lost", "saturation"]

Figures = dict[str, dict[str, Any]]

_BENCH = "poblano_verif.benches.noc_load"
_PAYLOAD = 32
"""Bits of the simulated flits; they change no cycle."""

_OPTIONS = SimOptions(hierarchical=("Router",))
"""Compiling the router apart halves the time of an 8x8 mesh's build."""

_CHANNELS, _DEPTH = 4, 4
"""16 flits of buffer a port."""

_WARM_UP, _CYCLES = 1000, 2000
_STALL = 0.2
_PACKETS = 1_000_000


def _figure(value: float, unit: str, preset: str, how: str, peer: float | None) -> dict[str, Any]:
    return {
        "value": value,
        "unit": unit,
        "preset": preset,
        "peer": None if peer is None else "best open router measured",
        "peer_value": peer,
        "how": how,
    }


def _measure(network: NocParameters, test: str, label: str, **asked: float) -> dict[str, float]:
    """Run a test of the bench; return its report.

    Raises
    ------
    PoblanoError
        If the test fails.
    """
    folder = build_root() / "bench" / "noc" / label
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "report.json"
    path.unlink(missing_ok=True)
    ended = run(
        build(emit(NocOnBuses(parameters_of=network)), options=_OPTIONS, jobs=2),
        _BENCH,
        folder / "run",
        seed=1,
        test_filter=f"^{_BENCH}\\.{test}$",
        environment={
            "POBLANO_NOC_FILE": str(path),
            **{f"POBLANO_NOC_{name}": str(value) for name, value in asked.items()},
        },
        limit=1200.0,
    )
    if not ended.passed or not path.is_file():
        raise PoblanoError(f"the network's bench must pass; got {ended.cases[0].message}")
    return json.loads(path.read_text("utf-8"))


def hops() -> Figures:
    """Return the cycles of a hop, without and with the router's output register."""
    found: Figures = {}
    for registered, name in (
        (False, "noc.cycles_per_hop"),
        (True, "noc.cycles_per_hop_registered"),
    ):
        network = NocParameters(
            width=4, height=1, payload_width=_PAYLOAD, depth=3, output_register=registered
        )
        report = _measure(network, "hop", f"hop-{int(registered)}")
        how = (
            "RTL under Verilator, 4x1 mesh without load: what a node further along the row adds to "
            f"the latency of a flit; output register {'on' if registered else 'off'}"
        )
        found[name] = _figure(report["hop"], "cycles", "4x1 mesh", how, None)
    return found


def saturation(side: int) -> Figures:
    """Return accepted flits a node and cycle at offered load 1, packets of one flit and of four."""
    network = NocParameters(
        width=side, height=side, payload_width=_PAYLOAD, channels=_CHANNELS, depth=_DEPTH
    )
    found: Figures = {}
    for flits in (1, 4):
        report = _measure(
            network,
            "full_load",
            f"saturation-{side}-{flits}",
            FLITS=flits,
            PAUSE=0.0,
            WARM_UP=_WARM_UP,
            CYCLES=_CYCLES,
            PACKETS=0,
        )
        if report["lost"]:
            raise AssertionError(f"nothing must be lost; got {report['lost']} flits")
        how = (
            f"RTL under Verilator, {side}x{side} mesh, XY, one cycle a hop, {_CHANNELS} channels "
            f"of {_DEPTH} flits a port, chosen by destination so that the order of every pair is "
            f"kept (checked, every flit); uniform including the source itself, {flits}-flit "
            f"packets, every source always has one; flits accepted by sinks in {_CYCLES} cycles "
            f"after {_WARM_UP}"
        )
        found[f"noc.saturation_{side}x{side}_p{flits}"] = _figure(
            report["accepted"], "flits/node/cycle", f"{side}x{side} mesh", how, None
        )
    return found


def lost() -> Figures:
    """Return the flits of a million packets that did not arrive, once and in order, under stalls.

    Raises
    ------
    PoblanoError
        If one arrives twice, elsewhere or out of order.
    """
    network = NocParameters(
        width=4, height=4, payload_width=_PAYLOAD, channels=_CHANNELS, depth=_DEPTH
    )
    report = _measure(
        network,
        "full_load",
        "lost",
        FLITS=1,
        PAUSE=_STALL,
        WARM_UP=_WARM_UP,
        CYCLES=_CYCLES,
        PACKETS=_PACKETS,
    )
    how = (
        f"RTL under Verilator, 4x4 mesh, {report['packets']:.0f} one-flit packets, uniform, every "
        f"source always has one, sinks stall {_STALL:.0%} of the cycles; every flit is checked to "
        "be at its destination, once, in the order of its pair"
    )
    return {"noc.random_packets_lost": _figure(report["lost"], "packets", "4x4 mesh", how, None)}


def cells() -> Figures:
    """Return the generic cells of a router."""
    network = NocParameters(width=8, height=8)
    emission = emit(Router(parameters_of=network))
    source = "\n".join(module.verilog for module in emission.modules)
    how = (
        f"Yosys `synth -flatten`, all cells: 5 ports, {network.payload_width}-bit payload and "
        f"{header_width(network)}-bit header, 1 channel, inputs of {network.depth} flits, no "
        "output register, 8x8 mesh, no multicast"
    )
    value = generic_cells(source, emission.top.name)
    return {"noc.router_cells": _figure(value, "cells", "8x8 mesh", how, 4238)}
