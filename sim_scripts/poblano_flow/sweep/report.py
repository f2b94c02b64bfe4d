# pyright: reportUnknownMemberType=false
# (matplotlib leaves the types of its keyword arguments open)
"""What a sweep found: tables, a Pareto plot, and one HTML file that needs nothing else."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Sequence
from typing import Any

import jinja2
import matplotlib as mpl

from poblano_flow.sweep.evaluate import Outcome, outcome_row
from poblano_flow.sweep.spec import METRICS, Sweep

__all__ = ["html_report", "pareto_front", "pareto_svg", "parquet_bytes", "results_csv"]

_PAGE = jinja2.Template(
    """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{{ sweep.name }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; color: #26332b }
table { border-collapse: collapse; font-size: 13px } td, th { padding: 2px 10px; text-align: right }
th { border-bottom: 2px solid #26332b } tr.best { background: #e3f1e6 } tr.no { color: #999 }
pre { background: #f4f5f3; padding: 1em; overflow-x: auto } svg { max-width: 100% }
</style>
<h1>Sweep {{ sweep.name }}</h1>
<p>{{ rows|length }} points, {{ failed }} failed, {{ best|length }} on the Pareto front of
{% for name, way in sweep.objectives.items() %}{{ way }} <b>{{ name }}</b>
{%- if not loop.last %}, {% endif %}{% endfor %}. Areas and delays are before layout.</p>
{{ plot | safe }}
<p>Green rows are on the front; grey ones failed or break a constraint.</p>
<table><tr>{% for name in columns %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in rows %}<tr class="{{ row.css }}">
{% for name in columns %}<td>{{ row.cells[name] }}</td>{% endfor %}</tr>
{% endfor %}</table>
<h2>Figures</h2><ul>{% for name, text in metrics.items() %}
<li><b>{{ name }}</b>: {{ text }}</li>{% endfor %}</ul>
<h2>Sweep file</h2><pre>{{ source }}</pre></html>
""",
    autoescape=jinja2.select_autoescape(default_for_string=True, default=True),
)


def pareto_front(sweep: Sweep, outcomes: Sequence[Outcome]) -> list[int]:
    """Return the indices of feasible points that no other is at least as good as in everything."""
    signs = [1 if way == "minimise" else -1 for way in sweep.objectives.values()]
    values = {
        index: tuple(
            sign * float({**outcome.point, **outcome.figures}[name])
            for sign, name in zip(signs, sweep.objectives, strict=True)
        )
        for index, outcome in enumerate(outcomes)
        if outcome.feasible and not outcome.error
    }
    return [
        index
        for index, mine in values.items()
        if not any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
            for other in values.values()
        )
    ]


def results_csv(outcomes: Sequence[Outcome]) -> str:
    """Return a row a point: parameters, figures, feasible, error, seconds."""
    rows = [outcome_row(outcome) for outcome in outcomes]
    scratch = io.StringIO()
    writer = csv.DictWriter(scratch, _columns(rows))
    writer.writeheader()
    writer.writerows(rows)
    return scratch.getvalue()


def parquet_bytes(outcomes: Sequence[Outcome]) -> bytes | None:
    """Return the same as Parquet; None without pyarrow."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        return None
    rows = [outcome_row(outcome) for outcome in outcomes]
    table = arrow.table({name: [row.get(name) for row in rows] for name in _columns(rows)})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def pareto_svg(sweep: Sweep, outcomes: Sequence[Outcome]) -> str:
    """Return a plot of the first two objectives (of one, in the order of the points) as SVG."""
    from matplotlib.figure import Figure

    front = set(pareto_front(sweep, outcomes))
    names = list(sweep.objectives)[:2]
    figure = Figure(figsize=(8, 5), layout="constrained")
    ax = figure.subplots()
    for best, colour, size in ((False, "#b9bec4", 22), (True, "#2f7d4f", 40)):
        shown = [
            (index, {**outcome.point, **outcome.figures})
            for index, outcome in enumerate(outcomes)
            if outcome.feasible and not outcome.error and (index in front) == best
        ]
        xs = [figures[names[0]] if len(names) == 2 else index for index, figures in shown]
        ys = [figures[names[-1]] for _, figures in shown]
        ax.scatter(xs, ys, s=size, color=colour, label="Pareto front" if best else "other points")
        if best and len(names) == 2:
            ax.plot(*zip(*sorted(zip(xs, ys, strict=True)), strict=True), color=colour, linewidth=1)
    labels = [f"{name} ({sweep.objectives[name]})" for name in names]
    ax.set_xlabel(labels[0] if len(names) == 2 else "point")
    ax.set_ylabel(labels[-1])
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "poblano", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return buffer.getvalue()


def html_report(sweep: Sweep, outcomes: Sequence[Outcome], source: str) -> str:
    """Return the report; `source` is the text of the sweep file."""
    best = set(pareto_front(sweep, outcomes))
    rows = [outcome_row(outcome) for outcome in outcomes]
    columns = _columns(rows)
    plot = pareto_svg(sweep, outcomes)
    shown = [
        {
            "css": "best" if index in best else "" if row["feasible"] else "no",
            "cells": {name: _cell(row.get(name)) for name in columns},
        }
        for index, row in enumerate(rows)
    ]
    return _PAGE.render(
        sweep=sweep,
        rows=shown,
        columns=columns,
        best=best,
        failed=sum(bool(outcome.error) for outcome in outcomes),
        plot=plot[plot.index("<svg") :],
        metrics={**{n: METRICS[n] for n in sweep.wanted if n in METRICS}, **sweep.metrics},
        source=source,
    )


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    last = ("feasible", "error", "seconds")
    names = dict.fromkeys(name for row in rows for name in row if name not in last)
    return [*names, *last]


def _cell(value: Any) -> str:
    return f"{value:,.5g}" if isinstance(value, float) else "" if value is None else str(value)
