"""What a simulation build depends on besides the Verilog."""

from __future__ import annotations

from dataclasses import dataclass

from poblano_golden.errors import PoblanoError

__all__ = [
    "SIMULATORS",
    "STEPS_PER_NS",
    "TIMESCALE",
    "WAVE_FORMATS",
    "SimOptions",
    "check_simulator",
]

SIMULATORS = ("verilator", "icarus")
WAVE_FORMATS = ("fst", "vcd")

TIMESCALE = ("1ns", "1ps")
"""Unit and precision: a simulation step is a picosecond."""

STEPS_PER_NS = 1000


@dataclass(frozen=True)
class SimOptions:
    """Options of a build; each combination is a build of its own.

    Parameters
    ----------
    waves:
        Whether runs of the build can write a waveform.
    wave_format:
        `fst` or `vcd`. Icarus writes FST only.
    threads:
        Threads that evaluate the model (Verilator only).
    hierarchical:
        Kinds of modules, as the emission names them, that are compiled apart and once
        (Verilator only). Builds get faster and runs slower.
    untraced:
        Kinds of modules whose insides are left out of waveforms (Verilator only). The build is
        then nearly as small and fast as one without waves.
    debug:
        Make every signal readable and writable from the testbench (Verilator only): everything
        gets slower.
    """

    waves: bool = False
    wave_format: str = "fst"
    threads: int = 1
    hierarchical: tuple[str, ...] = ()
    untraced: tuple[str, ...] = ()
    debug: bool = False

    def __post_init__(self) -> None:
        """Check the values."""
        if self.wave_format not in WAVE_FORMATS:
            raise PoblanoError(
                f"the wave format must be one of {', '.join(WAVE_FORMATS)}; "
                f"got {self.wave_format!r}"
            )
        if self.threads < 1:
            raise PoblanoError(f"the number of threads must be at least 1; got {self.threads}")


def check_simulator(name: str) -> str:
    """Return `name`, or raise `PoblanoError` if it is not the name of a simulator."""
    if name not in SIMULATORS:
        raise PoblanoError(f"the simulator must be one of {', '.join(SIMULATORS)}; got {name!r}")
    return name
