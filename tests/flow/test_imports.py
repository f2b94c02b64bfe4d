"""Imports run one way, and what software may use of the hardware needs no Amaranth."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOLDERS = {
    "poblano": "hw/poblano",
    "poblano_golden": "golden/poblano_golden",
    "poblano_sw": "sw/poblano_sw",
    "poblano_verif": "verif/poblano_verif",
    "poblano_flow": "sim_scripts/poblano_flow",
}

MAY_IMPORT = {
    "poblano": {"poblano_golden"},
    "poblano_golden": set(),
    "poblano_sw": {"poblano_golden", "poblano"},
    "poblano_verif": {"poblano_golden", "poblano", "poblano_sw"},
    "poblano_flow": {"poblano_golden", "poblano", "poblano_sw", "poblano_verif"},
}
"""Which of the project's other packages each package may import."""

GOLDEN_USES = {"numpy"}
"""What golden may import beside the standard library."""


def imports(path):
    """Yield (line, module) of every absolute import in a file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def violations(package, forbidden):
    return [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / FOLDERS[package]).rglob("*.py"))
        for line, name in imports(path)
        if forbidden(name)
    ]


@pytest.mark.parametrize("package", FOLDERS)
def test_packages_import_one_way(package):
    assert any((ROOT / FOLDERS[package]).rglob("*.py"))
    others = FOLDERS.keys() - MAY_IMPORT[package] - {package}
    assert violations(package, lambda name: name.partition(".")[0] in others) == []


SHARED = (
    "config",
    "commands",
    "resources",
    "arith.modes",
    "faults",
    "host.registers",
    "scalar.instructions",
    "noc.flit",
    "noc.parameters",
    "noc.routing",
    "noc.topology",
)
"""Modules of the hardware that software uses too, beside every engine's timing and layout."""

SHARED_OF_EVERY_ENGINE = ("timing", "layout")


def is_shared(name):
    """Whether software may import this name of the hardware."""
    inside = name.removeprefix("poblano.")
    engine_part = inside.split(".")[1:2]
    return any(f"{inside}.".startswith(f"{shared}.") for shared in SHARED) or (
        engine_part != [] and engine_part[0] in SHARED_OF_EVERY_ENGINE
    )


def test_software_uses_only_what_the_hardware_shares():
    def forbidden(name):
        return name.partition(".")[0] == "poblano" and not is_shared(name)

    assert is_shared("poblano.tensor.timing.matmul_phases")
    assert not is_shared("poblano.tensor.engine.TensorEngine")
    assert not is_shared("poblano.configuration")
    assert violations("poblano_sw", forbidden) == []


def test_golden_needs_only_numpy():
    allowed = {*sys.stdlib_module_names, *GOLDEN_USES, "poblano_golden"}
    assert violations("poblano_golden", lambda name: name.partition(".")[0] not in allowed) == []


def shared_modules():
    """Return the names of the hardware's modules that software uses too."""
    hw = ROOT / "hw"
    paths = [path.relative_to(hw).with_suffix("") for path in (hw / "poblano").rglob("*.py")]
    names = (".".join(path.parts).removesuffix(".__init__") for path in paths)
    return sorted(name for name in names if is_shared(name))


def test_shared_modules_import_no_amaranth():
    names = shared_modules()
    assert {"poblano.config", "poblano.config.model", "poblano.arith.modes"} <= {*names}
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    if 'amaranth' in sys.modules:\n"
        "        sys.exit(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from poblano_flow.cli import build_app\n"
        "build_app()\n"
        "heavy = {'amaranth', 'cocotb', 'jinja2', 'matplotlib', 'numpy', 'pydantic', 'pyosys',\n"
        "         'pyslang', 'pywellen', 'vcdvcd'}\n"
        "print(*sorted(heavy & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
