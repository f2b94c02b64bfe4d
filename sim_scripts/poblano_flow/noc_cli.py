"""`poblano noc`: routes, channel dependencies and load-latency curves of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from poblano.noc.parameters import NocParameters

__all__ = ["register"]

_Size = Annotated[str, typer.Option("--size", metavar="WIDTHxHEIGHT", help="Nodes.")]
_Kind = Annotated[str, typer.Option("--topology", help="mesh or torus.")]
_Channels = Annotated[int, typer.Option("--channels", help="Virtual channels of a link.")]
_Depth = Annotated[int, typer.Option("--depth", help="Flits of an input's channel.")]
_Registered = Annotated[
    bool, typer.Option("--output-register", help="Two cycles a hop instead of one.")
]
_Out = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="DIR", help="Default: build/noc.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Routes and load curves of a network on chip.")
    group.command()(curve)
    group.command()(route)
    group.command()(channels)
    group.command()(picture)
    app.add_typer(group, name="noc")


def curve(
    size: _Size = "4x4",
    topology: _Kind = "mesh",
    num_channels: _Channels = 4,
    depth: _Depth = 4,
    output_register: _Registered = False,
    patterns: Annotated[
        list[str] | None, typer.Option("--pattern", help="Of traffic; all by default.")
    ] = None,
    flits: Annotated[int, typer.Option("--flits", min=1, help="Of a packet.")] = 1,
    points: Annotated[int, typer.Option("--points", min=1, help="Loads up to 1.")] = 10,
    cycles: Annotated[int, typer.Option("--cycles", min=1, help="Of a point's count.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 1,
    output: _Out = None,
) -> None:
    """Latency and accepted load over offered load, as CSV and plot.

    The model that is run equals the RTL cycle by cycle. Half as many cycles come before the count.

    [bold]Example[/bold]

      poblano noc curve --size 8x8 --pattern uniform --pattern transpose
    """
    from rich.console import Console
    from rich.progress import track

    from poblano_flow.noc_plots import curve_csv, curve_svg
    from poblano_sw.noc.traffic import PATTERNS, LoadPoint, measure_load

    network = _network(size, topology, num_channels, depth, output_register)
    asked = patterns or [
        name for name in PATTERNS if name != "transpose" or network.width == network.height
    ]
    found: dict[str, list[LoadPoint]] = {name: [] for name in asked}
    console = Console(stderr=True)
    loads = [(name, (index + 1) / points) for name in asked for index in range(points)]
    for name, load in track(loads, "simulating", console=console, transient=True):
        found[name].append(
            measure_load(
                network, name, load, flits=flits, cycles=cycles, warm_up=cycles // 2, seed=seed
            )
        )
    title = f"{size} {topology}, {num_channels} channels of {depth} flits, {flits}-flit packets"
    _write(output, {"curve.csv": curve_csv(found), "curve.svg": curve_svg(found, title)})


def route(
    source: Annotated[int, typer.Argument(help="Node the packet comes from.")],
    destination: Annotated[int, typer.Argument(help="Node it goes to.")],
    size: _Size = "4x4",
    topology: _Kind = "mesh",
    num_channels: _Channels = 4,
    depth: _Depth = 4,
    output_register: _Registered = False,
) -> None:
    """Print the links and channels of a packet, and its latency without load.

    [bold]Example[/bold]

      poblano noc route 0 3 --size 4x1 --topology torus
    """
    from poblano.noc.routing import check_no_deadlock, hops
    from poblano.noc.timing import zero_load_latency

    network = _network(size, topology, num_channels, depth, output_register)
    check_no_deadlock(network)
    for node in (source, destination):
        network.shape.position(node)
    for hop in hops(network, source, destination):
        to = network.shape.neighbour(hop.link.node, hop.link.port)
        print(f"{hop.link.node} {hop.link.port.name.lower()} to {to} on channel {hop.channel}")
    print(f"{zero_load_latency(network, source, destination)} cycles for one flit without load")


def channels(
    size: _Size = "4x4",
    topology: _Kind = "mesh",
    num_channels: _Channels = 4,
    output: _Out = None,
) -> None:
    """Write the graph of what channels wait for, for Graphviz; refuse one with a circle.

    [bold]Example[/bold]

      poblano noc channels --size 4x4 --topology torus --channels 2
    """
    from poblano.noc.routing import check_no_deadlock, dependencies

    network = _network(size, topology, num_channels, 2, False)
    check_no_deadlock(network)
    graph = dependencies(network)
    lines = [f'  "{hop}" -> "{after}";' for hop in sorted(graph) for after in sorted(graph[hop])]
    _write(output, {"channels.dot": "\n".join(["digraph channels {", *lines, "}"]) + "\n"})
    print(f"{len(graph)} channels, {len(lines)} dependencies, no circle")


def picture(
    size: _Size = "4x4",
    topology: _Kind = "mesh",
    num_channels: _Channels = 4,
    output: _Out = None,
) -> None:
    """Draw the nodes and links, links by the routes that cross them.

    [bold]Example[/bold]

      poblano noc picture --size 4x4 --topology torus
    """
    from poblano_flow.noc_plots import topology_svg

    network = _network(size, topology, num_channels, 2, False)
    _write(output, {"topology.svg": topology_svg(network)})


def _network(
    size: str, topology: str, num_channels: int, depth: int, output_register: bool
) -> NocParameters:
    """Return the network that the options describe."""
    import re

    from poblano.noc.parameters import NocParameters
    from poblano_golden.errors import PoblanoError

    sides = re.fullmatch(r"(\d+)x(\d+)", size)
    if sides is None:
        raise PoblanoError(f"a size must be WIDTHxHEIGHT, such as 4x4; got {size}")
    return NocParameters(
        topology=topology,
        width=int(sides[1]),
        height=int(sides[2]),
        channels=num_channels,
        depth=depth,
        output_register=output_register,
    )


def _write(output: Path | None, files: dict[str, str]) -> None:
    from poblano_flow.build_cache import build_root

    folder = output or build_root() / "noc"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
        print(folder / name)
