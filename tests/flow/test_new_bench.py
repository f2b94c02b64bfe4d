"""Starter testbenches run as they are, and replace nothing."""

import importlib
import subprocess
import sys

import pytest
from sim_designs import Calculator

from poblano_flow.emission import emit
from poblano_flow.new_bench import write_bench
from poblano_flow.simulate import build, run
from poblano_golden.errors import PoblanoError
from poblano_verif import registry
from poblano_verif.block_types import Block, Variant


@pytest.fixture(autouse=True)
def calculator(monkeypatch):
    """A block with streams, in the registry."""
    block = Block("calculator", "operates on bytes", {"plain": Variant(Calculator, {"icarus": {}})})
    monkeypatch.setattr(registry, "BLOCKS", {**registry.BLOCKS, "calculator": block})


@pytest.fixture
def importable(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(
    ("block", "tests"),
    [("calculator", 2), ("fp32_adder:two_stages", 1), ("fp32_adder:combinational", 1)],
)
def test_starter_runs_as_it_is(tmp_path, block, tests):
    path = write_bench(block, tmp_path / "starter_bench.py")
    made = build(emit(registry.component(block)), "icarus")
    result = run(made, "starter_bench", tmp_path / "run", seed=1)
    assert result.passed, result.cases
    assert len(result.cases) == tests
    assert "no model yet" in result.log.read_text()
    assert f"--block {block}" in path.read_text()


@pytest.mark.usefixtures("importable")
def test_starter_with_a_model_compares(tmp_path):
    path = write_bench("calculator", tmp_path / "model_bench.py")
    text = path.read_text()
    wrong = 'return {"o": [{"op": each["op"], "value": 0} for each in sent["i"]]}'
    path.write_text(text.replace("    del sent\n    return None", f"    {wrong}"))
    made = build(emit(Calculator()), "icarus")
    result = run(made, "model_bench", tmp_path / "run", seed=1)
    assert not result.passed
    assert "transaction 0 of o, cycle" in result.cases[0].message


@pytest.mark.usefixtures("importable")
def test_starter_of_ports_with_a_model_compares(tmp_path):
    path = write_bench("fp32_adder", tmp_path / "adder_bench.py")
    text = path.read_text()
    path.write_text(text.replace("    del inputs\n    return None", '    return {"result": 0}'))
    made = build(emit(registry.component("fp32_adder")), "icarus")
    result = run(made, "adder_bench", tmp_path / "run", seed=1)
    assert " of result, cycle " in result.cases[0].message
    assert "expected" in result.cases[0].message


@pytest.mark.parametrize("name", registry.BLOCKS)
def test_starter_of_every_block_is_clean(tmp_path, name):
    path = write_bench(name, tmp_path / f"{name}_bench.py")
    checked = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", "E,F,I,B", "--ignore", "E501", path],
        capture_output=True,
        text=True,
        check=False,
    )
    if importlib.util.find_spec("ruff") is not None:
        assert checked.returncode == 0, checked.stdout
    compile(path.read_text(), str(path), "exec")


def test_nothing_is_replaced(tmp_path):
    path = tmp_path / "my_bench.py"
    path.write_text("mine")
    with pytest.raises(PoblanoError, match="must not replace a file; it exists"):
        write_bench("fp32_adder", path)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["two words.py", "bench.txt", "1st.py", "bench"])
def test_name_that_is_no_module(tmp_path, name):
    with pytest.raises(PoblanoError, match="must be named like a Python module"):
        write_bench("fp32_adder", tmp_path / name)


def test_unknown_block(tmp_path):
    with pytest.raises(PoblanoError, match="got 'nothing'"):
        write_bench("nothing", tmp_path / "bench.py")
