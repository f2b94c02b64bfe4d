"""Emission to a folder: Verilog, and everything that a flow needs beside it.

    rtl/*.v, sram/*.v     one file a distinct module; `sram` holds behavioural models of memories
    filelist.f            the Verilog, children before parents, relative to this folder
    manifest.json         everything about it as data (`poblano_flow.manifest` lays it down)
    <top>.sdc             clock and delays at the ports
    <top>.core            FuseSoC
    Bender.yml            Bender
    verilator.vlt         lint findings that are none, with the reasons, for `verilator -Wall`
    configuration.yaml    the configuration, every default filled in (not for a block alone)
    <top>.rdl             the registers that the host sees, in SystemRDL (not for a block alone)

The same input gives the same bytes: no dates, no paths.
"""

from __future__ import annotations

from poblano.config import Configuration
from poblano.host.systemrdl import systemrdl
from poblano_flow.config_cli import to_yaml
from poblano_flow.emission import Emission
from poblano_flow.manifest import build_manifest, manifest_text, module_file
from poblano_flow.output import MANIFEST, digests
from poblano_flow.sidefiles import (
    bender,
    file_header,
    file_list,
    fusesoc_core,
    sdc,
    verilator_waivers,
)
from poblano_flow.waivers import load_waivers

__all__ = ["emission_files"]


def emission_files(
    emission: Emission, configuration: Configuration | None = None
) -> dict[str, str]:
    """Return every file of an output folder, relative path to text; the manifest is the last."""
    manifest = build_manifest(emission, configuration)
    top = emission.top.name
    header = file_header(manifest, "//")
    files = {module_file(module): header + module.verilog for module in emission.modules}
    files["filelist.f"] = file_list(manifest)
    files[f"{top}.sdc"] = sdc(manifest, None if configuration is None else configuration.frequency)
    files[f"{top}.core"] = fusesoc_core(manifest)
    files["Bender.yml"] = bender(manifest)
    files["verilator.vlt"] = verilator_waivers(manifest, load_waivers())
    if configuration is not None:
        files["configuration.yaml"] = to_yaml(configuration)
        files[f"{top}.rdl"] = header + systemrdl(configuration)
    manifest["files"] = digests(files)
    files[MANIFEST] = manifest_text(manifest)
    return files
