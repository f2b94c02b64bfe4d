"""The float64 layers agree with what an independent implementation computed in float32."""

import numpy as np
import pytest
from layer_vectors import NAMES, VECTORS, deviation, vectors

from poblano_golden.layers.attention import attention, visible
from poblano_golden.layers.mixture import Mixture
from poblano_golden.layers.mla import attend_absorbed
from poblano_golden.layers.selection import argmax

TOLERANCE = 1e-5


@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_part(name):
    v = vectors(name)
    recorded = {key.removesuffix("/out") for key in v.arrays if key.endswith("/out")}
    assert recorded == v.parts.keys()
    for part, compute in v.parts.items():
        found = compute(v.arrays[f"{part}/in"])
        assert deviation(found, v.arrays[f"{part}/out"]) < TOLERANCE, part


def dense(routing, num_experts):
    """Return the weight of every expert, 0 where it was not chosen: `[tokens, experts]`."""
    weights = np.zeros((len(routing[0]), num_experts))
    np.put_along_axis(weights, *routing, axis=1)
    return weights


@pytest.mark.parametrize("name", NAMES)
def test_routing(name):
    """Experts are equal, not only close; DeepSeek's are recorded in no particular order."""
    v = vectors(name)
    routers = dict(v.routers())
    assert len(routers) == (2 if v.is_gpt_oss else 1)
    for part, router in routers.items():
        x, logits, weights, experts = (
            v.arrays[f"{part}/{key}"] for key in ("in", "logits", "weights", "experts")
        )
        found = router(x)
        if v.is_gpt_oss:
            np.testing.assert_array_equal(found.experts, experts)
        np.testing.assert_array_equal(np.sort(found.experts), np.sort(experts))
        num_experts = logits.shape[1]
        ours, theirs = dense(found, num_experts), dense((experts, weights), num_experts)
        assert deviation(ours, theirs) < TOLERANCE
        raw = x @ router.weight.T + (router.bias if v.is_gpt_oss else 0)
        assert deviation(raw, logits) < TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_from_embedding_to_logits(name):
    """All layers in turn, each with its own routing: nothing recorded enters on the way."""
    v = vectors(name)
    x = v.embedded
    for i, layer in enumerate(v.layers):
        x = layer(x)
        assert deviation(x, v.arrays[f"model.layers.{i}/out"]) < TOLERANCE
    logits = v.head.logits(x)
    assert deviation(logits, v.arrays["lm_head/out"]) < TOLERANCE
    np.testing.assert_array_equal(v.head.token(x), argmax(v.arrays["lm_head/out"]))


def by_token(x):
    return x.transpose(1, 0, 2)


def test_grouped_attention_between_its_projections():
    v = vectors("gpt_oss")
    for i, layer in enumerate(v.layers):
        part = f"model.layers.{i}.self_attn"
        x = v.arrays[f"{part}/in"]
        found = layer.attention.project(x, np.arange(len(x)))
        recorded = [by_token(v.arrays[f"{part}/{key}"]) for key in "qkv"]
        for ours, theirs in zip(found, recorded, strict=True):
            assert deviation(ours, theirs) < TOLERANCE
        mask = visible(len(x), len(x), layer.attention.window)
        heads = attention(*recorded, 0.25, mask, layer.attention.sinks)
        assert deviation(heads, v.arrays[f"{part}/heads"]) < TOLERANCE


@pytest.mark.parametrize("name", ["deepseek_v3", "kimi_k2"])
def test_latent_attention_between_its_projections(name):
    """The recorded pairs of the rotary part lie apart: all first elements, then all second."""
    v = vectors(name)
    for i, layer in enumerate(v.layers):
        part, mla = f"model.layers.{i}.self_attn", layer.attention
        x = v.arrays[f"{part}/in"]
        positions = np.arange(len(x))
        q, cache = mla.queries(x, positions), mla.latents(x, positions)
        apart = [*range(0, mla.rope.dim, 2), *range(1, mla.rope.dim, 2)]
        ours = np.concatenate((q.nope, q.rope[..., apart]), axis=2)
        assert deviation(ours, by_token(v.arrays[f"{part}/q"])) < TOLERANCE
        keys = by_token(v.arrays[f"{part}/k"])
        nope = np.einsum("kc,hnc->khn", cache.c, mla.key_map)
        assert deviation(nope, keys[..., : mla.nope_dim]) < TOLERANCE
        for head in range(mla.heads):
            assert deviation(cache.rope[:, apart], keys[:, head, mla.nope_dim :]) < TOLERANCE
        values = np.einsum("kc,hvc->khv", cache.c, mla.value_map)
        assert deviation(values, by_token(v.arrays[f"{part}/v"])) < TOLERANCE
        assert deviation(mla(x, attend_absorbed), v.arrays[f"{part}/out"]) < TOLERANCE


def test_the_vectors_reach_what_they_are_for():
    """They would not pass with a piece left out: every piece changes them."""
    v = vectors("gpt_oss")
    windows = [layer.attention.window for layer in v.layers]
    assert windows == [8, None]
    assert len(v.embedded) > 2 * windows[0]
    for i, layer in enumerate(v.layers):
        x = v.arrays[f"model.layers.{i}.mlp/in"]
        routing = layer.mlp.router(x)
        gate_up = np.concatenate(
            [
                x[(routing.experts == e).any(axis=1)] @ expert.gate_up.T + expert.gate_up_bias
                for e, expert in enumerate(layer.mlp.experts)
            ]
        )
        assert (gate_up[:, 0::2] > 7).any()
        assert (gate_up[:, 0::2] < -7).any()
        assert (gate_up[:, 1::2] > 7).any()
        assert (gate_up[:, 1::2] < -7).any()
    for name in ("deepseek_v3", "kimi_k2"):
        v = vectors(name)
        assert [isinstance(layer.mlp, Mixture) for layer in v.layers] == [False, True]
        ((part, router),) = v.routers()
        scores = 1 / (1 + np.exp(-v.arrays[f"{part}/logits"]))
        biased = scores + router.bias
        chosen = np.sort(v.arrays[f"{part}/experts"])

        def best(x, k=router.k):
            return np.sort(np.argsort(-x)[:, :k])

        assert (best(scores) != chosen).any(), "the bias selects"
        assert (biased < 0).mean() > 0.5
        if router.groups > 1:
            assert (best(biased) != chosen).any(), "the groups select"
            worst = np.take_along_axis(biased, chosen, axis=1).min(axis=1)
            assert (worst < 0).any(), "a zero for excluded experts would beat a chosen one"


@pytest.mark.parametrize("name", NAMES)
def test_rotary_embedding_in_full_size(name):
    """The small models have the YaRN parameters of the large ones; only the dimension differs."""
    yarn = vectors(name).yarn
    with np.load(VECTORS / "rope.npz") as file:
        frequencies, factor, scale = (
            file[f"{name}/{k}"] for k in ("frequencies", "factor", "scale")
        )
    np.testing.assert_allclose(yarn.frequencies(64), frequencies, rtol=1e-6)
    assert yarn.rope_factor == pytest.approx(factor, rel=1e-15)
    query_dim = 64 if name == "gpt_oss" else 128 + 64
    assert query_dim**-0.5 * yarn.softmax_factor == pytest.approx(scale, rel=1e-15)
