"""Figures that follow from a configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from poblano.arith.modes import LANES, Mode, parse_pair
from poblano.config.model import Configuration
from poblano.config.quantities import SIZE

__all__ = ["ModePeak", "derive"]


@dataclass(frozen=True)
class ModePeak:
    """The peak of one pair of operand formats.

    Attributes
    ----------
    formats:
        The pair, as the configuration names it.
    slice_macs:
        Multiply-accumulates a cycle of one slice.
    chip_flops:
        Operations a second of the chip, two a multiply-accumulate.
    """

    formats: str
    slice_macs: int
    chip_flops: int


def mode_peaks(configuration: Configuration) -> tuple[ModePeak, ...]:
    """Return the peak of every pair of formats, in the configuration's order."""
    tensor, mesh = configuration.slice.tensor, configuration.mesh
    peaks: list[ModePeak] = []
    for text in tensor.formats:
        macs = tensor.rows * tensor.cols * LANES // Mode(*parse_pair(text)).beats
        flops = 2 * macs * mesh.rows * mesh.cols * configuration.frequency
        peaks.append(ModePeak(text, macs, flops))
    return tuple(peaks)


def derive(configuration: Configuration) -> dict[str, Any]:
    """Return the figures that follow from `configuration`, as JSON data.

    Names end in their unit: `_bytes`, `_macs_per_cycle`, `_flops`, `_bytes_per_s`. The memory's
    capacity and the bandwidth of its pins are null where the configuration does not give them.
    """
    tensor, hbm = configuration.slice.tensor, configuration.slice.hbm
    slices = configuration.mesh.rows * configuration.mesh.cols
    peaks = mode_peaks(configuration)
    pins = None if hbm.pin_rate is None else slices * hbm.ports * hbm.pins * hbm.pin_rate / 8
    return {
        "slices": slices,
        "tensor_units": slices * tensor.rows * tensor.cols,
        "tile_results": [tensor.rows * tensor.tile_rows, tensor.cols * tensor.tile_cols],
        "slice_peak_macs_per_cycle": {peak.formats: peak.slice_macs for peak in peaks},
        "chip_peak_flops": {peak.formats: peak.chip_flops for peak in peaks},
        "l1_bytes": slices * configuration.slice.l1.size,
        "hbm_capacity_bytes": None if hbm.capacity is None else slices * hbm.capacity,
        "hbm_pin_bytes_per_s": pins,
        "hbm_port_bytes_per_s": slices * hbm.ports * hbm.width * configuration.frequency,
    }


def describe_derived(configuration: Configuration) -> list[tuple[str, str]]:
    """Return the derived figures as (name, text with unit), for people."""
    figures = derive(configuration)
    tile = figures["tile_results"]
    capacity, pins = figures["hbm_capacity_bytes"], figures["hbm_pin_bytes_per_s"]
    rows = [
        ("slices", str(figures["slices"])),
        ("tensor units of the chip", f"{figures['tensor_units']:,}"),
        ("tile of one command", f"{tile[0]} x {tile[1]} results"),
    ]
    rows += [
        (
            f"peak {peak.formats}",
            f"{peak.slice_macs:,} MAC/cycle a slice, {peak.chip_flops / 1e15:.3g} PFLOP/s the chip",
        )
        for peak in mode_peaks(configuration)
    ]
    rows += [
        ("L1 of the chip", SIZE.format(figures["l1_bytes"])),
        ("HBM capacity", "not given" if capacity is None else SIZE.format(capacity)),
        ("HBM bandwidth of the pins", "not given" if pins is None else f"{pins / 1e12:.4g} TB/s"),
        ("HBM bandwidth of the ports", f"{figures['hbm_port_bytes_per_s'] / 1e12:.4g} TB/s"),
    ]
    return rows
