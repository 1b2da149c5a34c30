"""FLOPs of a token and utilisation: known answers, and what each convention counts."""

import math

import pytest

from labkit.errors import UnknownName, UsageError
from labkit.theory.flops import (
    CAUSAL_ATTENTION,
    CONVENTIONS,
    EMBEDDING_COUNTED,
    FULL_ATTENTION,
    NO_ATTENTION,
    POSITIONS_COUNTED,
    WITH_RECOMPUTATION,
    Shape,
    convention,
    flops_per_token,
    mfu,
)

LLAMA_8B = Shape(layers=32, hidden=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256, gated=True)
LLAMA_70B = Shape(layers=80, hidden=8192, heads=64, kv_heads=8, ffn=28672, vocab=128256, gated=True)
GPT = Shape(layers=2, hidden=8, heads=2, kv_heads=2, ffn=32, vocab=100, gated=False, tied=True)


def test_seven_billion_parameters_at_18000_tokens_on_eight_h100_use_a_tenth_of_them():
    flops = flops_per_token(7e9, convention=NO_ATTENTION)
    value = mfu(tokens_per_s=18_000, flops_per_token=flops, peak_flops=989e12, num_devices=8)
    assert value == pytest.approx(0.0956, abs=5e-5)


def test_llama_3_70b_at_8k_costs_481_gflop_a_token_or_450_if_attention_is_causal():
    assert LLAMA_70B.flops_per_token(8192) == pytest.approx(481e9, rel=2e-3)
    assert LLAMA_70B.flops_per_token(8192, CAUSAL_ATTENTION) == pytest.approx(450e9, rel=2e-3)


def test_llama_3_8b_at_256k_reads_77_percent_or_42_of_one_speed():
    ratio = LLAMA_8B.flops_per_token(262_144) / LLAMA_8B.flops_per_token(262_144, CAUSAL_ATTENTION)
    assert ratio == pytest.approx(77 / 42, rel=0.01)


@pytest.mark.parametrize(("shape", "billions"), [(LLAMA_8B, 8.03), (LLAMA_70B, 70.55)])
def test_parameters_add_up_to_the_published_sizes(shape, billions):
    assert shape.num_params == pytest.approx(billions * 1e9, rel=1e-3)
    assert shape.num_params_matmul == shape.num_params - shape.vocab * shape.hidden


def test_weights_of_a_small_model_count_by_hand():
    attention, feed_forward = 4 * 8 * 8, 2 * 8 * 32
    assert GPT.num_params_layers == 2 * (attention + feed_forward)
    assert GPT.num_params_matmul == GPT.num_params == GPT.num_params_layers + 100 * 8


def test_each_convention_counts_what_its_formula_says():
    layers, head, attention = GPT.num_params_layers, 800, 2 * 8 * 16
    untied = Shape(layers=2, hidden=8, heads=2, kv_heads=2, ffn=32, vocab=100, gated=False, tied=False)
    weights = 6 * (layers + head)
    assert GPT.flops_per_token(16, NO_ATTENTION) == weights
    assert GPT.flops_per_token(16, FULL_ATTENTION) == weights + 12 * attention
    assert GPT.flops_per_token(16, CAUSAL_ATTENTION) == weights + 6 * attention
    assert GPT.flops_per_token(16, POSITIONS_COUNTED) == weights + 6 * 16 * 8 + 12 * attention
    assert untied.flops_per_token(16, EMBEDDING_COUNTED) == weights + 6 * head + 12 * attention
    assert GPT.flops_per_token(16, EMBEDDING_COUNTED) == weights + 12 * attention, "tied: counted once"
    assert GPT.flops_per_token(16, WITH_RECOMPUTATION) == 8 * layers + 16 * attention + 6 * head


def test_recomputation_costs_a_third_more_of_the_layers_alone():
    once, twice = LLAMA_70B.flops_per_token(8192), LLAMA_70B.flops_per_token(8192, WITH_RECOMPUTATION)
    assert 1.32 < twice / once < 4 / 3
    assert [name for name, one in CONVENTIONS.items() if one.is_hfu] == ["with_recomputation"]


def test_the_attention_term_matches_the_products_it_stands_for():
    scores_and_values = 2 * (2 * 16 * 8)  # queries × keys, then weights × values, for one token in one layer
    attention = GPT.flops_per_token(16, FULL_ATTENTION) - GPT.flops_per_token(16, NO_ATTENTION)
    assert attention == 3 * 2 * scores_and_values


def test_a_convention_is_found_by_name_and_an_unknown_one_refused_with_the_list():
    assert convention("6n_6lhs_causal") is CAUSAL_ATTENTION
    with pytest.raises(UnknownName, match="6n_12lhs"):
        convention("6n_12lsh")


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True])
@pytest.mark.parametrize("name", ["tokens_per_s", "flops_per_token", "peak_flops", "num_devices"])
def test_utilisation_refuses_what_is_not_a_finite_number_above_zero(name, value):
    given = {"tokens_per_s": 1.0, "flops_per_token": 1.0, "peak_flops": 1.0, "num_devices": 1} | {name: value}
    with pytest.raises(UsageError, match=f"{name} must be a finite number above 0; given {value!r}"):
        mfu(**given)


@pytest.mark.parametrize("value", [0, -7e9, math.nan])
def test_a_token_cannot_cost_no_weights(value):
    with pytest.raises(UsageError, match="num_params_matmul must be"):
        flops_per_token(value, convention=NO_ATTENTION)


def test_a_convention_says_what_it_still_needs():
    with pytest.raises(UsageError, match=r"6n_12lhs \(6N \+ 12·L·h·s\) needs layers, seq"):
        flops_per_token(1e9, hidden=8)
    with pytest.raises(UsageError, match="with_recomputation.*needs num_params_head"):
        flops_per_token(1e9, layers=1, hidden=8, seq=8, convention=WITH_RECOMPUTATION)
    with pytest.raises(UsageError, match="needs num_params_embedding"):
        flops_per_token(1e9, layers=1, hidden=8, seq=8, convention=EMBEDDING_COUNTED)


def test_a_shape_refuses_dimensions_that_do_not_divide_or_are_zero():
    with pytest.raises(UsageError, match="hidden must be a multiple of heads"):
        Shape(layers=1, hidden=10, heads=3, kv_heads=3, ffn=8, vocab=8, gated=False)
    with pytest.raises(UsageError, match="layers must be"):
        Shape(layers=0, hidden=8, heads=2, kv_heads=2, ffn=8, vocab=8, gated=False)


def test_twice_the_devices_halve_the_utilisation_of_one_speed():
    one = mfu(tokens_per_s=100, flops_per_token=1e9, peak_flops=1e12)
    assert mfu(tokens_per_s=100, flops_per_token=1e9, peak_flops=1e12, num_devices=2) == one / 2 == 0.05
