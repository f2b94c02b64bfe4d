"""Waveforms as text: cycles, values, transfers, from both formats, and files that are no good."""

import subprocess
import sys
from pathlib import Path

import pytest
from sim_designs import Calculator
from typer.testing import CliRunner
from vcd import VCDWriter

from poblano_flow.cli import build_app
from poblano_flow.emission import emit
from poblano_flow.sim_options import SimOptions
from poblano_flow.simulate import build, run
from poblano_flow.wave_file import open_wave, wave_fault
from poblano_flow.waves import cycle_at, view
from poblano_golden.errors import PoblanoError

BENCHES = Path(__file__).parent / "sim_benches"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A run of the calculator under Icarus, with the waveform as FST."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(BENCHES), *sys.path])
        made = build(emit(Calculator()), "icarus", options=SimOptions(waves=True))
        folder = tmp_path_factory.mktemp("run")
        result = run(
            made, "calculator_bench", folder, seed=1, waves=True, test_filter="one_addition"
        )
    assert result.passed
    return result


def copy_as_vcd(source, path):
    """Write a waveform again, as a VCD file."""
    wave = open_wave(source)
    changes = wave.load(wave.widths)
    with path.open("w") as file, VCDWriter(file, timescale="1 ps", date="") as writer:
        variables = {}
        for name, width in wave.widths.items():
            scope, _, leaf = name.rpartition(".")
            variables[name] = writer.register_var(scope, leaf, "wire", size=width)
        events = sorted(
            (time, name, value)
            for name, found in changes.items()
            for time, value in zip(found.times, found.values, strict=True)
        )
        for time, name, value in events:
            writer.change(variables[name], time, value)


@pytest.fixture(params=["fst", "vcd"])
def waveform(request, simulated, tmp_path):
    """The same waveform in both formats, with the manifest beside it."""
    if request.param == "fst":
        return simulated.waveform
    path = tmp_path / "waves.vcd"
    copy_as_vcd(simulated.waveform, path)
    (tmp_path / "manifest.json").write_bytes((simulated.folder / "manifest.json").read_bytes())
    return path


def test_formats_hold_the_same(simulated, tmp_path):
    path = tmp_path / "waves.vcd"
    copy_as_vcd(simulated.waveform, path)
    fst, vcd = open_wave(simulated.waveform), open_wave(path)
    assert fst.widths == vcd.widths
    assert fst.step_ps == vcd.step_ps == 1.0
    for name, found in fst.load(fst.widths).items():
        other = vcd.load([name])[name]
        assert [other.at(time) for time in found.times] == list(found.values), name


def test_transfers_are_decoded_in_every_module(waveform):
    found = view(waveform, around=4, span=4)
    texts = [(transfer.stream, transfer.cycle, transfer.text) for transfer in found.transfers]
    ((_, cycle, _),) = [text for text in texts if text[0] == "i"]
    assert sorted(texts) == [
        ("first.i", cycle, "op=ADD value=0x03"),
        ("first.o", cycle + 1, "op=ADD value=0x03"),
        ("i", cycle, "op=ADD a=0x01 b=0x02"),
        ("o", cycle + 2, "op=ADD value=0x03"),
        ("second.i", cycle + 1, "op=ADD value=0x03"),
        ("second.o", cycle + 2, "op=ADD value=0x03"),
    ]


def test_column_is_what_registers_see(waveform):
    found = view(waveform, around=4, span=4)
    rows = {name.partition(".")[2]: texts for name, texts in found.rows}
    (sent,) = [t.cycle for t in found.transfers if t.stream == "i"]
    column = found.columns.index(sent)
    assert rows["i__valid"][column] == "1"
    assert rows["i__valid"][column + 1] == "0"
    assert rows["i__payload"][column] == f"{2 << 10 | 1 << 2:05x}"
    assert rows["o__valid"][column : column + 4] == ["0", "0", "1", "0"]
    assert rows["rst"][:3] == ["1", "1", "0"]
    assert "clk" not in rows


def test_signals_by_pattern(waveform):
    deep = view(waveform, around=0, span=0, pattern="*.second.held")
    assert [name.split(".", 1)[1] for name, _ in deep.rows] == ["second.held"]
    assert not deep.transfers
    part = view(waveform, around=0, span=0, pattern="first.o__")
    assert len(part.rows) == 5  # the ports, and the fields of the payload


