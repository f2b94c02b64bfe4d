# pyright: reportUnknownVariableType=false
# (matplotlib leaves the types of its keyword arguments open)
"""Load-latency curves and pictures of a network."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl

from poblano.noc.parameters import NocParameters
from poblano.noc.routing import hops
from poblano.noc.topology import Link
from poblano_sw.noc.traffic import LoadPoint

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curve_csv", "curve_svg", "topology_svg"]

_SHOWN_LATENCY = 5.0
"""The plot ends at so many times the lowest latency: beyond lies what grows without end."""


def curve_csv(curves: Mapping[str, Sequence[LoadPoint]]) -> str:
    """Return a row a pattern and load."""
    lines = ["pattern,offered,accepted,latency,packets"]
    lines += [
        f"{name},{point.offered:.4f},{point.accepted:.4f},{point.latency:.2f},{point.packets}"
        for name, points in curves.items()
        for point in points
    ]
    return "\n".join(lines) + "\n"


def curve_svg(curves: Mapping[str, Sequence[LoadPoint]], title: str) -> str:
    """Return latency and accepted load over offered load, one curve a pattern."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    latency, accepted = figure.subplots(1, 2)
    for name, points in curves.items():
        offered = [point.offered for point in points]
        latency.plot(offered, [point.latency for point in points], marker=".", label=name)
        accepted.plot(offered, [point.accepted for point in points], marker=".", label=name)
    lowest = min(point.latency for points in curves.values() for point in points)
    latency.set_ylim(0, _SHOWN_LATENCY * lowest)
    latency.set_ylabel("latency, cycles")
    accepted.set_ylabel("accepted, flits/node/cycle")
    accepted.set_ylim(0, 1)
    for ax in (latency, accepted):
        ax.set_xlabel("offered, flits/node/cycle")
        ax.spines[["top", "right"]].set_visible(False)
    accepted.legend(frameon=False)
    figure.suptitle(title)
    return _svg(figure)


def topology_svg(network: NocParameters) -> str:
    """Return nodes and links; a link is as thick as there are routes that cross it."""
    from matplotlib.figure import Figure

    topology = network.shape
    nodes = range(topology.num_nodes)
    routes: Counter[Link] = Counter(
        hop.link for a in nodes for b in nodes for hop in hops(network, a, b)
    )
    most = max(routes.values(), default=1)
    figure = Figure(figsize=(1.5 + topology.width, 1.5 + topology.height), layout="constrained")
    ax = figure.subplots()
    for link in topology.links():
        x, y = topology.position(link.node)
        step = {0: (0, 1), 1: (1, 0), 2: (0, -1), 3: (-1, 0)}[link.port]
        # the two directions of a link lie side by side; one around the ring ends halfway
        side = (0.08 * step[1], -0.08 * step[0])
        length = 0.45 if topology.is_around(link) else 0.85
        ax.annotate(
            "",
            (x + length * step[0] + side[0], y + length * step[1] + side[1]),
            (x + 0.15 * step[0] + side[0], y + 0.15 * step[1] + side[1]),
            arrowprops={
                "arrowstyle": "->",
                "linewidth": 0.4 + 2.6 * routes[link] / most,
                "color": "#2f7d4f",
            },
        )
    for node in nodes:
        x, y = topology.position(node)
        ax.text(x, y, str(node), ha="center", va="center", bbox={"boxstyle": "round", "fc": "w"})
    ax.set_xlim(-0.7, topology.width - 0.3)
    ax.set_ylim(-0.7, topology.height - 0.3)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(f"{topology.width}x{topology.height} {topology.kind}")
    return _svg(figure)


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "poblano", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()
