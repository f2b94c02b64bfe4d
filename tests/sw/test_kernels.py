"""Kernels on the simulator: every bit as the numpy model says, and near float64."""

import numpy as np
import pytest

from poblano.config import load
from poblano_flow.kernel_run import run_on_simulator
from poblano_golden.blocks import quantise
from poblano_golden.errors import PoblanoError
from poblano_golden.formats import MXINT8
from poblano_golden.kernels.attention import attention
from poblano_golden.kernels.routing import route, route_groups
from poblano_golden.kernels.row_sums import RowSums
from poblano_golden.vector import valid_columns
from poblano_sw.kernels.catalogue import CATALOGUE, workload

BENCH, TINY = load("bench", []), load("tiny", [])
LENGTHS = (1, 31, 32, 33, 127, 128, 129, 1000)
EXACT = 5e-7
"""Relative error of kernels without MX blocks."""


def check(configuration, name, shape, **options):
    ran = run_on_simulator(workload(configuration, name, shape, **options))
    assert not ran.wrong
    assert np.isfinite(ran.relative_error)
    return ran


@pytest.mark.parametrize("length", LENGTHS)
def test_attention_of_any_length(length):
    shape = {"tokens": length, "heads": 1, "rows": 3, "chunk": 64, "window": 100, "sinks": 1}
    ran = check(BENCH, "attention_decode", shape)
    assert ran.relative_error < 0.05


@pytest.mark.parametrize("length", [1, 31, 33, 129])
def test_prefill_of_any_length(length):
    shape = {"tokens": length, "heads": 1, "tile": 32, "chunk": 64, "window": 40, "sinks": 1}
    ran = check(BENCH, "attention_prefill", shape)
    assert ran.relative_error < 0.05


@pytest.mark.parametrize("fmt", ["mxfp8_e4m3", "mxint8"])
def test_attention_on_the_smallest_slice(fmt):
    shape = {"tokens": 70, "heads": 2, "rows": 2, "head": 32, "chunk": 32}
    check(TINY, "attention_decode", shape, fmt=fmt)


@pytest.mark.parametrize("configuration", [TINY, BENCH], ids=["tiny", "bench"])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", ["softmax", "rms_norm"])
def test_rows_of_any_length(configuration, name, length):
    ran = check(configuration, name, {"rows": 2, "cols": length})
    assert ran.relative_error < EXACT


@pytest.mark.parametrize("head", [2, 30, 64, 66])
@pytest.mark.parametrize("name", ["rope_halves", "rope_pairs"])
def test_rotations_of_any_head(name, head):
    assert check(TINY, name, {"rows": 5, "head": head}).relative_error < EXACT


@pytest.mark.parametrize("seed", [1, 2])
def test_experts_are_fetched_by_their_number(seed):
    shape = {"hidden": 96, "intermediate": 160, "experts": 7, "chosen": 3, "piece": 64}
    ran = check(TINY, "moe", shape, seed=seed, fmt="mxfp8_e4m3")
    assert ran.relative_error < 0.5
    gathers = [span for span in ran.trace.spans if span.mnemonic == "load.gather"]
    pieces = 2 * 3 + 2  # gate, up, down
    assert len(gathers) == 3 * (3 + pieces)


def test_only_chosen_experts_move():
    shape = {"hidden": 96, "intermediate": 96, "experts": 64, "chosen": 2, "piece": 96}
    work = workload(TINY, "moe", shape, fmt="mxfp8_e4m3")
    moved = sum(run.length * run.count for tensor, _ in work.inputs for run in tensor.runs())
    assert work.port_bytes < moved / 20


def attend(valid, k, v, **options):
    q = np.ones((len(valid), 32), np.float32)
    blocks = [quantise(np.ascontiguousarray(x), MXINT8, "even") for x in (q, k, v.T)]
    return attention(
        *blocks, valid, scale=0.2, weights=MXINT8, rule="even", sums=RowSums(4, 4), **options
    )


@pytest.mark.parametrize("sink", [None, np.zeros(2, np.float32)], ids=["plain", "sink"])
@pytest.mark.parametrize("chunk", [None, 32])
def test_a_row_that_sees_no_key_gives_zeros(sink, chunk):
    numbers = np.random.default_rng(1).standard_normal((40, 32), np.float32)
    valid = np.stack([np.zeros(40, bool), np.ones(40, bool)])
    found = attend(valid, numbers, numbers, sink=sink, chunk=chunk)
    assert not found[0].any()
    assert np.isfinite(found[1]).all()
    assert found[1].any()


@pytest.mark.parametrize("chunk", [None, 32])
def test_a_nan_stays_in_the_rows_that_see_it(chunk):
    numbers = np.random.default_rng(1).standard_normal((40, 32), np.float32)
    keys = numbers.copy()
    keys[35] = np.nan
    valid = valid_columns(40, 40, 1, 1, 0)
    found = attend(valid, keys, numbers, chunk=chunk)
    assert np.isfinite(found[:35]).all()
    assert np.isnan(found[35:]).all()


