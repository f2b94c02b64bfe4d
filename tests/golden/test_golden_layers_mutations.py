"""The tests of the layers must fail when a layer is wrong: each mutation plants one fault."""

import pytest
from test_golden_mutations import plant, run_golden_tests

FINDERS = {
    "rope": ("rope.py", "yarn.py"),
    "attention": ("softmax.py", "attention.py"),
    "mla": ("mla.py",),
    "routing": ("routing.py", "selection.py"),
    "experts": ("activations.py", "mlp.py", "mixture.py", "linear.py"),
    "whole": ("norm.py", "shapes.py"),
    "vectors": ("grouped_query.py", "layer.py"),
    "quantised_attention": ("quantised_attention.py",),
}
"""Which tests, `test_golden_layers_...`, are the likeliest to find a fault in which file."""

MUTATIONS = {
    "the window has one key too many (C1)": ("attention.py", "(age < (", "(age <= ("),
    "queries are the first keys": ("attention.py", "positions[keys - queries :, None]",
                                   "positions[:queries, None]"),
    "heads are dealt out to KV heads": (
        "attention.py",
        "q = q.reshape(queries, kv_heads, group, dim)",
        "q = q.reshape(queries, group, kv_heads, dim).transpose(0, 2, 1, 3)",
    ),
    "sinks are scaled": ("attention.py", "else sinks.reshape", "else (scale * sinks).reshape"),
    "masked keys have weight 0": (
        "attention.py",
        'np.einsum("hgd,khd->hgk", q[row], k[seen]) * scale\n'
        '        out[row] = np.einsum("hgk,khd->hgd", softmax(logits, sink), v[seen])',
        'np.where(seen, np.einsum("hgd,khd->hgk", q[row], k) * scale, -np.inf)\n'
        '        out[row] = np.einsum("hgk,khd->hgd", softmax(logits, sink), v)',
    ),
    "a masked row is NaN (C3)": ("softmax.py", "np.where(np.isneginf(largest), 0.0, largest)",
                                 "largest"),
    "a masked row divides by zero (C3)": ("softmax.py", "np.where(total == 0, 1.0, total)",
                                          "total"),
    "the largest ignores the sink": ("softmax.py", "largest = np.maximum(largest, sink)", "pass"),
    "the window is dropped": ("grouped_query.py", "tokens, tokens, self.window",
                              "tokens, tokens, None"),
    "keys are not turned": ("grouped_query.py", "self.rope.rotate(k, positions)", "k"),
    "the ramp is rounded (C6)": ("yarn.py", "if self.truncate:", "if True:"),
    "the ramp is never rounded": ("yarn.py", "if self.truncate:", "if False:"),
    "the ramp runs backwards": ("yarn.py", "plain / self.factor * share + plain * (1 - share)",
                                "plain / self.factor * (1 - share) + plain * share"),
    "mscale is not squared": ("yarn.py", "self._mscale(self.mscale_all_dim) ** 2",
                              "self._mscale(self.mscale_all_dim)"),
    "sine and cosine lack the factor": ("rope.py", "np.cos(angles) * self.factor",
                                        "np.cos(angles)"),
    "interleaved pairs are halves": ("rope.py", "if self.interleaved:", "if False:"),
    "turns go the other way": ("rope.py", "x[..., first] * cos - x[..., second] * sin",
                               "x[..., first] * cos + x[..., second] * sin"),
    "the latents share the queries' map": ("mla.py", "[:, self.nope_dim :]", "[:, : self.v_dim]"),
    "the latent is not normalised": ("mla.py", "rms_norm(c, self.kv_norm, self.epsilon)",
                                     "c * self.kv_norm"),
    "MLA's norms have the layer's epsilon": ("mla.py", "epsilon: float = 1e-6",
                                             "epsilon: float = 1e-5"),
    "the softmax factor is forgotten": ("mla.py", "** -0.5 * self.softmax_factor", "** -0.5"),
    "absorbed queries have no positions": ("mla.py", "(nope, q.rope), axis=2",
                                           "(nope, 0 * q.rope), axis=2"),
    "softmax over all experts (C5)": (
        "routing.py",
        "softmax(np.take_along_axis(logits, experts, axis=1))",
        "np.take_along_axis(softmax(logits), experts, axis=1)",
    ),
    "excluded groups are zero (C9)": (
        "routing.py",
        "places = top_k(np.take_along_axis(biased, candidates, axis=1), k)",
        "inside = np.isin(np.arange(num_experts), candidates)\n"
        "    candidates = np.broadcast_to(np.arange(num_experts), biased.shape)\n"
        "    places = top_k(np.where(inside, biased, 0.0), k)",
    ),
    "weights include the bias": ("routing.py", "np.take_along_axis(scores, experts, axis=1)",
                                 "np.take_along_axis(biased, experts, axis=1)"),
    "groups count by their best": ("routing.py", "top_k(grouped, 2), axis=2",
                                   "top_k(grouped, 1), axis=2"),
    "groups count without the bias": ("routing.py", "grouped = biased.reshape",
                                      "grouped = scores.reshape"),
    "kept groups are not in order": ("routing.py", "np.sort(top_k(best_two, kept_groups), axis=1)",
                                     "top_k(best_two, kept_groups)"),
    "weights are not normalised": ("routing.py", "weights / np.where(total == 0, 1.0, total)",
                                   "weights"),
    "no score at all is NaN": ("routing.py", "np.where(total == 0, 1.0, total)", "total"),
    "ties take the highest index": (
        "selection.py",
        'np.argsort(~ascending, axis=-1, kind="stable")',
        "np.argsort(ascending, axis=-1, kind=\"stable\")[..., ::-1]",
    ),
    "-NaN is the smallest": ("selection.py", "np.where(np.isnan(x), np.nan, x)", "x"),
    "the gate is clamped below": ("activations.py", "np.minimum(gate_up[..., 0::2], limit)",
                                  "np.clip(gate_up[..., 0::2], -limit, limit)"),
    "the up is clamped above only": ("activations.py", "np.clip(gate_up[..., 1::2], -limit, limit)",
                                     "np.minimum(gate_up[..., 1::2], limit)"),
    "gate and up are exchanged": ("mlp.py", "silu(linear(x, self.gate)) * linear(x, self.up)",
                                  "silu(linear(x, self.up)) * linear(x, self.gate)"),
    "an expert's bias is forgotten": ("mlp.py", "self.limit), self.down, self.down_bias",
                                      "self.limit), self.down"),
    "the shared expert is forgotten": ("mixture.py", "routed if self.shared is None else",
                                       "routed if True else"),
    "weights are those of the first choice": ("mixture.py", "routing.weights[tokens, places, None]",
                                              "routing.weights[tokens, 0 * places, None]"),
    "epsilon is outside the root": ("norm.py", "np.sqrt(mean_square + epsilon)",
                                    "(np.sqrt(mean_square) + epsilon)"),
    "the MLP sees what the attention saw": ("layer.py", "self.mlp(rms_norm(h,",
                                            "self.mlp(rms_norm(x,"),
    "values are in blocks along the head": (
        "quantised_attention.py",
        "np.moveaxis(fake_quantise(np.moveaxis(v, 0, -1), formats.v, formats.rule), -1, 0)",
        "fake_quantise(v, formats.v, formats.rule)",
    ),
    "weights are quantised after the division": ("quantised_attention.py",
                                                 "np.where(largest == 0, 1.0, largest)",
                                                 "np.ones_like(largest)"),
    "queries stay exact": ("quantised_attention.py",
                           "q = fake_quantise(q, formats.q, formats.rule)", "pass"),
    "a size of 0 passes": ("shapes.py", "size > 0 or axis in _MAY_BE_EMPTY", "True"),
    "no tokens are refused": ("shapes.py", "size > 0 or axis in _MAY_BE_EMPTY", "size > 0"),
}  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("fault", MUTATIONS)
def test_a_planted_fault_is_found(fault, tmp_path):
    name, old, new = MUTATIONS[fault]
    plant(tmp_path, f"layers/{name}", old, new)
    (finder,) = (tests for tests, files in FINDERS.items() if name in files)
    run = run_golden_tests(tmp_path, f"layers_{finder}.py")
    assert run.returncode == 1, f"no test failed with this fault planted:\n{run.stdout[-2000:]}"
    assert "AssertionError" in run.stdout or "ValueError" in run.stdout
