"""Records what an independent implementation of the models' layers computes, for the golden tests.

Tiny GPT-OSS, DeepSeek-V3 and Kimi-like models with random weights are run by `transformers` in
float32, every part of every layer is hooked, and weights, inputs and results go to
`tests/golden/vectors/NAME.npz`. The rotary embeddings of the models in full size go to `rope.npz`.
Nothing here uses Poblano.

It needs torch and transformers, which Poblano itself does not. Run in an environment of its own:

    python3 -m venv /tmp/record && /tmp/record/bin/pip install torch==2.13.0 transformers==5.24.0
    /tmp/record/bin/python sim_scripts/record_layer_vectors.py

The committed files were recorded with Python 3.11, numpy 2.4.6, torch 2.13.0 (CPU) and transformers
5.24.0, one thread; a second run gave the same bytes.

Keys of a file: `config` (JSON: the model's configuration, seed, versions), `tokens`,
`weights/PARAMETER`, `MODULE/in` and `MODULE/out`, of attention modules also `/q`, `/k`, `/v` (as
they enter the softmax, `[heads, tokens, dim]`) and `/heads`, of routers `/logits`, `/weights`,
`/experts`.
"""

# torch and transformers are not among Poblano's own packages.
# pyright: reportMissingImports=false

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss

VECTORS = Path(__file__).parents[1] / "tests" / "golden" / "vectors"
NUM_TOKENS = 24

YARN = {"rope_type": "yarn", "original_max_position_embeddings": 4096, "beta_slow": 1.0}