def test_end_of_the_file_is_shown_by_default(waveform):
    found = view(waveform, span=2)
    assert found.columns == [found.last - 2, found.last - 1, found.last]


def test_clock_by_name(waveform):
    assert view(waveform, clock="clk").clock == view(waveform).clock
    assert view(waveform, clock="i__valid").last == 0


def test_cycle_of_a_time(waveform):
    assert [cycle_at(waveform, time) for time in (0.0, 0.499, 0.5, 1.499, 1.5, 4.6)] == [
        -1, -1, 0, 0, 1, 4,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"around": 100_000}, r"--around must be 0 to \d+; got 100000"),
        ({"around": -1}, "got -1"),
        ({"pattern": "nothing"}, "'nothing' matches none of"),
        ({"pattern": "*nothing?"}, "matches none of"),
        ({"clock": "nothing"}, "--clock must name a one-bit signal; got 'nothing'"),
        ({"clock": "i__payload"}, "must name a one-bit signal"),
    ],
)
def test_request_that_cannot_be_met(simulated, options, message):
    with pytest.raises(PoblanoError, match=message):
        view(simulated.waveform, **options)


def test_design_without_a_clock_is_shown_by_time(tmp_path):
    path = tmp_path / "waves.vcd"
    with path.open("w") as file, VCDWriter(file, timescale="1 ns", date="") as writer:
        a = writer.register_var("top", "a", "wire", size=70)
        writer.change(a, 0, 1)
        writer.change(a, 7, (1 << 69) | 5)
        writer.change(a, 9, "x")
    found = view(path)
    assert found.clock is None
    assert found.columns == [0, 7, 9]
    assert found.rows == [("top.a", ["..0000000001", "..0000000005", "xxxx.."])]


def cut(data):
    return data[: len(data) // 2]


@pytest.mark.parametrize(
    ("suffix", "change"),
    [
        ("fst", cut),
        ("fst", lambda data: data[:-40]),
        ("fst", lambda _: b""),
        ("fst", lambda _: b"no waveform"),
        ("fst", lambda _: bytes(100)),
        ("vcd", lambda data: data[:-2]),
        ("vcd", lambda data: data[:60] + b"\n"),
        ("vcd", lambda _: b"$date today $end\n"),
    ],
)
def test_file_that_is_not_whole(simulated, tmp_path, suffix, change):
    source = simulated.waveform
    if suffix == "vcd":
        source = tmp_path / "whole.vcd"
        copy_as_vcd(simulated.waveform, source)
    path = tmp_path / f"bad.{suffix}"
    path.write_bytes(change(source.read_bytes()))
    with pytest.raises(PoblanoError, match=f"{path}: a waveform must") as error:
        open_wave(path)
    assert "\n" not in str(error.value)
    assert wave_fault(path) == str(error.value)
    assert not wave_fault(source)


def test_missing_file(tmp_path):
    for path in (tmp_path / "none.fst", tmp_path):
        with pytest.raises(PoblanoError, match="got no such file"):
            open_wave(path)


def test_command(simulated, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    command = ["waves", str(simulated.waveform), "--around", "4", "--signals", "o__"]
    result = CliRunner().invoke(build_app(), command)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "cycle 0 to" in lines[0]
    assert lines[0].endswith(".clk")
    assert max(map(len, lines[1:])) <= 60
    table = [line.split() for line in lines]
    assert ["o__valid", "0", ".", ".", ".", "1", "0"] in [row[:7] for row in table]
    assert ["o__payload.value", "00", ".", ".", ".", "03", "0d"] in [row[:7] for row in table]
    assert any(row[1:] == ["o", "op=ADD", "value=0x03"] for row in table)


def test_reading_a_wave_leaves_signals_as_they_were(simulated, tmp_path):
    path = tmp_path / "waves.vcd"
    copy_as_vcd(simulated.waveform, path)
    code = (
        "import signal, sys\n"
        "from pathlib import Path\n"
        "from poblano_flow.wave_file import open_wave\n"
        "before = [signal.getsignal(number) for number in signal.valid_signals()]\n"
        "open_wave(Path(sys.argv[1]))\n"
        "assert 'vcdvcd' in sys.modules\n"
        "sys.exit(before != [signal.getsignal(number) for number in signal.valid_signals()])\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0
