# pyright: reportUnknownMemberType=false
# (matplotlib leaves the types of its keyword arguments open)
"""The figures of the demonstration's report, as SVG text."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

from poblano_flow.demo import PHASES, Layer, Verdict
from poblano_flow.streamed_timing import CATEGORIES
from poblano_golden.blocks import MxTensor, dequantise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "block_figure", "cycles_figure", "engines_figure"]

COLOURS = {
    "multiply": "#2f7d4f",
    "masked": "#a9d3b5",
    "memory": "#c9ced3",
    "fetch": "#e2a23b",
    "add": "#8d6cab",
    "drain": "#4f86c6",
}
"""Colour of every category of cycles."""
SHOWN = ("prefill.ffn_gate", "decode.ffn_gate")
"""Products whose engines the report shows."""

ENGINES = {
    "load_0": ("load", "#3a62a8"),
    "tensor": ("tensor", "#2f7d4f"),
    "store_0": ("store", "#c58a1b"),
}
"""Queue to the name and the colour of its engine."""
_INK = "#26332b"


def cycles_figure(verdicts: Sequence[Verdict]) -> str:
    """Return a bar a product, stacked by where its cycles went."""
    figure = _figure(10.4, 3.9)
    axes: Sequence[Axes] = figure.subplots(1, len(PHASES))
    for ax, phase in zip(axes, PHASES, strict=True):
        of_phase = [v for v in verdicts if v.product.phase == phase]
        position = np.arange(len(of_phase))
        start = np.zeros(len(of_phase))
        for category in CATEGORIES:
            cycles = np.array([v.where[category] for v in of_phase])
            ax.barh(position, cycles, left=start, color=COLOURS[category], height=0.6)
            start += cycles
        longest = float(start.max())
        for y, (end, verdict) in enumerate(zip(start, of_phase, strict=True)):
            ax.text(
                float(end) + longest * 0.015, y,
                f"{verdict.utilisation:.0%}, HBM {verdict.port_utilisation:.0%}",
                va="center", fontsize=9, color=_INK,
            )  # fmt: skip
        ax.set_yticks(position, [v.product.linear for v in of_phase])
        ax.invert_yaxis()
        ax.set_xlim(0, longest * 1.3)
        ax.set_xlabel("cycles")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        m = of_phase[0].product.a.rows
        ax.set_title(f"{phase}: {m} token{'s' if m > 1 else ''}", loc="left", fontweight="bold")
        _plain(ax)
    return _svg(figure)


def engines_figure(verdicts: Sequence[Verdict]) -> str:
    """Return when each command of a product ran: a row an engine, a bar a command.

    A pale bar begins with the command's issue, a full one when the one before it is done.
    """
    shown = [v for name in SHOWN for v in verdicts if v.product.name == name]
    figure = _figure(10.4, 1.75 * len(shown))
    axes: NDArray[np.object_] = figure.subplots(len(shown), 1, squeeze=False)
    for ax, verdict in zip(axes[:, 0], shown, strict=True):
        start = 0
        for run in verdict.runs:
            for row, (queue, (_, colour)) in enumerate(ENGINES.items()):
                before = 0
                for issued, done in run.spans[queue]:
                    ax.barh(row, done - issued, left=start + issued, height=0.62, color=colour,
                            alpha=0.22)  # fmt: skip
                    alone = max(issued, before)
                    ax.barh(row, done - alone, left=start + alone, height=0.62, color=colour,
                            edgecolor="white", linewidth=0.6)  # fmt: skip
                    before = done
            start += run.cycles
        ax.set_yticks(range(len(ENGINES)), [name for name, _ in ENGINES.values()])
        ax.invert_yaxis()
        ax.set_xlim(0, start)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        m, n, k = verdict.product.shape
        ax.set_title(f"{verdict.product.name}: {m} x {n} x {k}", loc="left", fontweight="bold")
        _plain(ax)
    axes[-1, 0].set_xlabel("cycles")
    return _svg(figure)


def block_figure(layer: Layer) -> str:
    """Return one block of 32 activations before and after quantisation."""
    down = next(p for p in layer.products if p.name == "prefill.ffn_down")
    last, block = down.a.rows - 1, slice(0, 32)
    part = MxTensor(down.a.codes[last:, block], down.a.scales[last:, :1], down.a.fmt, down.a.rule)
    stored, count = dequantise(part)[0], np.arange(len(layer.sample))
    figure = _figure(10.4, 2.9)
    ax: Axes = figure.subplots()
    ax.vlines(count, np.minimum(stored, 0), np.maximum(stored, 0), color="#a9d3b5", linewidth=9)
    ax.plot(count, stored, "_", color="#2f7d4f", markersize=12, markeredgewidth=2.5,
            label=f"{down.a.fmt.name}, one scale for all 32")  # fmt: skip
    ax.plot(count, layer.sample, "o", color=_INK, markersize=4, label="float32")
    ax.axhline(0, color=_INK, linewidth=0.8)
    ax.set_xlabel("element of the block")
    ax.set_xlim(-0.8, len(count) - 0.2)
    ax.legend(frameon=False, fontsize=9, ncols=2, loc="upper left", bbox_to_anchor=(0, 1.16))
    _plain(ax)
    return _svg(figure)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(colors=_INK, labelsize=9)
    ax.xaxis.label.set_color(_INK)


def _svg(figure: Figure) -> str:
    """Return the figure, the same bytes for the same data."""
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "poblano", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()
