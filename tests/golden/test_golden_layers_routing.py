"""Routing: the order of its steps, ties, groups, what has no weight, and a loop for comparison."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poblano_golden import reductions
from poblano_golden.layers.routing import sigmoid_in_groups, softmax_of_chosen
from poblano_golden.layers.selection import argmax, top_k

INF, NAN = np.inf, np.nan


def logits_of(scores):
    """Return logits whose sigmoids are the scores."""
    p = np.array(scores, float)
    return np.log(p / (1 - p))


def test_case_c5():
    """Softmax over the chosen, not over all; the bias is part of the logits."""
    found = softmax_of_chosen(np.array([[2.0, 1, 0, -1]]), 2)
    assert found.experts.tolist() == [[0, 1]]
    np.testing.assert_allclose(found.weights, [[0.7311, 0.2689]], atol=5e-5)


def test_case_c9():
    """All biased scores are negative: an excluded group's experts still do not win."""
    scores, biased = np.full(4, 0.5), np.array([-0.1, -0.3, -0.5, -0.6])
    found = sigmoid_in_groups(logits_of(scores)[None], biased - scores, 2, 2, 1, 1.0)
    assert found.experts.tolist() == [[0, 1]]
    np.testing.assert_allclose(found.weights, [[0.5, 0.5]])


def test_excluded_groups_stay_out_even_of_minus_infinity():
    """Experts that a bias has switched off come after the others, but before excluded ones."""
    logits = np.array([[5.0, 5, 5, 9, 9, 9]])
    bias = np.array([0, 0, -INF, 0, -INF, -INF])
    found = sigmoid_in_groups(logits, bias, 3, 2, 1, 1.0)
    assert found.experts.tolist() == [[0, 1, 2]], "group 1 has but one expert, -infinity in sum"
    found = sigmoid_in_groups(logits, np.full(6, -INF), 3, 2, 1, 1.0)
    assert found.experts.tolist() == [[0, 1, 2]]


def test_the_bias_selects_and_does_not_weigh():
    scores = np.array([[0.9, 0.8, 0.1, 0.2]])
    found = sigmoid_in_groups(logits_of(scores), np.array([0, 0, 1.0, 1.0]), 2, 1, 1, 2.5)
    assert found.experts.tolist() == [[3, 2]]
    np.testing.assert_allclose(found.weights, np.array([[0.2, 0.1]]) / 0.3 * 2.5)


def test_a_group_counts_as_much_as_its_two_best():
    """Group 1 has the best expert, group 0 the best two, group 2 the best three."""
    scores = np.array([[0.8, 0.7, 0.1, 0.9, 0.1, 0.1, 0.6, 0.6, 0.6]])
    found = sigmoid_in_groups(logits_of(scores), np.zeros(9), 3, 3, 1, 1.0)
    assert found.experts.tolist() == [[0, 1, 2]]
    found = sigmoid_in_groups(logits_of(scores), np.zeros(9), 3, 3, 2, 1.0)
    assert found.experts.tolist() == [[0, 1, 6]]


def test_ties_take_the_lowest_index():
    for k in (1, 4, 8):
        equal = softmax_of_chosen(np.full((2, 8), 3.0), k)
        assert equal.experts.tolist() == [list(range(k))] * 2
        np.testing.assert_array_equal(equal.weights, 1 / k)
    equal = sigmoid_in_groups(np.zeros((1, 12)), np.zeros(12), 4, 4, 2, 2.0)
    assert equal.experts.tolist() == [[0, 1, 2, 3]]
    np.testing.assert_array_equal(equal.weights, 0.5)
    found = sigmoid_in_groups(np.array([[0.0, 0, 1, 1, 1, 1]]), np.zeros(6), 3, 3, 2, 1.0)
    assert found.experts.tolist() == [[2, 3, 4]], "of equal groups the first, of experts the first"


def test_a_row_of_minus_infinity_has_no_weight():
    row = np.full((1, 8), -INF)
    for found in (softmax_of_chosen(row, 4), sigmoid_in_groups(row, np.zeros(8), 4, 2, 1, 2.5)):
        assert found.experts.tolist() == [[0, 1, 2, 3]]
        np.testing.assert_array_equal(found.weights, np.zeros((1, 4)))
    some = softmax_of_chosen(np.array([[-INF, 2, -INF, 2]]), 3)
    assert some.experts.tolist() == [[1, 3, 0]]
    np.testing.assert_array_equal(some.weights, [[0.5, 0.5, 0]])


def test_a_nan_stays_in_its_token():
    logits = np.random.default_rng(2).standard_normal((3, 8))
    expected = softmax_of_chosen(logits, 3), sigmoid_in_groups(logits, np.zeros(8), 3, 4, 2, 1.0)
    logits[1, 5] = NAN
    found = softmax_of_chosen(logits, 3), sigmoid_in_groups(logits, np.zeros(8), 3, 4, 2, 1.0)
    for ours, before in zip(found, expected, strict=True):
        for after, original in zip(ours, before, strict=True):
            np.testing.assert_array_equal(after[[0, 2]], original[[0, 2]])
        assert ours.experts[1, 0] == 5
        assert np.isnan(ours.weights[1]).all()


