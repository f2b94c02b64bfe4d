# pyright: reportUnknownMemberType=false
# (matplotlib leaves the types of its keyword arguments open)
"""A picture of where a design's area is: nested rectangles, sizes in proportion to areas."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import matplotlib as mpl

from poblano_flow.synthesis.hierarchy import DesignArea, ModuleArea

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Node", "Rectangle", "area_tree", "squarified", "treemap_svg"]

_COLOURS = ("#4f86c6", "#2f7d4f", "#e2a23b", "#8d6cab", "#c65f4f", "#5fa8a0", "#8a8f45", "#b0718f")
_MEMORY_COLOUR = "#b9bec4"
_WIDTH, _HEIGHT = 16.0, 9.0
_LEAST_SIDE = 0.12
"""Inches; what is narrower is drawn as one piece."""
_TITLE = 0.26


@dataclass(frozen=True)
class Node:
    """A part of the area: a module with all that is below it, or a piece of it alone."""

    label: str
    area: float
    memory: bool = False
    children: tuple[Node, ...] = field(default=())


@dataclass(frozen=True)
class Rectangle:
    """A place in the picture."""

    x: float
    y: float
    width: float
    height: float


def area_tree(design: DesignArea) -> Node:
    """Return the design as a tree; the equal children of a module are one node."""
    areas = {area.module.name: area for area in design.modules}

    def node(area: ModuleArea, count: int) -> Node:
        kind = area.module.kind
        children = [
            node(areas[name], count * times)
            for name, times in Counter(area.module.instances.values()).items()
        ]
        if area.own_logic and (children or area.own_memory):
            children.append(Node(f"{kind}: own logic", area.own_logic * count))
        if area.own_memory and (children or area.own_logic):
            children.append(Node(f"{kind}: memory", area.own_memory * count, memory=True))
        total = (area.logic + area.memory) * count
        label = kind if count == 1 else f"{kind} x {count}"
        used = tuple(sorted((c for c in children if c.area), key=lambda c: -c.area))
        return Node(label, total, memory=not area.logic, children=used)

    return node(design.top, 1)


def squarified(areas: Sequence[float], place: Rectangle) -> list[Rectangle]:
    """Divide a rectangle in proportion to areas, largest first, with pieces near to squares.

    The algorithm of Bruls, Huizing and van Wijk: a row along the shorter side grows as long as
    its worst ratio of sides gets better.
    """
    if not areas:
        return []
    scale = place.width * place.height / sum(areas)
    sizes = [area * scale for area in areas]
    places: list[Rectangle] = []
    while sizes:
        side = min(place.width, place.height)
        count = 1
        while count < len(sizes) and _worst(sizes[: count + 1], side) <= _worst(
            sizes[:count], side
        ):
            count += 1
        row, sizes = sizes[:count], sizes[count:]
        places += _row(row, place)
        place = _rest(sum(row), place)
    return places


def treemap_svg(design: DesignArea, title: str) -> str:
    """Return the picture as SVG, the same bytes for the same data."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, _HEIGHT + 0.6))
    ax = figure.add_axes((0, 0, 1, _HEIGHT / (_HEIGHT + 0.6)))
    ax.set_xlim(0, _WIDTH)
    ax.set_ylim(_HEIGHT, 0)
    ax.axis("off")
    figure.text(0.006, 0.975, title, fontsize=11, va="center")
    tree = area_tree(design)
    _draw(ax, tree, Rectangle(0, 0, _WIDTH, _HEIGHT), _COLOURS[0], tree.area)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "poblano", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _worst(sizes: Sequence[float], side: float) -> float:
    thickness = sum(sizes) / side
    return max(max(thickness * thickness / size, size / thickness**2) for size in sizes)


def _row(sizes: Sequence[float], place: Rectangle) -> list[Rectangle]:
    """Return the pieces of a row along the shorter side."""
    wide = place.width >= place.height
    side = place.height if wide else place.width
    thickness = sum(sizes) / side
    places: list[Rectangle] = []
    offset = 0.0
    for size in sizes:
        length = size / thickness
        places.append(
            Rectangle(place.x, place.y + offset, thickness, length)
            if wide
            else Rectangle(place.x + offset, place.y, length, thickness)
        )
        offset += length
    return places


def _rest(size: float, place: Rectangle) -> Rectangle:
    if place.width >= place.height:
        used = size / place.height
        return Rectangle(place.x + used, place.y, place.width - used, place.height)
    used = size / place.width
    return Rectangle(place.x, place.y + used, place.width, place.height - used)


def _draw(ax: Axes, node: Node, place: Rectangle, colour: str, whole: float) -> None:
    from matplotlib.patches import Rectangle as Patch

    face = _MEMORY_COLOUR if node.memory else colour
    inner = Rectangle(
        place.x + 0.04, place.y + _TITLE, place.width - 0.08, place.height - _TITLE - 0.04
    )
    nested = node.children and min(inner.width, inner.height) > _LEAST_SIDE
    ax.add_patch(
        Patch(
            (place.x, place.y), place.width, place.height,
            facecolor=face, alpha=0.35 if nested else 0.8, edgecolor="white", linewidth=0.8,
        )
    )  # fmt: skip
    text = f"{node.label}  {node.area / whole:.1%}"
    room = int(place.width / 0.085)
    if place.height > _TITLE * 0.9 and room > 5:
        shown = text if len(text) <= room else f"{text[: room - 1]}…"
        ax.text(place.x + 0.06, place.y + _TITLE / 2, shown, fontsize=8, va="center")
    if nested:
        places = squarified([child.area for child in node.children], inner)
        for number, (child, where) in enumerate(zip(node.children, places, strict=True)):
            own = _COLOURS[number % len(_COLOURS)] if place.width == _WIDTH else colour
            _draw(ax, child, where, own, whole)
