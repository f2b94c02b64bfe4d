"""The golden package stands alone: numpy and the standard library, nothing else."""

import ast
import sys
from pathlib import Path

import pytest

import poblano_golden

MODULES = sorted(Path(poblano_golden.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.stem)
def test_imports(path):
    roots = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            roots.add(str(node.module).split(".")[0])
    assert roots <= set(sys.stdlib_module_names) | {"numpy", "poblano_golden"}


def test_every_public_name_exists():
    assert len(MODULES) >= 9
    for path in MODULES:
        module = __import__(f"poblano_golden.{path.stem}", fromlist=["*"])
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name)
