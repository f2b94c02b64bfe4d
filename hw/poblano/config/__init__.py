"""Configuration of a chip: one validated, typed, immutable object, and its hash.

A configuration is a YAML file (`constraints/presets/` holds the presets) read by `load`. Every
quantity in a file is a text with its unit: sizes `64 KiB` (B, KiB, MiB, GiB, TiB), frequencies
`1.7 GHz` (Hz to GHz), pin rates `10 Gb/s` (b/s to Gb/s). In Python, sections take plain integers
too: bytes, hertz, bits a second.

Imports no Amaranth: software, verification and flows share this module with the hardware.
"""

from poblano.config.derived import ModePeak, derive
from poblano.config.errors import ConfigurationError
from poblano.config.load import load, load_text
from poblano.config.model import (
    HBM_ADDRESS_BITS,
    L1_ADDRESS_BITS,
    Configuration,
    HbmConfiguration,
    HostConfiguration,
    L1Configuration,
    MeshConfiguration,
    PipelineConfiguration,
    SliceConfiguration,
    TensorConfiguration,
    VectorConfiguration,
    VectorPipelineConfiguration,
)

__all__ = [
    "HBM_ADDRESS_BITS",
    "L1_ADDRESS_BITS",
    "Configuration",
    "ConfigurationError",
    "HbmConfiguration",
    "HostConfiguration",
    "L1Configuration",
    "MeshConfiguration",
    "ModePeak",
    "PipelineConfiguration",
    "SliceConfiguration",
    "TensorConfiguration",
    "VectorConfiguration",
    "VectorPipelineConfiguration",
    "derive",
    "load",
    "load_text",
]
