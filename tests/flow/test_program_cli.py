"""`poblano asm`, `disasm` and `trace` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from poblano_flow.cli import main

COPY = """\
.queue load_0
load.rows hbm=0 l1=0 length=2048 signal_a=1 signal_a_count=1
.queue store_0
store.rows hbm=4096 l1=0 length=2048 wait_a=1 wait_a_count=1
"""


def poblano(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    (tmp_path / "copy.s").write_text(COPY)
    assert poblano("asm", str(tmp_path / "copy.s"), "-p", "tiny") == 0
    return tmp_path / "copy.bin"


def test_disasm_gives_what_asm_takes(binary: Path, capsys: pytest.CaptureFixture[str]):
    capsys.readouterr()
    assert poblano("disasm", str(binary), "-p", "tiny") == 0
    text = capsys.readouterr().out
    again = binary.with_name("again.s")
    again.write_text(text)
    assert poblano("asm", str(again), "-p", "tiny") == 0
    assert again.with_suffix(".bin").read_bytes() == binary.read_bytes()


def test_a_trace_moves_bytes_and_shows_when(binary: Path, capsys: pytest.CaptureFixture[str]):
    folder = binary.parent
    data = bytes(range(256)) * 8
    (folder / "in").write_bytes(data)
    status = poblano(
        "trace", str(binary), "-p", "tiny", "--memory", "8192",
        "--load", f"0={folder / 'in'}", "--dump", f"4096:2048={folder / 'out'}",
        "--png", str(folder / "gantt.png"), "--perfetto", str(folder / "trace.json"),
    )  # fmt: skip
    assert status == 0
    assert (folder / "out").read_bytes() == data
    assert (folder / "gantt.png").read_bytes().startswith(b"\x89PNG")
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] in "be"]
    assert [event["name"] for event in spans] == ["load.rows"] * 2 + ["store.rows"] * 2
    assert spans[0]["ts"] < spans[1]["ts"] < spans[2]["ts"] < spans[3]["ts"]
    assert "2 commands" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("trace", "BIN"), "give --preset or --config"),
        (("trace", "BIN", "-p", "bench"), "must be made for configuration bench"),
        (("trace", "BIN", "-p", "tiny", "--load", "0"), "--load takes ADDRESS=FILE; got '0'"),
        (("trace", "BIN", "-p", "tiny", "--load", "x=BIN"), "the address must be an integer"),
        (("trace", "BIN", "-p", "tiny", "--dump", "0=F"), "--dump takes ADDRESS:LENGTH=FILE"),
        (
            ("trace", "BIN", "-p", "tiny", "--memory", "8192", "--dump", "8000:500=F"),
            "bytes must lie in the 8192 bytes of the memory; got 0x1f40 to 0x2134",
        ),
        (("disasm", "SOURCE", "-p", "tiny"), "a program must begin with"),
        (("trace", "BIN", "-p", "tiny", "--memory", "4100"), "must end in the 4100 bytes of HBM"),
    ],
)
def test_mistakes_are_named(
    binary: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
):
    names = {"BIN": str(binary), "SOURCE": str(binary.with_suffix(".s"))}
    filled = [names.get(a, a.replace("BIN", str(binary))) for a in arguments]
    assert poblano(*filled) == 2
    assert message in " ".join(capsys.readouterr().err.split())
