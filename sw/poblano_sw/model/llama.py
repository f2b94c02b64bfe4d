"""The Llama architecture in float32: what the accelerator's results are measured against.

RMSNorm, grouped-query attention with rotary embedding, SiLU-gated MLP, tied or separate output
matrix. Source: Touvron et al., "LLaMA" (2023), and the tensor conventions of GGUF: the rows of
attn_q and attn_k are permuted so that rotary pairs are neighbours (2i, 2i+1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from poblano_golden.errors import PoblanoError
from poblano_sw.model.gguf_file import GgufFile
from poblano_sw.model.tokenizer import Tokenizer

__all__ = ["LINEARS", "Floats", "KvCache", "LlamaConfiguration", "LlamaModel", "Multiply",
           "load_gguf"]  # fmt: skip

Floats = npt.NDArray[np.float32]

Multiply = Callable[[int, str, Floats], Floats]
"""Layer, name of LINEARS and input [tokens, K] -> output [tokens, N]."""

LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
"""The matrix multiplications of one layer, in the order in which they run."""

_NORMS = ("attn_norm", "ffn_norm")

_UNSUPPORTED = ("llama.expert_count", "llama.rope.scaling.type", "llama.attention.sliding_window")


@dataclass(frozen=True)
class LlamaConfiguration:
    """Sizes and constants of a model, as the file states them."""

    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    context: int
    vocabulary: int
    rope_base: float
    epsilon: float

    @property
    def head_size(self) -> int:
        """Elements of one head."""
        return self.hidden // self.heads

    @classmethod
    def from_gguf(cls, file: GgufFile) -> LlamaConfiguration:
        """Read and check the sizes.

        Raises
        ------
        PoblanoError
            Another architecture, a feature that is not modelled, or sizes that do not divide.
        """

        def error(text: str) -> PoblanoError:
            return PoblanoError(f"{file.path}: {text}")

        architecture = file.get("general.architecture", str)
        if architecture != "llama":
            raise error(f"general.architecture must be 'llama', not {architecture!r}")
        for key in _UNSUPPORTED:
            if file.metadata.get(key) not in (None, 0, "none"):
                raise error(f"{key} {file.metadata[key]!r} is not supported")

        def count(key: str) -> int:
            value = file.get(key, int)
            if value < 1:
                raise error(f"{key} must be at least 1, not {value}")
            return value

        def positive(key: str, default: float | None = None) -> float:
            value = file.get(key, float, default)
            if not 0 < value < np.inf:
                raise error(f"{key} must be positive and finite, not {value}")
            return value

        heads = count("llama.attention.head_count")
        self = cls(
            layers=count("llama.block_count"),
            hidden=count("llama.embedding_length"),
            intermediate=count("llama.feed_forward_length"),
            heads=heads,
            kv_heads=file.get("llama.attention.head_count_kv", int, heads),
            context=count("llama.context_length"),
            vocabulary=len(file.get("tokenizer.ggml.tokens", list)),
            rope_base=positive("llama.rope.freq_base", 10000.0),
            epsilon=positive("llama.attention.layer_norm_rms_epsilon"),
        )
        if self.kv_heads < 1 or heads % self.kv_heads or self.hidden % (2 * heads):
            raise error(
                f"embedding_length {self.hidden} must be an even multiple of head_count {heads}, "
                f"and that a multiple of head_count_kv {self.kv_heads}"
            )
        for key in ("llama.rope.dimension_count", "llama.attention.key_length",
                    "llama.attention.value_length"):  # fmt: skip
            size = file.get(key, int, self.head_size)
            if size != self.head_size:
                raise error(f"{key} must be the head size {self.head_size}, not {size}")
        return self

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every tensor that the file must hold, [out, in] for matrices."""
        kv_size = self.kv_heads * self.head_size
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (self.vocabulary, self.hidden),
            "output_norm.weight": (self.hidden,),
        }
        for layer in range(self.layers):
            of_layer = {
                "attn_norm": (self.hidden,),
                "attn_q": (self.hidden, self.hidden),
                "attn_k": (kv_size, self.hidden),
                "attn_v": (kv_size, self.hidden),
                "attn_output": (self.hidden, self.hidden),
                "ffn_norm": (self.hidden,),
                "ffn_gate": (self.intermediate, self.hidden),
                "ffn_up": (self.intermediate, self.hidden),
                "ffn_down": (self.hidden, self.intermediate),
            }
            shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in of_layer.items()}
        return shapes


