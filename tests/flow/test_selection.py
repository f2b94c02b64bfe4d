"""Which tests an expression selects, and the checks on every bench of the registry."""

import importlib
import subprocess
import sys

import pytest
from cocotb import regression

from poblano_flow import selection
from poblano_flow.selection import matcher, plan, plan_file
from poblano_golden.errors import PoblanoError
from poblano_verif import registry

NAMES = ["add:a/verilator/sum", "add:a/icarus/sum", "add:a/icarus/sum_2", "mul:b/icarus/random"]


def selected(expression):
    wanted = matcher(expression, NAMES)
    return [index for index, name in enumerate(NAMES) if wanted(name)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("  ", [0, 1, 2, 3]),
        ("add", [0, 1, 2]),
        ("icarus and sum", [1, 2]),
        ("verilator or random", [0, 3]),
        ("not icarus", [0]),
        ("not (verilator or random)", [1, 2]),
        ("add and not icarus or random", [0, 3]),
        ("not not add", [0, 1, 2]),
        ("add:a/icarus/sum", [1]),
        ("a/icarus/sum", [1, 2]),
    ],
)
def test_expression(expression, expected):
    assert selected(expression) == expected


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("(", "no word"),
        ("(add", "no '\\)'"),
        ("add)", "'\\)' where nothing fits"),
        ("add mul", "'mul' where nothing fits"),
        ("and add", "no word"),
        ("not", "no word"),
        ("add or", "no word"),
    ],
)
def test_expression_that_cannot_be_read(expression, what):
    with pytest.raises(PoblanoError, match=what):
        matcher(expression, NAMES)


def test_plan_is_in_order_and_complete():
    jobs = plan(None, ("verilator", "icarus"), nightly=True)
    assert [f"{job.block}:{job.variant}" for job in jobs if job.simulator == "verilator"] == [
        name
        for name in registry.names()
        if "verilator" in registry.find(name)[0].variants[name.partition(":")[2]].simulators
    ]
    assert all(job.tests == selection.tests_of(job.bench) for job in jobs)


def test_nightly_variants_are_left_out():
    names = {f"{job.block}:{job.variant}" for job in plan(None, ("verilator", "icarus"))}
    for name in registry.names():
        block, variant = registry.find(name)
        assert (name in names) != block.variants[variant].nightly, name


def test_plan_of_some_tests():
    (job,) = plan("fp32_adder:two_stages/icarus/random_sums", ("verilator", "icarus"))
    assert job.tests == ("poblano_verif.benches.fp32_adder.random_sums",)
    assert job.test_name(job.tests[0]) == "fp32_adder:two_stages/icarus/random_sums"


def test_plan_of_nothing():
    with pytest.raises(PoblanoError, match="'no_such' selects none"):
        plan("no_such", ("icarus",))


def test_plan_of_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "bench_of_my_own.py"
    path.write_text("import cocotb\n@cocotb.test()\nasync def mine(dut): pass\n")
    jobs = plan_file(path, "fp32_adder:combinational", None, ("verilator", "icarus"))
    assert [job.name for job in jobs] == [
        "fp32_adder:combinational/verilator",
        "fp32_adder:combinational/icarus",
    ]
    assert all(job.file == str(path) and job.tests == ("bench_of_my_own.mine",) for job in jobs)
    with pytest.raises(PoblanoError, match="must be a Python file; got no such file"):
        plan_file(tmp_path / "none.py", "fp32_adder", None, ("icarus",))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "a block must be one of .*; got 'nothing'"),
        ("fp32_adder:nothing", "a variant of fp32_adder must be one of two_stages, .*'nothing'"),
        ("fp32_adder:", "got ''"),
    ],
)
def test_unknown_block(name, message):
    with pytest.raises(PoblanoError, match=message):
        registry.find(name)


def test_registry_is_cheap():
    code = (
        "import sys; from poblano_verif import registry; registry.names();"
        "sys.exit('amaranth' in sys.modules or 'cocotb' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("block", registry.BLOCKS.values(), ids=lambda block: block.name)
def test_every_test_of_a_bench_has_a_limit(block):
    module = importlib.import_module(block.bench_module)
    tests = [item for item in vars(module).values() if isinstance(item, regression.Test)]
    for item in vars(module).values():
        if isinstance(item, regression.TestGenerator):
            tests += item.generate_tests()
    assert tests
    for test in tests:
        assert test.timeout is not None, f"{test.fullname} must have a limit in simulated time"
    assert all(variant.limit > 0 for variant in block.variants.values())
