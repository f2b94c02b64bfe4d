"""A real model through the float64 layers: SmolLM2, and what 8-bit attention loses in it."""

from pathlib import Path

import numpy as np
import pytest
from test_model_llama import TOP

from poblano_golden.formats import MX_FORMATS
from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.grouped_query import GroupedQueryAttention, Projection
from poblano_golden.layers.layer import Head, Layer
from poblano_golden.layers.mlp import GatedMlp
from poblano_golden.layers.norm import rms_norm
from poblano_golden.layers.quantised_attention import (
    AttentionFormats,
    quantised_attention,
    relative_rms,
)
from poblano_golden.layers.rope import Rope, frequencies
from poblano_sw.model.gguf_file import GgufFile
from poblano_sw.model.llama import load_gguf
from poblano_sw.model.locate import find_model

LOSS = {"mxint8": (0.041, 0.067), "mxfp8_e4m3": (0.080, 0.107)}
"""Relative root mean square error of attention, all operands quantised: mean and largest of the
layers, on the first 160 tokens of the licence."""


@pytest.fixture(scope="module")
def model():
    return load_gguf(find_model())


def layers(model):
    """Yield every layer in float64."""
    c = model.configuration
    rope = Rope(frequencies(c.head_size, c.rope_base), interleaved=True)
    for number in range(c.layers):

        def weights(*names, number=number):
            return [model.weight(number, name).astype(np.float64) for name in names]

        projections = map(Projection, weights("attn_q", "attn_k", "attn_v", "attn_output"))
        yield Layer(
            *weights("attn_norm"),
            GroupedQueryAttention(*projections, rope),
            *weights("ffn_norm"),
            GatedMlp(*weights("ffn_gate", "ffn_up", "ffn_down")),
            c.epsilon,
        )


def test_logits_are_those_of_an_independent_implementation(model):
    """Two prompts side by side, so that every layer is made once."""
    states = {tokens: model.embed(tokens).astype(np.float64) for tokens in TOP}
    for layer in layers(model):
        states = {tokens: layer(x) for tokens, x in states.items()}
    file = GgufFile(model.path)
    norm, weight = (
        file.tensor(name).astype(np.float64) for name in ("output_norm.weight", "token_embd.weight")
    )
    head = Head(norm, weight, model.configuration.epsilon)
    for tokens, expected in TOP.items():
        last = head.logits(states[tokens])[-1]
        assert np.argsort(-last)[:5].tolist() == list(expected)
        np.testing.assert_allclose(last[list(expected)], list(expected.values()), atol=1e-4)
        np.testing.assert_allclose(last, model.logits(tokens)[-1], atol=1e-3)
        assert head.token(states[tokens])[-1] == next(iter(expected))


@pytest.mark.nightly
def test_loss_of_8_bit_attention(model):
    text = (Path(__file__).parents[2] / "LICENSE").read_text()
    x = model.embed(model.tokenizer.encode(text)[:160]).astype(np.float64)
    tokens = len(x)
    mask, scale = visible(tokens, tokens), model.configuration.head_size**-0.5
    losses = {name: [] for name in LOSS}
    for layer in layers(model):
        normed = rms_norm(x, layer.attention_norm, layer.epsilon)
        qkv = layer.attention.project(normed, np.arange(tokens))
        expected = attention(*qkv, scale, mask)
        for name, found in losses.items():
            formats = AttentionFormats(*[MX_FORMATS[name]] * 4, "round_up")
            found.append(relative_rms(quantised_attention(*qkv, scale, mask, formats), expected))
        x = layer(x)
    for name, (mean, largest) in LOSS.items():
        assert np.mean(losses[name]) == pytest.approx(mean, abs=5e-4)
        assert np.max(losses[name]) == pytest.approx(largest, abs=5e-4)