def test_a_window_holds_as_many_keys_as_it_says():
    valid = valid_columns(201, 201, 1, 1, 128)
    assert np.flatnonzero(valid[200]).tolist() == list(range(73, 201))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("gelu", {}, "a kernel must be one of softmax, rms_norm"),
        ("softmax", {"columns": 3}, "the sizes of softmax are rows, cols, times; got 'columns'"),
        ("softmax", {"cols": 0}, "cols must be at least 1; got 0"),
        ("attention_decode", {"tokens": 0}, "tokens must be at least 1; got 0"),
        ("attention_decode", {"chunk": 33}, "a chunk must be a multiple of 32; got 33"),
        ("attention_decode", {"tokens": 99999, "chunk": 99999}, "of L1 at"),
        ("moe", {"chosen": 9}, "chosen must be at most experts, 8; got 9"),
        ("moe", {"piece": 48}, "piece must be a multiple of 32; got 48"),
        ("route_groups", {"groups": 7}, "256 experts must make 7 groups of 2 experts at least"),
        ("route_groups", {"kept": 1, "chosen": 33}, "1 groups of 8 must hold the 33 experts"),
        ("rope_pairs", {"head": 3}, "head must be even; got 3"),
    ],
)
def test_what_cannot_be_is_told(name, shape, message):
    with pytest.raises(PoblanoError) as error:
        workload(BENCH, name, shape)
    assert message in str(error.value)


def test_an_unknown_format_is_told():
    with pytest.raises(PoblanoError, match="a format must be one of mxfp4"):
        workload(BENCH, "softmax", fmt="fp8")


def test_a_wrong_byte_is_told():
    work = workload(TINY, "softmax", {"cols": 40})
    ran = run_on_simulator(work)
    ran.memory[work.outputs[0].tensor.runs()[0].address + 3] ^= 1
    [line] = work.wrong(ran.memory)
    assert "y: 1 bytes differ from the numpy model" in line


@pytest.mark.parametrize(
    "shape",
    [
        {"experts": 40, "groups": 5, "kept": 2, "chosen": 5},
        {"experts": 40, "groups": 5, "kept": 5, "chosen": 40},
        {"experts": 24, "groups": 1, "kept": 1, "chosen": 6},
        {"experts": 256, "groups": 8, "kept": 4, "chosen": 8},
    ],
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_groups_then_experts(shape, seed):
    assert check(TINY, "route_groups", shape, seed=seed).relative_error < EXACT


def test_excluded_groups_are_never_chosen():
    bias = np.array([[-0.1, -0.3, -0.5, -0.6]], np.float32)
    logits = np.full((1, 4), -100, np.float32)
    _, chosen = route_groups(logits, bias, 2, groups=2, kept=1, scale=1.0, sums=RowSums(4, 4))
    assert chosen.tolist() == [[0, 1]]


def test_among_equals_the_lowest_experts_are_chosen():
    nothing = np.zeros((1, 12), np.float32)
    weights, chosen = route_groups(
        nothing, nothing, 3, groups=3, kept=2, scale=3.0, sums=RowSums(4, 4)
    )
    assert chosen.tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(weights, 1.0, rtol=1e-6)


def test_softmax_comes_after_the_choice():
    logits = np.array([[2, 1, 0, -1]], np.float32)
    weights, chosen = route(logits - 1, np.ones((1, 4), np.float32), 2, RowSums(4, 4))
    assert chosen.tolist() == [[0, 1]]
    np.testing.assert_allclose(weights, [[0.7311, 0.2689]], atol=1e-4)


@pytest.mark.parametrize("tokens", [1, 2, 31, 32, 33, 64, 65, 100])
def test_a_token_is_appended_and_seen(tokens):
    shape = {"rows": 2, "tokens": tokens, "head": 32, "chunk": 64}
    assert check(TINY, "decode_step", shape).relative_error < 0.05


@pytest.mark.parametrize(("vocabulary", "piece"), [(1, 32), (33, 32), (200, 64), (256, 256)])
def test_the_best_token_of_all_pieces(vocabulary, piece):
    shape = {"vocabulary": vocabulary, "hidden": 64, "piece": piece}
    for seed in range(3):
        assert check(TINY, "best_token", shape, seed=seed).relative_error == 0


def test_an_mlp_streams_its_weights():
    ran = check(BENCH, "mlp", {"hidden": 320, "intermediate": 416, "piece": 64})
    assert ran.relative_error < 0.5


def test_latent_attention_takes_values_from_its_keys():
    shape = {"rows": 4, "tokens": 70, "head": 96, "values": 64, "chunk": 32}
    assert check(TINY, "mla_decode", shape).relative_error < 0.05


def test_naive_latent_attention_has_values_of_their_own():
    shape = {"heads": 2, "tokens": 33, "head": 96, "values": 32, "chunk": 32}
    assert check(TINY, "mla_naive", shape).relative_error < 0.05


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_kernel_runs_as_it_comes(name):
    check(BENCH, name, {"hidden": 96, "intermediate": 96} if name in ("mlp", "moe") else {})