@dataclass
class KvCache:
    """Keys (rotated) and values of the tokens so far: for every layer [tokens, kv_heads, size]."""

    layers: list[tuple[Floats, Floats]] = field(default_factory=list[tuple[Floats, Floats]])

    @property
    def tokens(self) -> int:
        """Tokens that the first layer has seen."""
        return self.layers[0][0].shape[0] if self.layers else 0

    def extend(self, layer: int, keys: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Append to one layer, the next new one or an old one, and return all it now holds."""
        if layer == len(self.layers):
            self.layers.append((keys, values))
        else:
            old_keys, old_values = self.layers[layer]
            self.layers[layer] = (
                np.concatenate([old_keys, keys]),
                np.concatenate([old_values, values]),
            )
        return self.layers[layer]


class LlamaModel:
    """A language model with float32 arithmetic; weights are decoded when first used.

    Parameters
    ----------
    file:
        An opened GGUF file of the llama architecture.

    Raises
    ------
    PoblanoError
        The file misses a tensor, has one of another shape, or one that is not modelled.
    """

    def __init__(self, file: GgufFile) -> None:
        self.configuration = LlamaConfiguration.from_gguf(file)
        self.tokenizer = Tokenizer(file)
        self._file = file
        self._weights: dict[str, Floats] = {}
        needed = self.configuration.layers * (len(LINEARS) + len(_NORMS))
        if needed > len(file.tensors):
            raise PoblanoError(
                f"{file.path}: llama.block_count {self.configuration.layers} needs {needed} "
                f"tensors, the file has {len(file.tensors)}"
            )
        shapes = self.configuration.tensor_shapes()
        self._output = "output.weight" if "output.weight" in file.tensors else "token_embd.weight"
        shapes.setdefault(self._output, shapes["token_embd.weight"])
        for name, shape in shapes.items():
            if name not in file.tensors:
                raise PoblanoError(f"{file.path}: tensor {name!r} is missing")
            if file.tensors[name].shape != shape:
                raise PoblanoError(
                    f"{file.path}: tensor {name!r} must be {list(shape)}, "
                    f"not {list(file.tensors[name].shape)}"
                )
        for name in file.tensors:
            if name not in shapes:
                raise PoblanoError(f"{file.path}: tensor {name!r} is not supported")

    @property
    def name(self) -> str:
        """What the file calls the model."""
        return self._file.get("general.name", str, self._file.path.stem)

    @property
    def path(self) -> Path:
        """The file that the weights come from."""
        return self._file.path

    def weight(self, layer: int, name: str) -> Floats:
        """Return a weight of a layer: [out, in] for the matrices of LINEARS."""
        return self._tensor(f"blk.{layer}.{name}.weight")

    def stored_type(self, layer: int, name: str) -> str:
        """Return the type in which the file stores a weight of a layer."""
        return self._file.tensors[f"blk.{layer}.{name}.weight"].type.name

    def _tensor(self, name: str) -> Floats:
        if name not in self._weights:
            self._weights[name] = self._file.tensor(name)
        return self._weights[name]

    @cached_property
    def _frequencies(self) -> npt.NDArray[np.float64]:
        size = self.configuration.head_size
        return self.configuration.rope_base ** (-np.arange(0, size, 2) / size)

    def embed(self, tokens: Sequence[int]) -> Floats:
        """Return the embedding of every token, [tokens, hidden].

        Raises
        ------
        PoblanoError
            A token outside the vocabulary, or no token.
        """
        numbers = np.asarray(tokens, np.int64)
        if not numbers.size:
            raise PoblanoError("a model needs at least one token, not none")
        wrong = numbers[(numbers < 0) | (numbers >= self.configuration.vocabulary)]
        if wrong.size:
            raise PoblanoError(
                f"a token must be below {self.configuration.vocabulary}, not {wrong[0]}"
            )
        return self._file.tensor("token_embd.weight", rows=numbers)

    def multiply(self, layer: int, name: str, x: Floats) -> Floats:
        """Multiply [tokens, K] by a matrix of LINEARS in float32: [tokens, N]."""
        return x @ self.weight(layer, name).T

    def run_layer(
        self, layer: int, x: Floats, cache: KvCache, multiply: Multiply | None = None
    ) -> Floats:
        """Run one layer over new tokens.

        Parameters
        ----------
        layer:
            Its number; layers must be run in order.
        x:
            The residual stream of the new tokens, [tokens, hidden].
        cache:
            Keys and values of the tokens before; extended by the new ones.
        multiply:
            What stands in for `self.multiply`, such as a quantised product.

        Returns
        -------
        Floats
            The residual stream after the layer.

        Raises
        ------
        PoblanoError
            More tokens than the model's context.
        """
        c, product = self.configuration, multiply or self.multiply
        past = cache.layers[layer][0].shape[0] if layer < len(cache.layers) else 0
        if past + len(x) > c.context:
            raise PoblanoError(f"the model's context is {c.context} tokens, not {past + len(x)}")
        positions = np.arange(past, past + len(x))
        normed = self._norm(x, self.weight(layer, "attn_norm"))
        q, k, v = (
            product(layer, name, normed).reshape(len(x), -1, c.head_size)
            for name in ("attn_q", "attn_k", "attn_v")
        )
        keys, values = cache.extend(layer, self._rotate(k, positions), v)
        attended = _attention(self._rotate(q, positions), keys, values, positions)
        x = x + product(layer, "attn_output", attended)
        normed = self._norm(x, self.weight(layer, "ffn_norm"))
        gate = product(layer, "ffn_gate", normed)
        gated = _silu(gate) * product(layer, "ffn_up", normed)
        return x + product(layer, "ffn_down", gated)

    def activations(
        self, tokens: Sequence[int], layer: int, cache: KvCache | None = None
    ) -> dict[str, Floats]:
        """Return what really enters every matrix of a layer.

        Parameters
        ----------
        tokens:
            The new tokens: a whole prompt (prefill), or one token after it (decode).
        layer:
            The layer's number.
        cache:
            Keys and values of the tokens before, in layers 0 to `layer` at least; extended.

        Returns
        -------
        dict
            Name of LINEARS -> [tokens, K] float32. attn_q, attn_k and attn_v share the normed
            residual; attn_output takes the attended values; ffn_gate and ffn_up share the second
            norm; ffn_down takes silu(gate) * up.

        Raises
        ------
        PoblanoError
            No such layer, no token, or more tokens than the model's context.
        """
        if not 0 <= layer < self.configuration.layers:
            raise PoblanoError(f"layer must be 0 to {self.configuration.layers - 1}, not {layer}")
        x, cache = self.embed(tokens), KvCache() if cache is None else cache
        for number in range(layer):
            x = self.run_layer(number, x, cache)
        entered: dict[str, Floats] = {}

        def record(layer: int, name: str, x: Floats) -> Floats:
            entered[name] = x
            return self.multiply(layer, name, x)

        self.run_layer(layer, x, cache, record)
        return entered

    def logits(
        self,
        tokens: Sequence[int],
        cache: KvCache | None = None,
        multiply: Multiply | None = None,
    ) -> Floats:
        """Return the logits after every new token, [tokens, vocabulary].

        `cache` is extended, and `multiply` may stand in for `self.multiply` in every layer.
        """
        x, cache = self.embed(tokens), KvCache() if cache is None else cache
        for number in range(self.configuration.layers):
            x = self.run_layer(number, x, cache, multiply)
        return self._norm(x, self._tensor("output_norm.weight")) @ self._tensor(self._output).T

    def continue_greedily(self, tokens: Sequence[int], count: int) -> list[int]:
        """Return at most `count` most likely next tokens, one after the other, up to the end."""
        cache, result, new = KvCache(), list[int](), list(tokens)
        while len(result) < count and self.tokenizer.end not in new:
            new = [int(self.logits(new, cache)[-1].argmax())]
            result += new
        return result

    def _norm(self, x: Floats, weight: Floats) -> Floats:
        mean = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean + np.float32(self.configuration.epsilon)) * weight

    def _rotate(self, x: Floats, positions: npt.NDArray[np.int64]) -> Floats:
        """Turn each neighbouring pair of [tokens, heads, size] by its position's angle."""
        angles = np.outer(positions, self._frequencies)[:, None, :]
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        turned = np.empty_like(x)
        turned[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        turned[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return turned


def _silu(x: Floats) -> Floats:
    with np.errstate(over="ignore"):  # x / infinity is the right -0
        return x / (np.float32(1) + np.exp(-x))


def _attention(q: Floats, keys: Floats, values: Floats, positions: npt.NDArray[np.int64]) -> Floats:
    """Causal attention of grouped query heads; returns [tokens, heads * size]."""
    tokens, heads, size = q.shape
    grouped = q.reshape(tokens, keys.shape[1], -1, size)
    scores = np.einsum("tkgs,nks->kgtn", grouped, keys, optimize=True) * np.float32(size**-0.5)
    scores[..., np.arange(len(keys)) > positions[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    attended = np.einsum("kgtn,nks->tkgs", weights, values, optimize=True)
    return attended.reshape(tokens, heads * size)


def load_gguf(path: Path) -> LlamaModel:
    """Open a GGUF file of the llama architecture.

    Raises
    ------
    PoblanoError
        The file cannot be read, is damaged, or is of another kind; the message says where.
    """
    return LlamaModel(GgufFile(path))
