"""The demonstration on a model of the hardware that can be made to err."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poblano.config import Configuration, load
from poblano.tensor.timing import Timeline
from poblano_flow.cli import main
from poblano_flow.demo import jobs, judge, prepare
from poblano_flow.demo_report import AreaRow, Report, render
from poblano_flow.demo_run import Backend, Request, run_demo
from poblano_flow.matmul_job import MatmulJob, StreamedOutcome
from poblano_flow.run_streamed import plan_job
from poblano_golden import fp32
from poblano_golden.errors import PoblanoError
from poblano_golden.matmul import matmul
from poblano_sw.model.llama import LINEARS, LlamaModel, load_gguf
from poblano_sw.model.locate import find_model
from poblano_sw.model.policy import load_policy

PROMPT = "The taste of a poblano pepper is"


def numpy_slice(
    configuration: Configuration,
    jobs: Sequence[MatmulJob],
    *,
    waves: bool,
    progress: Callable[[str, int, int], None],
) -> list[StreamedOutcome]:
    """Stands for the simulated hardware: the golden products, the published cycle counts."""
    outcomes: list[StreamedOutcome] = []
    for number, job in enumerate(jobs):
        progress("simulation", number, len(jobs))
        assert job.result == "bf16"
        rounded = fp32.from_bf16_bits(fp32.to_bf16_bits(matmul(job.a, job.b)))
        plan = plan_job(configuration, job)
        timeline = Timeline(configuration.slice)
        loaded = plan.product.moved_bytes // configuration.slice.hbm.width
        spans: dict[str, list[tuple[int, int]]] = {"load_0": [(0, loaded)], "tensor": []}
        for chunk in range(len(plan.chunks)):
            issued = timeline.ready + (loaded if chunk == 0 else 7 * (chunk % 2))
            cycles = timeline.run(plan.matmul_values(chunk), issued).cycles
            spans["tensor"].append((issued, issued + 1 + cycles))
        end = spans["tensor"][-1][1]
        spans["store_0"] = [(end + 2, end + 80)]
        waveform = Path("w.fst") if waves else None
        outcomes.append(StreamedOutcome(rounded, end + 79, spans, (100, 10), 0.25, waveform))
    progress("simulation", len(jobs), len(jobs))
    return outcomes


AREA = [
    AreaRow("unit", "osu018", 12.34, "3.1 ns", "ABC, area recovered"),
    AreaRow("engine", "osu018", None, "", "not estimated in this test"),
]


def backend(run_matmuls: Callable[..., list[StreamedOutcome]] = numpy_slice) -> Backend:
    def write_verilog(_: Configuration, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").write_text("{}")

    return Backend(run_matmuls, write_verilog, lambda _: AREA)


@pytest.fixture(scope="module")
def model() -> LlamaModel:
    return load_gguf(find_model())


@pytest.fixture(scope="module")
def bench() -> Configuration:
    return load("bench")


@pytest.fixture(autouse=True)
def short_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poblano_flow.demo.CONTINUATION", 1)


@pytest.fixture
def request_(bench: Configuration, tmp_path: Path) -> Request:
    return Request(
        PROMPT, 1, load_policy("mixed"), bench, tmp_path / "demo", "poblano demo --layer 1"
    )


def test_a_right_run(model: LlamaModel, request_: Request) -> None:
    report = run_demo(request_, model, backend())
    assert report.passed
    assert report.wrong == 0
    assert [v.product.name for v in report.verdicts] == [
        f"{phase}.{linear}" for phase in ("prefill", "decode") for linear in LINEARS
    ]
    tokens = len(model.tokenizer.encode(PROMPT))
    per_token = 576 + 2 * 192 + 576 + 2 * 1536 + 576
    assert report.results == (tokens + 1) * per_token
    assert report.bits == 16 * report.results
    for verdict in report.verdicts:
        assert sum(verdict.where.values()) == pytest.approx(verdict.cycles)
        assert min(verdict.where.values()) >= 0
        assert 0 < verdict.utilisation < 1
        assert 0 < verdict.port_utilisation < 1
        assert verdict.commands > 0
        floor = 30 if "attn" in verdict.product.linear else 10
        assert floor < verdict.snr_db < 60
    page = (request_.folder / "report.html").read_text()
    assert "bit exact" in page
    assert request_.configuration.hash in page
    assert 'href="rtl/manifest.json"' in page
    assert "w.fst" in page
    assert "12.34 kGE" in page
    assert "http" not in page.replace("http://www.w3.org", "")  # needs nothing from the network


def test_decode_follows_the_most_likely_token(model: LlamaModel) -> None:
    prompt = model.tokenizer.encode(PROMPT)
    layer = prepare(model, load_policy("mixed"), prompt, 0)
    assert layer.continuation[:1] == model.continue_greedily(prompt, 1)
    shapes = {product.name: product.shape for product in layer.products}
    assert shapes["prefill.ffn_down"] == (len(prompt), 576, 1536)
    assert shapes["decode.attn_k"] == (1, 192, 576)
    whole = model.activations([*prompt, layer.continuation[0]], 0)
    expected = whole["ffn_down"][-1:] @ model.weight(0, "ffn_down").T
    decoded = next(p for p in layer.products if p.name == "decode.ffn_down")
    np.testing.assert_allclose(decoded.reference, expected, atol=1e-3)


@pytest.mark.parametrize("bit", [16, 31])
def test_one_wrong_bit_fails_the_run(model: LlamaModel, request_: Request, bit: int) -> None:
    def erring(*args: object, **kwargs: object) -> list[StreamedOutcome]:
        outcomes = numpy_slice(*args, **kwargs)  # type: ignore[arg-type]
        if not kwargs["waves"]:
            bits = outcomes[5].d.view(np.uint32)  # type: ignore[union-attr]
            bits[3, 700] ^= np.uint32(1 << bit)
        return outcomes

    report = run_demo(request_, model, backend(erring))
    assert not report.passed
    assert report.wrong == 1
    verdict = next(v for v in report.verdicts if not v.passed)
    assert verdict.product.name == "prefill.ffn_up"
    assert verdict.first is not None
    assert (verdict.first.row, verdict.first.column) == (3, 700)
    assert verdict.first.expected ^ verdict.first.actual == 1 << bit
    assert any("D[3, 700] must be 0x" in line for line in report.summary())
    page = (request_.folder / "report.html").read_text()
    assert "not as the model says" in page
    assert "D[3, 700] must be 0x" in page


@pytest.mark.parametrize("wrong", [(0, 1), (-1, 0), (3, 3)])
def test_one_wrong_cycle_fails_the_run(
    model: LlamaModel, request_: Request, wrong: tuple[int, int]
) -> None:
    def slow(*args: object, **kwargs: object) -> list[StreamedOutcome]:
        outcomes = numpy_slice(*args, **kwargs)  # type: ignore[arg-type]
        if not kwargs["waves"]:
            spans = outcomes[0].spans["tensor"]
            issued, done = spans[1]
            spans[1] = issued + wrong[0] * 1000, done + wrong[1]
        return outcomes

    report = run_demo(request_, model, backend(slow))
    assert not report.passed
    expected = "prefill.attn_q: every command must end when the timing contract says"
    assert any(expected in line for line in report.summary())
    assert "did not end when the timing contract says" in render(report)


def test_a_missing_result_fails_the_run(model: LlamaModel, request_: Request) -> None:
    def lossy(*args: object, **kwargs: object) -> list[StreamedOutcome]:
        return numpy_slice(*args, **kwargs)[:-1]  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="zip"):
        run_demo(request_, model, backend(lossy))
    assert not (request_.folder / "report.html").exists()


def test_an_interrupted_run_leaves_no_old_report(model: LlamaModel, request_: Request) -> None:
    request_.folder.mkdir()
    (request_.folder / "report.html").write_text("of an earlier run")

    def broken(*_: object, **__: object) -> list[StreamedOutcome]:
        raise PoblanoError("no simulator")

    with pytest.raises(PoblanoError, match="no simulator"):
        run_demo(request_, model, backend(broken))
    assert not (request_.folder / "report.html").exists()


def test_products_that_do_not_fit_l1_are_cut(model: LlamaModel) -> None:
    """In 64 KiB, rows are cut until activations and a chunk of weights fit; nothing is lost."""
    tiny = load("tiny")
    prompt = model.tokenizer.encode(PROMPT) * 9
    layer = prepare(model, load_policy("mixed"), prompt, 0)
    down = next(p for p in layer.products if p.name == "prefill.ffn_down")
    work = list(jobs(tiny, [down]))
    assert len(work) > 1
    assert sum(job.a.rows for job in work) == len(prompt)
    outcomes = numpy_slice(tiny, work, waves=False, progress=lambda *_: None)
    by_name = {job.name: outcome for job, outcome in zip(work, outcomes, strict=True)}
    assert len(by_name) == len(work)
    assert judge(tiny, down, by_name).passed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": ""}, "the prompt must have 1 to 8191 tokens; got 0 tokens"),
        ({"layer": 30}, "layer must be 0 to 29, not 30"),
        ({"layer": -1}, "layer must be 0 to 29, not -1"),
    ],
)
def test_refuses(
    model: LlamaModel, request_: Request, change: dict[str, object], message: str
) -> None:
    with pytest.raises(PoblanoError, match=message):
        run_demo(replace(request_, **change), model, backend())


def test_refuses_formats_that_the_engine_lacks(model: LlamaModel, request_: Request) -> None:
    small = load("bench", ["slice.tensor.formats=[mxfp4*mxfp4]"])
    with pytest.raises(PoblanoError, match=r"one of the engine's mxfp4\*mxfp4; got mxint8\*mxint8"):
        run_demo(replace(request_, configuration=small), model, backend())


def test_the_page_escapes_the_prompt(model: LlamaModel, request_: Request) -> None:
    report: Report = run_demo(replace(request_, prompt="<b>bold</b> &"), model, backend())
    page = render(report)
    assert "<b>bold" not in page
    assert "&lt;" in page


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, model: LlamaModel) -> None:
    monkeypatch.setattr("poblano_sw.model.llama.load_gguf", lambda _: model)


def command(
    monkeypatch: pytest.MonkeyPatch, chosen: Backend, folder: Path, *options: str
) -> int | str | None:
    """Run `poblano demo` on another backend and return its exit status."""
    module = types.ModuleType("poblano_flow.demo_backend")
    module.real_backend = lambda: chosen  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    arguments = ["demo", "--prompt", PROMPT, "--layer", "0", "--out", str(folder), *options]
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


@pytest.mark.usefixtures("loaded")
def test_the_command_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, backend(), tmp_path / "demo", "--no-waves") == 0
    printed = capsys.readouterr().out
    assert "0 differ" in printed
    assert "ffn_down" in printed
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "w.fst" not in page


@pytest.mark.usefixtures("loaded")
def test_the_command_ends_with_1_when_a_bit_is_wrong(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def erring(*args: object, **kwargs: object) -> list[StreamedOutcome]:
        outcomes = numpy_slice(*args, **kwargs)  # type: ignore[arg-type]
        if not kwargs["waves"]:
            outcomes[-1].d.view(np.uint32)[0, 0] ^= np.uint32(1 << 16)  # type: ignore[union-attr]
        return outcomes

    assert command(monkeypatch, backend(erring), tmp_path / "demo") == 1
    assert "decode.ffn_down: D[0, 0] must be 0x" in capsys.readouterr().out


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layer", "30"], "layer must be 0 to 29, not 30"),
        (["--prompt", ""], "the prompt must have 1 to 8191 tokens; got 0 tokens"),
        (["--prompt", "a\x04b"], "the vocabulary has no token for byte 0x04"),
        (["--policy", "mixd"], "a policy must be one of accurate, balanced, mixed, mxfp8"),
        (["--policy", "absent.yaml"], "absent.yaml: "),
        (["--preset", "bensh"], "did you mean 'bench'?"),
        (["-P", "slice.tensor.formats=[mxfp4*mxfp4]"], "one of the engine's mxfp4*mxfp4"),
    ],
)
def test_the_command_ends_with_2_for_bad_input(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    assert command(monkeypatch, backend(), tmp_path / "demo", *options) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert "Traceback" not in printed


@pytest.mark.usefixtures("loaded")
def test_an_output_that_is_a_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "demo").write_text("mine")
    assert command(monkeypatch, backend(), tmp_path / "demo") == 1
    assert str(tmp_path / "demo") in capsys.readouterr().err
    assert (tmp_path / "demo").read_text() == "mine"
