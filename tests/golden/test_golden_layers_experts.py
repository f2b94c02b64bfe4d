"""Activations, MLPs and mixtures: hand-computed values, and who may reach whom."""

import math
import re

import numpy as np
import pytest

from poblano_golden.layers.activations import clamped_swiglu, sigmoid, silu
from poblano_golden.layers.linear import linear
from poblano_golden.layers.mixture import GroupRouter, Mixture, SoftmaxRouter, combine
from poblano_golden.layers.mlp import ClampedMlp, GatedMlp
from poblano_golden.layers.routing import Routing

INF, NAN = np.inf, np.nan


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def test_sigmoid_and_silu():
    x = np.array([0.0, 1, -1, 40, -40, 1000, -1000, INF, -INF])
    expected = [0.5, 1 / (1 + math.exp(-1)), 1 / (1 + math.e), 1, math.exp(-40), 1, 0, 1, 0]
    np.testing.assert_allclose(sigmoid(x), expected, rtol=1e-15)
    np.testing.assert_allclose(silu(x[:-1]), x[:-1] * expected[:-1], rtol=1e-15)
    assert np.isnan(silu(np.array([-INF, NAN]))).all()


@pytest.mark.parametrize(
    ("gate", "up", "clamped_gate", "clamped_up"),
    [
        (1, 2, 1, 2),
        (7, 7, 7, 7),
        (7.5, 7.5, 7, 7),
        (INF, -INF, 7, -7),
        (-9, -9, -9, -7),
        (-9, -1, -9, -1),
        (0, 3, 0, 3),
    ],
)
def test_clamped_swiglu(gate, up, clamped_gate, clamped_up):
    """The gate is clamped above only; gates are the even columns."""
    found = clamped_swiglu(np.array([[gate, up, 0.5, 1.0]]))
    swish = clamped_gate / (1 + math.exp(-1.702 * clamped_gate))
    second = 0.5 / (1 + math.exp(-0.851)) * 2
    np.testing.assert_allclose(found, [[swish * (clamped_up + 1), second]], rtol=1e-14)


def test_clamps_let_nan_pass():
    found = clamped_swiglu(np.array([[NAN, 1, 1, NAN, 1, 1]]))
    assert np.isnan(found).tolist() == [[True, True, False]]


def test_gated_mlp_in_loops():
    gate, up, down = random(3, 4), random(3, 4, seed=1), random(4, 3, seed=2)
    x = random(2, 4, seed=3)
    found = GatedMlp(gate, up, down)(x)
    for token, row in zip(x, found, strict=True):
        inner = [
            float(g @ token) / (1 + math.exp(-float(g @ token))) * float(u @ token)
            for g, u in zip(gate, up, strict=True)
        ]
        np.testing.assert_allclose(row, down @ inner, rtol=1e-13)


def test_clamped_mlp_in_loops():
    weights = random(6, 4) * 5, random(6, seed=1), random(4, 3, seed=2), random(4, seed=3)
    gate_up, gate_up_bias, down, down_bias = weights
    x = random(5, 4, seed=4) * 3
    found = ClampedMlp(*weights)(x)
    clamps = 0
    for token, row in zip(x, found, strict=True):
        inner = []
        for i in range(3):
            gate = float(gate_up[2 * i] @ token + gate_up_bias[2 * i])
            up = float(gate_up[2 * i + 1] @ token + gate_up_bias[2 * i + 1])
            clamps += gate > 7 or abs(up) > 7
            gate, up = min(gate, 7), min(max(up, -7), 7)
            inner.append(gate / (1 + math.exp(-1.702 * gate)) * (up + 1))
        np.testing.assert_allclose(row, down @ inner + down_bias, rtol=1e-12)
    assert clamps > 5


def times(factor):
    return lambda x: x * factor


def test_combine_weighs_every_token_with_its_own_experts():
    x = np.array([[1.0, 2], [3, 4], [5, 6]])
    experts = np.array([[0, 2], [2, 1], [1, 0]])
    weights = np.array([[0.5, 2], [1, 10], [0, 3]])
    found = combine(x, Routing(experts, weights), [times(1), times(10), times(100)])
    np.testing.assert_allclose(found, x * np.array([[200.5], [200], [3]]))