GPT_OSS: dict[str, Any] = {
    "vocab_size": 48,
    "hidden_size": 24,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_local_experts": 8,
    "num_experts_per_tok": 4,
    "sliding_window": 8,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072,
    "rope_parameters": YARN
    | {"rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "truncate": False},
}

DEEPSEEK: dict[str, Any] = {
    "vocab_size": 48,
    "hidden_size": 32,
    "intermediate_size": 40,
    "moe_intermediate_size": 12,
    "num_hidden_layers": 2,
    "first_k_dense_replace": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 16,
    "v_head_dim": 10,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 163840,
    "num_mtp_layers": 0,
    "rope_parameters": YARN
    | {
        "rope_theta": 10000.0,
        "factor": 40.0,
        "beta_fast": 32.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}

KIMI = DEEPSEEK | {
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "n_routed_experts": 24,
    "num_experts_per_tok": 6,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 2.827,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 262144,
    "rope_parameters": DEEPSEEK["rope_parameters"] | {"rope_theta": 50000.0, "factor": 64.0},
}

MODELS = {
    "gpt_oss": (transformers.GptOssConfig, transformers.GptOssForCausalLM, GPT_OSS, 1),
    "deepseek_v3": (transformers.DeepseekV3Config, transformers.DeepseekV3ForCausalLM, DEEPSEEK, 2),
    "kimi_k2": (transformers.DeepseekV3Config, transformers.DeepseekV3ForCausalLM, KIMI, 3),
}
"""Configuration class, model class, configuration and seed."""


def randomise(model: Any, seed: int) -> None:
    """Fill all parameters with normal numbers that have few bits, so that files are small.

    Results are about 1 in most places. Some are not, on purpose: what enters the first norm and
    the norms of latents is so small that their epsilon matters, GPT-OSS's gates and ups are so
    large that they are clamped, and most biased scores are negative.
    """
    generator = torch.Generator().manual_seed(seed)
    inputs_axis = -2 if isinstance(model, transformers.GptOssForCausalLM) else -1
    latents = getattr(model.config, "kv_lora_rank", None)
    for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith("inv_freq"):
            continue
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("norm.weight"):
            values = 1 + 0.2 * values
        elif name.endswith("e_score_correction_bias"):
            values = 0.2 * values - 0.8
        elif name.endswith("bias"):
            values = 0.5 * values
        elif parameter.dim() == 3:
            values /= parameter.shape[inputs_axis] ** 0.5
            if inputs_axis == -2 and name.endswith("gate_up_proj"):
                values *= 4
        elif parameter.dim() == 2:
            values /= parameter.shape[-1] ** 0.5
            if name.endswith(("embed_tokens.weight", "q_a_proj.weight")):
                values *= 0.02
            elif name.endswith("kv_a_proj_with_mqa.weight"):
                values[:latents] *= 0.02
        parameter.data.copy_(values.bfloat16().float())


def array(x: Any) -> np.ndarray:
    """Return a tensor as an array, without an axis for the batch."""
    x = x.detach().numpy().copy()
    return x[0] if x.ndim > 2 and x.shape[0] == 1 else x


@contextmanager
def recording(model: Any, records: dict[str, Any]) -> Generator[None]:
    """Record inputs and results of the model's parts, and what enters the attentions' softmax."""

    def record(name: str) -> Any:
        def after(_: Any, inputs: Any, keywords: Any, result: Any) -> None:
            first = inputs[0] if inputs else keywords["hidden_states"]
            records[f"{name}/in"] = array(first)
            if name.endswith((".router", ".gate")):
                logits, weights, experts = result
                records[f"{name}/logits"] = array(logits)
                records[f"{name}/weights"] = array(weights)
                records[f"{name}/experts"] = array(experts)
            else:
                records[f"{name}/out"] = array(result[0] if isinstance(result, tuple) else result)

        return after

    parts = ("norm", "self_attn", "mlp", "experts", "router", "gate", "lm_head")
    names: dict[Any, str] = {}
    for name, part in model.named_modules():
        names[part] = name
        if name.endswith(parts) or isinstance(part, GradientCheckpointingLayer):
            part.register_forward_hook(record(name), with_kwargs=True)

    module: Any = sys.modules[type(model).__module__]
    original = module.eager_attention_forward

    def attention(part: Any, q: Any, k: Any, v: Any, *arguments: Any, **keywords: Any) -> Any:
        heads, weights = original(part, q, k, v, *arguments, **keywords)
        for key, tensor in {"q": q, "k": k, "v": v, "heads": heads}.items():
            records[f"{names[part]}/{key}"] = array(tensor)
        return heads, weights

    module.eager_attention_forward = attention
    try:
        yield
    finally:
        module.eager_attention_forward = original


def record(name: str) -> Path:
    """Run one model and write its file."""
    config_class, model_class, parameters, seed = MODELS[name]
    config = config_class(**parameters, attn_implementation="eager", experts_implementation="eager")
    model = model_class(config).eval().float()
    randomise(model, seed)
    tokens = torch.randint(
        config.vocab_size, (1, NUM_TOKENS), generator=torch.Generator().manual_seed(seed)
    )
    records: dict[str, Any] = {}
    with torch.no_grad(), recording(model, records):
        model(input_ids=tokens, use_cache=False)
    facts = {
        "seed": seed,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "parameters": parameters,
    }
    weights: dict[str, Any] = {
        f"weights/{key}": array(value) for key, value in model.state_dict().items()
    }
    path = VECTORS / f"{name}.npz"
    np.savez_compressed(
        path, config=json.dumps(facts), tokens=tokens[0].numpy(), **weights, **records
    )
    return path


def record_rope() -> Path:
    """Write frequencies, factor and softmax scale of the models in full size."""
    records: dict[str, Any] = {}
    for name, (config_class, _, parameters, _) in MODELS.items():
        config = config_class(
            rope_parameters=parameters["rope_parameters"],
            max_position_embeddings=parameters["max_position_embeddings"],
        )
        if name == "gpt_oss":
            rope, scale = gpt_oss.GptOssRotaryEmbedding(config), config.head_dim**-0.5
        else:
            rope = deepseek.DeepseekV3RotaryEmbedding(config)
            scale = deepseek.yarn_apply_mscale(config.rope_parameters, config.qk_head_dim**-0.5)
        records[f"{name}/frequencies"] = array(rope.inv_freq)
        records[f"{name}/factor"] = np.float64(rope.attention_scaling)
        records[f"{name}/scale"] = np.float64(scale)
    path = VECTORS / "rope.npz"
    np.savez_compressed(path, **records)
    return path


def main() -> None:
    """Record every model."""
    torch.set_num_threads(1)
    VECTORS.mkdir(parents=True, exist_ok=True)
    for path in (*map(record, MODELS), record_rope()):
        sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