def test_no_tokens():
    none = np.zeros((0, 8))
    for found in (softmax_of_chosen(none, 4), sigmoid_in_groups(none, np.zeros(8), 4, 2, 1, 2.5)):
        assert found.experts.shape == found.weights.shape == (0, 4)
        assert found.experts.dtype == np.int64


def in_loops(logits, bias, k, groups, kept_groups, scale):
    """Return DeepSeek's routing of one token with Python's stable sort."""
    scores = [1 / (1 + math.exp(-x)) for x in logits]
    biased = [s + b for s, b in zip(scores, bias, strict=True)]
    size = len(logits) // groups
    worth = [sum(sorted(biased[g * size : (g + 1) * size])[-2:]) for g in range(groups)]
    kept = sorted(range(groups), key=lambda g: -worth[g])[:kept_groups]
    allowed = [e for e in range(len(logits)) if e // size in kept]
    chosen = sorted(allowed, key=lambda e: -biased[e])[:k]
    total = sum(scores[e] for e in chosen)
    return chosen, [scores[e] / total * scale for e in chosen]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_sigmoid_in_groups_in_loops(data):
    """Logits and biases are few and round, so that ties are many."""
    groups = data.draw(st.integers(1, 4))
    size = data.draw(st.integers(2, 4))
    kept_groups = data.draw(st.integers(1, groups))
    k = data.draw(st.integers(1, kept_groups * size))
    few = st.sampled_from([-2.0, -1.0, 0.0, 1.0])
    row = st.lists(few, min_size=groups * size, max_size=groups * size)
    logits, bias = data.draw(row), data.draw(row)
    found = sigmoid_in_groups(np.array([logits]), np.array(bias), k, groups, kept_groups, 2.5)
    experts, weights = in_loops(logits, bias, k, groups, kept_groups, 2.5)
    assert found.experts[0].tolist() == experts
    np.testing.assert_allclose(found.weights[0], weights, rtol=1e-13)
    assert found.weights.sum() == pytest.approx(2.5)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([-3.0, -0.5, 0.0, 0.5, 20.0]), min_size=1, max_size=9), st.data())
def test_softmax_of_chosen_in_loops(logits, data):
    k = data.draw(st.integers(1, len(logits)))
    found = softmax_of_chosen(np.array([logits]), k)
    chosen = sorted(range(len(logits)), key=lambda e: -logits[e])[:k]
    powers = [math.exp(logits[e] - max(logits)) for e in chosen]
    assert found.experts[0].tolist() == chosen
    np.testing.assert_allclose(found.weights[0], np.array(powers) / sum(powers), rtol=1e-14)


def test_selection_orders_as_the_reductions_do():
    special = np.array([0.0, -0.0, INF, -INF, NAN, -NAN, 1, 1, -1, 1e-45], np.float32)
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.permuted(np.tile(special, (50, 1)), axis=1), special[None]])
    for k in (1, 4, 10):
        np.testing.assert_array_equal(top_k(x.astype(float), k), reductions.top_k(x, k)[1])
    np.testing.assert_array_equal(argmax(x.astype(float)), reductions.argmax(x))
    assert argmax(np.array([1.0, 1 + 2**-52, 1])) == 1, "float32 would not tell these apart"


BIAS = np.zeros(8)


def groups_of(k=2, groups=4, kept=2, logits=BIAS[None], bias=BIAS):
    return lambda: sigmoid_in_groups(logits, bias, k, groups, kept, 1.0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda: softmax_of_chosen(BIAS[None], 9),
            "k must be 1 to 8, the experts to choose from, not 9",
        ),
        (
            lambda: softmax_of_chosen(BIAS[None], 0),
            "k must be 1 to 8, the experts to choose from, not 0",
        ),
        (lambda: softmax_of_chosen(BIAS, 1), "logits must be [tokens, experts], not [8]"),
        (
            lambda: softmax_of_chosen(np.zeros((2, 0)), 1),
            "logits must be [tokens, experts], not [2, 0]",
        ),
        (groups_of(k=5), "k must be 1 to 4, the experts to choose from, not 5"),
        (groups_of(k=9, groups=1, kept=1), "k must be 1 to 8, the experts to choose from, not 9"),
        (groups_of(groups=3), "8 experts do not make 3 equal groups of at least 2"),
        (groups_of(groups=8), "8 experts do not make 8 equal groups of at least 2"),
        (groups_of(groups=0), "8 experts do not make 0 equal groups of at least 2"),
        (groups_of(kept=5), "kept_groups must be 1 to 4, the groups, not 5"),
        (groups_of(kept=0), "kept_groups must be 1 to 4, the groups, not 0"),
        (groups_of(bias=np.zeros(7)), "bias must be [8], not [7]"),
        (lambda: top_k(BIAS, 9), "k must be 1 to 8, the elements of a row, not 9"),
        (lambda: argmax(BIAS[:0]), "k must be 1 to 0, the elements of a row, not 1"),
        (
            lambda: top_k(BIAS.astype(np.float32), 1),
            "x must be a numpy array of float64, not float32",
        ),
    ],
)
def test_bad_input_is_refused_by_name(action, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        action()
