"""The register map for others: SystemRDL, and what PeakRDL makes of it.

poblano_slice.rdl     the map
poblano_slice.h       C header: a struct of the registers, positions and reset values of fields
html/index.html       pages for a browser
manifest.json         the configuration, and the digest of every file
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from systemrdl.compiler import RDLCompiler

from poblano.config import Configuration
from poblano.host.systemrdl import systemrdl
from poblano_flow.output import MANIFEST, digests

__all__ = ["NAME", "compile_rdl", "register_files"]

NAME = "poblano_slice"
"""Name of the address map and of the files."""


def compile_rdl(text: str) -> Any:
    """Return the root node that the SystemRDL compiler makes of `text`."""
    with tempfile.TemporaryDirectory(prefix="poblano-") as folder:
        source = Path(folder, f"{NAME}.rdl")
        source.write_text(text, encoding="utf-8")
        compiler = RDLCompiler()
        compiler.compile_file(str(source))
        return compiler.elaborate()


def register_files(configuration: Configuration) -> dict[str, str | bytes]:
    """Return every file of an output folder, relative path to content; the same every time."""
    # PeakRDL's pages can link to sources in git, and would not load on a machine without git
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    from peakrdl_cheader.exporter import CHeaderExporter
    from peakrdl_html import HTMLExporter

    text = systemrdl(configuration)
    root = compile_rdl(text)
    files: dict[str, str | bytes] = {f"{NAME}.rdl": text}
    with tempfile.TemporaryDirectory(prefix="poblano-") as folder:
        header, pages = Path(folder, f"{NAME}.h"), Path(folder, "html")
        CHeaderExporter().export(root.top, str(header))
        files[header.name] = header.read_text(encoding="utf-8")
        # the pages would hold the time, which only tells a browser's cache that they are new
        html: Any = HTMLExporter(user_context={"build_ts": 0}, generate_source_links=False)
        html.export(root, str(pages), title=f"Poblano slice, {configuration.name}")
        for path in sorted(pages.rglob("*")):
            if path.is_file():
                files[str(path.relative_to(folder))] = path.read_bytes()
    manifest = {
        "configuration": {"name": configuration.name, "hash": configuration.hash},
        "files": digests(files),
    }
    files[MANIFEST] = json.dumps(manifest, indent=1) + "\n"
    return files
