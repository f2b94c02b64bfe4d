"""Recorded vectors of `sim_scripts/record_layer_vectors.py`, and the same layers built of ours."""

import functools
import json
from pathlib import Path

import numpy as np

from poblano_golden.layers.grouped_query import GroupedQueryAttention, Projection
from poblano_golden.layers.layer import Head, Layer
from poblano_golden.layers.linear import linear
from poblano_golden.layers.mixture import GroupRouter, Mixture, SoftmaxRouter, combine
from poblano_golden.layers.mla import Mla
from poblano_golden.layers.mlp import ClampedMlp, GatedMlp
from poblano_golden.layers.norm import rms_norm
from poblano_golden.layers.rope import Rope
from poblano_golden.layers.routing import Routing
from poblano_golden.layers.yarn import Yarn

VECTORS = Path(__file__).parent / "vectors"
NAMES = ("gpt_oss", "deepseek_v3", "kimi_k2")


class Vectors:
    """One recorded model.

    `arrays` holds all that was recorded, floats as float64; `layers` and `head` are the model;
    `parts` maps the name of every recorded part to a function that computes it.
    """

    def __init__(self, name):
        with np.load(VECTORS / f"{name}.npz") as file:
            raw = dict(file)
        self.config = json.loads(str(raw.pop("config")))["parameters"]
        assert {x.dtype.name for x in raw.values()} == {"float32", "int64"}
        self.arrays = {
            key: x.astype(np.float64) if x.dtype == np.float32 else x for key, x in raw.items()
        }
        self.num_layers = self.config["num_hidden_layers"]
        self.is_gpt_oss = "sliding_window" in self.config
        self.rope, self.yarn = self._rope()
        self.parts = {}
        self.layers = [self._layer(f"model.layers.{i}", i) for i in range(self.num_layers)]
        epsilon = self.config["rms_norm_eps"]
        self.head = Head(self._norm("model.norm", epsilon), self.weight("lm_head.weight"), epsilon)
        self.parts["lm_head"] = lambda x: linear(x, self.head.weight)

    def weight(self, name):
        return self.arrays[f"weights/{name}"]

    @property
    def embedded(self):
        return self.weight("model.embed_tokens.weight")[self.arrays["tokens"]]

    def routers(self):
        """Yield the name of every router and ours in its place."""
        for i, layer in enumerate(self.layers):
            if isinstance(layer.mlp, Mixture):
                router = "router" if self.is_gpt_oss else "gate"
                yield f"model.layers.{i}.mlp.{router}", layer.mlp.router

    def _rope(self):
        rope = self.config["rope_parameters"]
        yarn = Yarn(
            base=rope["rope_theta"],
            original=rope["original_max_position_embeddings"],
            factor=rope["factor"],
            beta_fast=rope["beta_fast"],
            beta_slow=rope["beta_slow"],
            truncate=rope.get("truncate", True),
            mscale=rope.get("mscale", 0.0),
            mscale_all_dim=rope.get("mscale_all_dim", 0.0),
        )
        dim = self.config["head_dim" if self.is_gpt_oss else "qk_rope_head_dim"]
        return Rope(yarn.frequencies(dim), not self.is_gpt_oss, yarn.rope_factor), yarn

    def _layer(self, name, index):
        epsilon = self.config["rms_norm_eps"]
        build = (
            (self._grouped_query, self._gpt_oss_mixture)
            if self.is_gpt_oss
            else (self._mla, self._deepseek_mlp)
        )
        layer = Layer(
            self._norm(f"{name}.input_layernorm", epsilon),
            build[0](f"{name}.self_attn", index),
            self._norm(f"{name}.post_attention_layernorm", epsilon),
            build[1](f"{name}.mlp", index),
            epsilon,
        )
        self.parts |= {
            name: layer,
            f"{name}.self_attn": layer.attention,
            f"{name}.mlp": layer.mlp,
        }
        return layer

    def _norm(self, name, epsilon):
        weight = self.weight(f"{name}.weight")
        self.parts[name] = lambda x: rms_norm(x, weight, epsilon)
        return weight

    def _experts(self, name, router, experts):
        """Return the experts, and make them a part, with the recorded routing."""

        def routed(x):
            recorded = (self.arrays[f"{router}/{key}"] for key in ("experts", "weights"))
            return combine(x, Routing(*recorded), experts)

        self.parts[name] = routed
        return experts

    def _grouped_query(self, name, index):
        projections = (
            Projection(*(self.weight(f"{name}.{p}_proj.{kind}") for kind in ("weight", "bias")))
            for p in "qkvo"
        )
        window = None if index % 2 else self.config["sliding_window"]
        sinks = self.weight(f"{name}.sinks")
        return GroupedQueryAttention(*projections, self.rope, sinks, window)

    def _gpt_oss_mixture(self, name, _):
        weights = [
            self.weight(f"{name}.experts.{key}")
            for key in ("gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias")
        ]
        experts = [
            ClampedMlp(gate_up.T, gate_up_bias, down.T, down_bias)
            for gate_up, gate_up_bias, down, down_bias in zip(*weights, strict=True)
        ]
        router = SoftmaxRouter(
            self.weight(f"{name}.router.weight"),
            self.weight(f"{name}.router.bias"),
            self.config["num_experts_per_tok"],
        )
        return Mixture(router, self._experts(f"{name}.experts", f"{name}.router", experts))

    def _mla(self, name, _):
        weights = (
            self.weight(f"{name}.{key}.weight")
            for key in (
                "q_a_proj",
                "q_a_layernorm",
                "q_b_proj",
                "kv_a_proj_with_mqa",
                "kv_a_layernorm",
                "kv_b_proj",
                "o_proj",
            )
        )
        heads = self.config["num_attention_heads"]
        mla = Mla(*weights, heads, self.rope, self.yarn.softmax_factor)
        for norm in ("q_a_layernorm", "kv_a_layernorm"):
            self._norm(f"{name}.{norm}", mla.epsilon)
        return mla

    def _deepseek_mlp(self, name, index):
        if index < self.config["first_k_dense_replace"]:
            return self._gated(name)
        gate_up, down = (
            self.weight(f"{name}.experts.{key}") for key in ("gate_up_proj", "down_proj")
        )
        experts = [GatedMlp(*np.split(g, 2), d) for g, d in zip(gate_up, down, strict=True)]
        router = GroupRouter(
            self.weight(f"{name}.gate.weight"),
            self.weight(f"{name}.gate.e_score_correction_bias"),
            self.config["num_experts_per_tok"],
            self.config["n_group"],
            self.config["topk_group"],
            self.config["routed_scaling_factor"],
        )
        shared = self._gated(f"{name}.shared_experts")
        self.parts[f"{name}.shared_experts"] = shared
        return Mixture(router, self._experts(f"{name}.experts", f"{name}.gate", experts), shared)

    def _gated(self, name):
        return GatedMlp(
            *(self.weight(f"{name}.{key}.weight") for key in ("gate_proj", "up_proj", "down_proj"))
        )


@functools.cache
def vectors(name):
    return Vectors(name)


def deviation(found, expected):
    """Return the largest difference, relative to the root mean square of what is expected."""
    assert found.shape == expected.shape
    return np.abs(found - expected).max() / np.sqrt(np.mean(np.square(expected)))
