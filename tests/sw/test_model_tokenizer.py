"""Tokens of the real vocabulary, against vectors recorded from the Hugging Face tokenizers."""

from __future__ import annotations

from pathlib import Path

import gguf_bytes as build
import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from poblano_golden.errors import PoblanoError
from poblano_sw.model.gguf_file import GgufFile
from poblano_sw.model.locate import find_model
from poblano_sw.model.tokenizer import Tokenizer

RECORDED = [
    ("Hello, world!", [19556, 28, 905, 17]),
    (
        "I'll say it's 2026-11-30:  x = 3.14\n\n  done",
        [57, 3060, 1643, 357, 506, 216, 34, 32, 34, 38, 29, 33, 33, 29, 35, 32, 42, 216, 1792,
         446, 216, 35, 30, 33, 36, 8866, 2294],
    ),
    (
        "naïve café — Ωμέγα 数学 🙂",
        [3546, 46494, 37366, 1841, 5664, 119, 16674, 34075, 23098, 8998, 216, 18265, 18753, 116,
         47526],
    ),
    (
        "\tdef f(x):\n\t\treturn x**2  # ½",
        [197, 1604, 275, 24, 104, 727, 3354, 197, 5406, 1792, 828, 34, 216, 907, 216, 16738],
    ),
    ("   leading and trailing   ", [256, 2899, 284, 35079, 333]),
]  # fmt: skip
"""From tokenizers 0.23.3, a BPE model of the same vocabulary and merges."""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(GgufFile(find_model()))


@pytest.mark.parametrize(("text", "tokens"), RECORDED)
def test_agrees_with_recorded_tokens(tokenizer: Tokenizer, text: str, tokens: list[int]) -> None:
    assert tokenizer.encode(text) == tokens
    assert tokenizer.decode(tokens) == text


def test_round_trip_of_a_long_text(tokenizer: Tokenizer) -> None:
    text = Path("/usr/share/common-licenses/GPL-3").read_text()
    tokens = tokenizer.encode(text)
    assert len(tokens) == 7639
    assert tokenizer.decode(tokens) == text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))))
def test_round_trip_or_refusal(tokenizer: Tokenizer, text: str) -> None:
    try:
        tokens = tokenizer.encode(text)
    except PoblanoError:
        return  # a byte that the vocabulary lacks
    assert tokenizer.decode(tokens) == text


def test_special_tokens_are_ordinary_text(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("<|endoftext|>")
    assert len(tokens) > 1
    assert tokenizer.decode(tokens) == "<|endoftext|>"
    assert tokenizer.decode([0]) == "<|endoftext|>"


def test_refuses_what_it_cannot_write(tokenizer: Tokenizer) -> None:
    with pytest.raises(PoblanoError, match="no token for byte 0x04 of"):
        tokenizer.encode("a\x04b")
    with pytest.raises(PoblanoError, match="must be valid Unicode"):
        tokenizer.encode("\ud800")
    with pytest.raises(PoblanoError, match="a token must be below 49152, not 49152"):
        tokenizer.decode([49152])
    with pytest.raises(PoblanoError, match="a token must be below 49152, not -1"):
        tokenizer.decode([-1])


def test_merges_in_order_of_the_list(tmp_path: Path) -> None:
    tiny = Tokenizer(GgufFile(build.tiny_llama(tmp_path / "m.gguf")))
    assert tiny.decode(tiny.encode("the")) == "the"
    assert tiny.encode("thethth") == [95, 94, 94]


def test_adds_the_first_token_when_the_file_says_so(tmp_path: Path) -> None:
    path = build.tiny_llama(
        tmp_path / "m.gguf",
        tokenizer__ggml__add_bos_token=True,
        tokenizer__ggml__bos_token_id=3,
    )
    assert Tokenizer(GgufFile(path)).encode("th") == [3, 94]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer__ggml__model": "llama"}, "the tokenizer must be gpt2 .* not llama"),
        ({"tokenizer__ggml__pre": "qwen2"}, "not gpt2 with qwen2"),
        ({"tokenizer__ggml__token_type": [1, 1]}, "2 token types for 97 tokens"),
        ({"tokenizer__ggml__merges": ["th x"]}, "the merge of 'th' and 'x' gives no token"),
        ({"tokenizer__ggml__merges": ["the"]}, "the merge of 'the' and '' gives no token"),
        ({"tokenizer__ggml__merges": [1]}, "must be a list of texts"),
        ({"tokenizer__ggml__eos_token_id": 97}, "eos_token_id must be below 97, not 97"),
        ({"tokenizer__ggml__tokens": None}, "'tokenizer.ggml.tokens' is missing"),
        (
            {"tokenizer__ggml__tokens": [" "] + ["x"] * 96, "tokenizer__ggml__merges": None},
            "token ' ' is not in the byte alphabet",
        ),
    ],
)
def test_refuses_a_contradictory_file(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    file = GgufFile(build.tiny_llama(tmp_path / "m.gguf", **changes))
    with pytest.raises(PoblanoError, match=message):
        Tokenizer(file)
