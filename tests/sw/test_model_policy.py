"""Precision policies: which entry decides, and every mistake in a file."""

from __future__ import annotations

import re
from pathlib import Path

import gguf_bytes as build
import numpy as np
import pytest

from poblano.config import load
from poblano_golden.blocks import dequantise, quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import BF16, FP32, MXFP4, MXINT8
from poblano_sw.model.evaluate import perplexity, quantised_products
from poblano_sw.model.llama import LINEARS, load_gguf
from poblano_sw.model.locate import find_model
from poblano_sw.model.policy import load_policy, policy_paths

GOOD = """\
name: mine
tensors:
  - {match: "blk.0.ffn_*", activation: mxfp4, weight: mxfp4, scale_rule: even, result: bf16}
  - {match: "*", activation: mxint8, weight: mxint8, scale_rule: floor}
"""
TENSORS = [f"blk.{layer}.{linear}" for layer in range(2) for linear in LINEARS]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", policy_paths())
def test_policies_that_come_along_fit_every_preset(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    for preset in ("tiny", "bench", "small", "jalapeno"):
        policy.check(TENSORS, load(preset).slice.tensor.formats)


@pytest.mark.nightly
@pytest.mark.parametrize("name", policy_paths())
def test_notes_state_the_measured_perplexity(name: str) -> None:
    model, policy = load_gguf(find_model()), load_policy(name)
    text = Path("/usr/share/common-licenses/GPL-3").read_text()
    tokens = model.tokenizer.encode(text)[:1024]
    found = perplexity(model, tokens, 512, quantised_products(model, policy))
    stated = re.search(r"Perplexity (\d+\.\d) where float has 21\.1\.", policy.notes)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(found, abs=0.15)


def test_the_first_match_decides(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, GOOD))
    first = policy.precision("blk.0.ffn_down")
    assert (first.activation, first.weight, first.scale_rule) == (MXFP4, MXFP4, "even")
    assert first.result == BF16
    second = policy.precision("blk.1.ffn_down")
    assert (second.activation, second.weight, second.scale_rule) == (MXINT8, MXINT8, "floor")
    assert second.result == FP32
    assert second.pair == "mxint8*mxint8"


def test_mixed_pairs_work_in_both_orders(tmp_path: Path) -> None:
    text = (
        'name: x\ntensors:\n  - {match: "*", activation: mxfp4, weight: mxint8, scale_rule: even}'
    )
    load_policy(written(tmp_path, text)).check(TENSORS, ["mxint8*mxfp4"])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tensors:", "tensor:", r":2:1: a key must be one of name, notes, tensors; got 'tensor'"),
        ("name: mine\n", "", r":1:1: name must be given; got nothing"),
        ("name: mine", "name: 3", r":1:7: name must be a text; got 3"),
        ("scale_rule: even", "scale_rule: ceil",
         r":3:74: scale_rule must be one of floor, round_up, even; got 'ceil'"),
        ("activation: mxfp4", "activation: mxfp5", r":3:\d+: activation must be one of mxfp4, "),
        ("weight: mxfp4", "weight: [mxfp4]", r":3:\d+: weight must be one of .* got a list"),
        ("result: bf16", "result: mxfp4", r":3:\d+: result must be one of fp32, bf16; got 'mxfp4'"),
        ("match: \"*\", ", "", r":4:5: match must be given; got nothing"),
        ("result: bf16", "rule: bf16", r":3:\d+: a key must be one of activation, .* got 'rule'"),
        ("result: bf16", "result: bf16, weight: mxint8", "a key must stand once"),
        ("tensors:", "tensors: [", "must be valid YAML"),
    ],
)  # fmt: skip
def test_refuses(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(PoblanoError, match=message) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}:")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "text", "name: x\ntensors: []", "name: x\ntensors: 3"])
def test_refuses_another_shape(tmp_path: Path, text: str) -> None:
    with pytest.raises(PoblanoError, match=r"policy\.yaml:\d:\d+: .* must be"):
        load_policy(written(tmp_path, text))


def test_refuses_what_does_not_fit(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, GOOD))
    with pytest.raises(PoblanoError, match=r":3:5: activation\*weight must be one of .* mxint8"):
        policy.check(TENSORS, ["mxint8*mxint8"])
    unused = GOOD.replace("blk.0.ffn_*", "blk.0.fnn_*")
    with pytest.raises(PoblanoError, match=r":3:5: an entry must decide .* got 'blk\.0\.fnn_\*'"):
        load_policy(written(tmp_path, unused)).check(TENSORS, ["mxint8*mxint8"])
    partial = GOOD.replace('match: "*"', 'match: "blk.1.*"')
    with pytest.raises(
        PoblanoError, match=r"policy mine: no entry matches tensor 'blk\.0\.attn_q'"
    ):
        load_policy(written(tmp_path, partial)).check(TENSORS, ["mxint8*mxint8"])


def test_refuses_an_unknown_name_and_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PoblanoError, match=r"a policy must be one of .*mixed.*; got 'mixd'"):
        load_policy("mixd")
    with pytest.raises(PoblanoError, match="readable file"):
        load_policy(tmp_path / "absent.yaml")


def test_quantised_products_round_both_operands(tmp_path: Path) -> None:
    model = load_gguf(build.tiny_llama(tmp_path / "m.gguf"))
    multiply = quantised_products(model, load_policy(written(tmp_path, GOOD)))
    x = np.random.default_rng(2).standard_normal((3, 64)).astype(np.float32)
    weight = model.weight(0, "ffn_down")
    expected = (
        dequantise(quantise(x, MXFP4, "even")) @ dequantise(quantise(weight, MXFP4, "even")).T
    )
    for _ in range(2):  # the second time the weights are remembered
        np.testing.assert_allclose(multiply(0, "ffn_down", x), expected, rtol=1e-5, atol=1e-6)
    assert np.abs(model.multiply(0, "ffn_down", x) - expected).max() > 1e-3
