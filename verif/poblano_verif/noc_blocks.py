"""The blocks of the network on chip for the registry; imports no Amaranth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poblano.noc.parameters import NocParameters
from poblano_verif.block_types import Block, Variant

if TYPE_CHECKING:
    from poblano.component import Component

__all__ = ["NOC_BLOCKS"]

_PAYLOAD = 32
"""Bits of the meshes' payload: flits fit a slot of the bench's buses."""


def _mesh(*, icarus: bool = False, **fields: Any) -> Variant:
    network = NocParameters(payload_width=_PAYLOAD, **fields)

    def make() -> Component:
        from poblano.noc.mesh import Mesh

        return Mesh(parameters_of=network)

    def harness() -> Component:
        from poblano_verif.noc_on_buses import NocOnBuses

        return NocOnBuses(parameters_of=network)

    simulators: dict[str, dict[str, str]] = {"verilator": {}}
    if icarus:
        simulators["icarus"] = {"POBLANO_CYCLES": "200"}
    return Variant(make, simulators, harness=harness)


def _router(**fields: Any) -> Variant:
    network = NocParameters(width=3, height=3, **fields)

    def make() -> Component:
        from poblano.noc.router import Router

        return Router(parameters_of=network)

    return Variant(make, {"verilator": {}, "icarus": {"POBLANO_CYCLES": "300"}})


_FOUR_BY_FOUR: dict[str, Any] = {"width": 4, "height": 4}

NOC_BLOCKS = (
    Block(
        "noc_router",
        "router of the network",
        {
            "default": _router(),
            "channels": _router(channels=4, depth=4),
            "registered": _router(depth=3, output_register=True),
        },
    ),
    Block(
        "noc_mesh",
        "network of routers and its ends",
        {
            "two_by_two": _mesh(icarus=True),
            "four_by_four": _mesh(**_FOUR_BY_FOUR, channels=4, depth=4),
            "registered": _mesh(width=3, height=2, depth=3, output_register=True),
            "shallow": _mesh(width=1, height=5, depth=1, channels=2),
            "torus": _mesh(topology="torus", width=5, channels=4, depth=2),
            "small_torus": _mesh(
                topology="torus", height=3, channels=2, depth=2, output_register=True
            ),
        },
    ),
)
