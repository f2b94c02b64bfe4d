"""Topology, routes, their dependencies, and the latency formula."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import pytest

from poblano.noc.flit import flit_places, flit_width, header_width
from poblano.noc.parameters import NocParameters
from poblano.noc.routing import (
    check_no_deadlock,
    dependencies,
    find_cycle,
    hops,
    lane,
    num_hops,
    turns,
)
from poblano.noc.timing import zero_load_latency
from poblano.noc.topology import Link, Port, Topology
from poblano_golden.errors import PoblanoError

SHAPES = [(1, 1), (1, 5), (4, 1), (2, 2), (3, 2), (2, 5), (4, 4), (5, 3)]
KINDS = ["mesh", "torus"]


def distances(topology, source):
    """Return the links to every node by breadth-first search."""
    found, waiting = {source: 0}, deque([source])
    while waiting:
        node = waiting.popleft()
        for port in Port:
            to = topology.neighbour(node, port)
            if to is not None and to not in found:
                found[to] = found[node] + 1
                waiting.append(to)
    return found


def network(kind, side, channels=4):
    return NocParameters(topology=kind, width=side[0], height=side[1], channels=channels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SHAPES, ids=str)
def test_routes_are_shortest_and_turn_once(kind, side):
    parameters = network(kind, side)
    topology = parameters.shape
    for source in range(topology.num_nodes):
        shortest = distances(topology, source)
        assert len(shortest) == topology.num_nodes
        for destination in range(topology.num_nodes):
            path = list(hops(parameters, source, destination))
            assert len(path) == shortest[destination] == num_hops(topology, source, destination)
            node, entered = source, Port.LOCAL
            for hop in path:
                assert hop.link.node == node
                assert hop.link.port in turns(entered)
                node, entered = topology.neighbour(node, hop.link.port), hop.link.port.opposite
            assert node == destination
            along_x = [hop.link.port.is_x for hop in path]
            assert along_x == sorted(along_x, reverse=True)
            assert {hop.channel % parameters.lanes for hop in path} <= {
                lane(parameters, destination)
            }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SHAPES, ids=str)
def test_links_lead_there_and_back(kind, side):
    topology = Topology(kind, *side)
    for link in topology.links():
        to = topology.neighbour(link.node, link.port)
        assert topology.neighbour(to, link.port.opposite) == link.node


def test_a_ring_goes_the_short_way_over_the_wrap():
    [hop] = hops(network("torus", (4, 1)), 0, 3)
    assert hop.link == Link(0, Port.WEST)
    assert [h.link.port for h in hops(network("mesh", (4, 1)), 0, 3)] == [Port.EAST] * 3
    [hop] = hops(network("torus", (1, 4)), 3, 0)
    assert hop.link == Link(3, Port.NORTH)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SHAPES, ids=str)
def test_no_circle_with_channels_enough(kind, side):
    check_no_deadlock(network(kind, side, channels=1 if kind == "mesh" else 2))
    check_no_deadlock(network(kind, side, channels=4))


@pytest.mark.parametrize("side", [(4, 1), (1, 5), (4, 4), (2, 6)], ids=str)
def test_a_torus_with_one_channel_is_refused_with_the_circle(side):
    parameters = network("torus", side, channels=1)
    cycle = find_cycle(dependencies(parameters))
    graph = dependencies(parameters)
    assert cycle
    assert all(after in graph[hop] for hop, after in pairwise([*cycle, cycle[0]]))
    with pytest.raises(PoblanoError, match="must not wait for each other in a circle") as raised:
        check_no_deadlock(parameters)
    names = " -> ".join(map(str, [*cycle, cycle[0]]))
    assert names in str(raised.value)


@pytest.mark.parametrize("side", [(2, 2), (3, 3), (1, 1)], ids=str)
def test_short_rings_need_no_second_channel(side):
    check_no_deadlock(network("torus", side, channels=1))


def test_dependencies_are_those_of_all_routes():
    parameters = network("torus", (5, 4))
    nodes = range(20)
    wanted = set()
    for source in nodes:
        for destination in nodes:
            path = list(hops(parameters, source, destination))
            wanted |= set(pairwise(path))
    graph = dependencies(parameters)
    assert {(a, b) for a, after in graph.items() for b in after} == wanted


def test_a_circle_is_found_in_any_graph():
    assert find_cycle({}) == []
    a, b, c = (next(hops(network("mesh", (4, 1)), n, n + 1)) for n in range(3))
    assert find_cycle({a: {b, c}, b: {c}, c: set()}) == []
    assert find_cycle({a: {b}, b: {c}, c: {b}}) == [b, c]


def test_header_of_an_8x8_mesh():
    parameters = NocParameters(width=8, height=8)
    assert (header_width(parameters), flit_width(parameters)) == (17, 81)
    assert flit_places(parameters)["source.y"] == (14, 3)


def test_latency_formula():
    fast = NocParameters(width=8, height=8)
    assert zero_load_latency(fast, 0, 0) == 2
    assert zero_load_latency(fast, 0, 63) == 16
    assert zero_load_latency(fast, 0, 63, flits=4) == 19
    slow = NocParameters(width=8, height=8, output_register=True)
    assert zero_load_latency(slow, 0, 63) == 31
    # two flits each three cycles, but not into the first router
    assert zero_load_latency(slow, 0, 63, flits=4) == 31 + 4
    assert zero_load_latency(slow, 9, 9, flits=4) == 3 + 3


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"topology": "ring"}, "topology must be one of mesh, torus; got 'ring'"),
        ({"width": 0}, "width of a network must be 1..16 nodes; got 0"),
        ({"height": 17}, "height of a network must be 1..16 nodes; got 17"),
        ({"depth": 0}, "depth of a network must be 1..64; got 0"),
        ({"channels": 17}, "channels of a network must be 1..16; got 17"),
        (
            {"topology": "torus", "channels": 3},
            "channels of a torus must be 1 or a multiple of 2; got 3",
        ),
    ],
)
def test_parameters_outside_their_range(fields, message):
    with pytest.raises(PoblanoError) as raised:
        NocParameters(**fields)
    assert str(raised.value) == message