def test_an_expert_sees_only_its_tokens():
    """A broken expert, or a NaN in a token, reaches nobody else."""
    x = random(4, 3)
    routing = Routing(np.array([[0], [1], [0], [2]]), np.ones((4, 1)))
    found = combine(x, routing, [times(1), times(NAN), times(1), times(INF)])
    assert np.isnan(found).all(axis=1).tolist() == [False, True, False, False]
    np.testing.assert_array_equal(found[[0, 2, 3]], x[[0, 2, 3]])
    seen = []
    combine(x, routing, [lambda y: seen.append(len(y)) or y] * 4)
    assert seen == [2, 1, 1], "expert 3 is not run"


def test_mixture_adds_the_shared_expert():
    x = random(6, 4)
    router = SoftmaxRouter(random(3, 4, seed=1), random(3, seed=2), 2)
    experts = [times(1), times(2), times(3)]
    logits = x @ router.weight.T + router.bias
    expected = np.zeros_like(x)
    for token in range(6):
        dropped = int(np.argmin(logits[token]))
        powers = {e: math.exp(logits[token, e]) for e in range(3) if e != dropped}
        factor = sum((e + 1) * p for e, p in powers.items()) / sum(powers.values())
        expected[token] = x[token] * factor
    np.testing.assert_allclose(Mixture(router, experts)(x), expected, rtol=1e-13)
    shared = Mixture(router, experts, shared=times(-1))(x)
    np.testing.assert_allclose(shared, expected - x, rtol=1e-12)


@pytest.mark.parametrize(
    "router",
    [
        SoftmaxRouter(random(4, 3), random(4), 2),
        GroupRouter(random(4, 3), random(4), 2, 2, 1, 2.5),
    ],
)
def test_a_token_does_not_depend_on_the_others(router):
    experts = [GatedMlp(random(5, 3), random(5, 3, seed=e), random(3, 5)) for e in range(4)]
    mixture = Mixture(router, experts, experts[0])
    x = random(7, 3, seed=9)
    expected = mixture(x)
    x[3, 1] = NAN
    found = mixture(x)
    others = np.delete(np.arange(7), 3)
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-13)
    assert np.isnan(found[3]).all()
    assert mixture(x[:0]).shape == (0, 3)


TOKENS = np.zeros((2, 3))


def combined(experts, weights):
    return lambda: combine(TOKENS, Routing(np.array(experts), np.array(weights)), [times(1)] * 4)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (combined([[0], [4]], [[1.0], [1.0]]), "experts must be 0 to 3, not 4"),
        (combined([[0], [-1]], [[1.0], [1.0]]), "experts must be 0 to 3, not -1"),
        (combined([[0]], [[1.0]]), "weights must be [2, k], not [1, 1]"),
        (combined([[0], [1]], [[1.0, 2], [1, 2]]), "experts must be [2, 2], not [2, 1]"),
        (
            combined([[0.0], [1.0]], [[1.0], [1.0]]),
            "experts must be a numpy array of int64, not float64",
        ),
        (
            lambda: GatedMlp(np.zeros((3, 4)), np.zeros((3, 5)), np.zeros((4, 3))),
            "up must be [3, 4], not [3, 5]",
        ),
        (
            lambda: GatedMlp(np.zeros((3, 4)), np.zeros((3, 4)), np.zeros((3, 4))),
            "down must be [4, 3], not [3, 4]",
        ),
        (
            lambda: ClampedMlp(np.zeros((5, 4)), np.zeros(5), np.zeros((4, 3)), np.zeros(4)),
            "gate_up must be [6, 4], not [5, 4]",
        ),
        (
            lambda: ClampedMlp(np.zeros((6, 4)), np.zeros(6), np.zeros((4, 3)), np.zeros(3)),
            "down_bias must be [4], not [3]",
        ),
        (lambda: linear(TOKENS, np.zeros((5, 4))), "x must be [tokens, 4], not [2, 3]"),
        (lambda: linear(TOKENS, np.zeros((5, 3)), np.zeros(3)), "bias must be [5], not [3]"),
        (
            lambda: linear(TOKENS, np.zeros((5, 3), np.float32)),
            "weight must be a numpy array of float64, not float32",
        ),
    ],
)
def test_bad_input_is_refused_by_name(action, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        action()
