"""`poblano kernel`: what it lists, what it says of a run, what it refuses."""

import json

import pytest

from poblano_flow import kernel_run
from poblano_flow.cli import main
from poblano_sw.kernels.catalogue import CATALOGUE


def poblano(*arguments):
    """Run the command line in this process; return its exit status."""
    try:
        main(["kernel", *map(str, arguments)])
    except SystemExit as end:
        return end.code
    raise AssertionError("the command line must end the process")


def test_every_kernel_is_listed_with_its_sizes(capsys):
    assert poblano("list") == 0
    told = capsys.readouterr().out
    for name, entry in CATALOGUE.items():
        assert name in told
        assert all(f"{key}={value}" in told for key, value in entry.shape.items())


def test_a_run_says_where_the_cycles_went(capsys, tmp_path):
    picture, trace = tmp_path / "gantt.png", tmp_path / "trace.json"
    shape = ("-s", "tokens=40", "-s", "heads=1", "-s", "head=32", "-s", "rows=2")
    options = ("--png", picture, "--perfetto", trace, "--preset", "tiny")
    assert poblano("run", "attention_decode", *shape, *options) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "cycles on tiny" in told
    assert "Bit for bit as the numpy model says." in told
    assert "attention.py:" in told
    assert picture.read_bytes().startswith(b"\x89PNG")
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"vector.pass", "tensor.matmul", "load.rows"} <= names


def test_a_wrong_result_is_an_error(capsys, monkeypatch):
    honest = kernel_run.run_on_simulator

    def spoilt(work):
        ran = honest(work)
        return kernel_run.KernelRun(
            ran.work, ran.trace, ran.memory, ("y: 1 bytes differ",), 0.0, ran.seconds
        )

    monkeypatch.setattr(kernel_run, "run_on_simulator", spoilt)
    assert poblano("run", "softmax", "--preset", "tiny", "-s", "cols=8") == 1
    assert "y: 1 bytes differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("softmx",), "a kernel must be one of softmax"),
        (("softmax", "-s", "cols"), "--shape takes NAME=N; got 'cols'"),
        (("softmax", "-s", "cols=-1"), "--shape takes NAME=N; got 'cols=-1'"),
        (("softmax", "-s", "colour=1"), "the sizes of softmax are rows, cols, times; got 'colour'"),
        (("softmax", "-s", "cols=99999", "--preset", "tiny"), "of L1 at"),
        (("softmax", "--format", "mxfp9"), "a format must be one of mxfp4"),
        (("softmax", "--preset", "tinny"), "a preset must be one of"),
    ],
)
def test_what_cannot_be_taken_is_told(capsys, arguments, message):
    assert poblano("run", *arguments) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told
