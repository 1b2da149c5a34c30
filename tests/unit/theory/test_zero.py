"""The arithmetic of ZeRO beside the paper's own figures, and beside the claims that people make of it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.errors import UnknownName, UsageError
from labkit.theory.strategies import STRATEGIES, cheapest_fitting, expected_peak
from labkit.theory.zero import (
    GB,
    RECIPES,
    RESERVE_GB,
    STAGES,
    cheapest,
    choices,
    fewest_ranks,
    hsdp_state,
    hsdp_traffic,
    state,
    traffic,
    what_if,
)

from ..quick import quick

PARAMS, WORLD, KEPT = st.integers(1, 10**12), st.integers(1, 10**5), st.sampled_from(sorted(RECIPES))

RANKS = (1, 2, 3, 4, 5, 7, 8, 64, 1000)


def test_the_papers_own_figure_of_7_5_billion_parameters_on_64_devices():
    """Figure 1 of arXiv:1910.02054: 120, 31.4, 16.6 and 1.9 GB."""
    totals = [state(7.5e9, 64, stage, "mixed Adam").total / GB for stage in range(4)]
    assert [round(total, 1) for total in totals] == [120.0, 31.4, 16.6, 1.9]


@pytest.mark.parametrize("ranks", RANKS)
def test_bytes_of_state_by_stage_are_the_four_formulas(ranks):
    psi = 12_345_678
    by_stage = [state(psi, ranks, stage).total for stage in range(4)]
    formulas = [16 * psi, 8 * psi + 8 * psi / ranks, 4 * psi + 12 * psi / ranks, 16 * psi / ranks]
    assert by_stage == pytest.approx(formulas, rel=1e-14)
    mixed = [state(psi, ranks, stage, "mixed Adam").total for stage in range(4)]
    formulas = [16 * psi, 4 * psi + 12 * psi / ranks, 2 * psi + 14 * psi / ranks, 16 * psi / ranks]
    assert mixed == pytest.approx(formulas, rel=1e-14)


@pytest.mark.parametrize("ranks", RANKS)
def test_stage_3_sends_one_and_a_half_times_what_the_others_send(ranks):
    sent = [traffic(1e9, ranks, stage) for stage in range(4)]
    assert sent[0] == sent[1] == sent[2] == 2e9 * (ranks - 1) / ranks
    assert sent[3] == pytest.approx(1.5 * sent[0])


def test_hsdp_keeps_a_groups_share_and_sends_its_shard_alone_between_groups():
    assert hsdp_state(1e9, 16, 2).total == 16e9 / 8
    inside, between = hsdp_traffic(1e9, 16, 2)
    assert inside == 3e9 * 7 / 8 and between == 2 * (1e9 / 8) / 2
    with pytest.raises(UsageError, match="15 ranks and 2 replicas"):
        hsdp_state(1e9, 15, 2)


def test_72_billion_in_16_bits_under_zero_2_do_not_run_on_8_devices_of_80_gb():
    at_stage_2 = state(72e9, 8, 2, "mixed Adam")
    assert at_stage_2.parameters == 144 * GB
    assert not any(choice.fits for choice in choices(72e9, 8, 80 * GB))
    assert cheapest(72e9, 8, 80 * GB) is None


def test_405_billion_take_11_devices_for_the_weights_and_81_to_train():
    assert fewest_ranks(405e9, 80 * GB, kept="weights only") == 11
    assert fewest_ranks(405e9, 80 * GB, kept="mixed Adam") == 81
    assert state(405e9, 1, 0, "weights only").total == 810 * GB
    assert round(state(405e9, 64, 3, "mixed Adam").total / GB) == 101
    assert state(34e9, 4, 3, "mixed Adam").total / GB == 136
    assert state(34e9, 4, 2, "mixed Adam").total / GB == 187


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("params", [1e6, 7e9, 13e9, 405e9])
def test_the_fewest_devices_are_the_first_number_that_fits(stage, params):
    found = fewest_ranks(params, 80 * GB, stage)
    if found is None:
        assert state(params, 10**9, stage, "mixed Adam").total > 80 * GB
    else:
        assert state(params, found, stage, "mixed Adam").total <= 80 * GB
        assert found == 1 or state(params, found - 1, stage, "mixed Adam").total > 80 * GB


@quick
@given(params=PARAMS, ranks=WORLD, kept=KEPT)
def test_each_stage_keeps_no_more_than_the_one_before_and_all_shards_together_are_one_copy(params, ranks, kept):
    of_stages = [state(params, ranks, stage, kept) for stage in STAGES]
    totals = [one.total for one in of_stages]
    assert totals == sorted(totals, reverse=True)
    assert totals[3] * ranks == pytest.approx(totals[0], rel=1e-12)
    assert of_stages[1].optimizer_state * ranks == pytest.approx(of_stages[0].optimizer_state, rel=1e-12)
    assert (of_stages[1].parameters, of_stages[1].gradients) == (of_stages[0].parameters, of_stages[0].gradients)


@quick
@given(params=PARAMS, shards=st.integers(1, 500), replicas=st.integers(1, 500), kept=KEPT)
def test_hsdp_keeps_what_its_group_alone_would_and_sends_between_groups_an_all_reduce_of_the_shard(
    params, shards, replicas, kept
):
    assert hsdp_state(params, shards * replicas, replicas, kept) == state(params, shards, 3, kept)
    inside, between = hsdp_traffic(params, shards * replicas, replicas)
    assert inside == traffic(params, shards, 3)
    assert between == pytest.approx(traffic(params / shards, replicas, 0), rel=1e-12)


@quick
@given(params=PARAMS, memory=st.floats(1e6, 1e13), reserve=st.floats(0, 1e12), stage=st.sampled_from(STAGES), kept=KEPT)
def test_the_fewest_devices_fit_and_one_less_does_not(params, memory, reserve, stage, kept):
    found = fewest_ranks(params, memory, stage, kept=kept, reserve_bytes=reserve)
    fits = [state(params, n, stage, kept).total <= memory - reserve for n in (found or 10**9, (found or 10**9) - 1 or 1)]
    assert fits == [found is not None, found == 1]


@quick
@given(params=PARAMS, ranks=WORLD, memory=st.floats(1e6, 1e13), kept=KEPT)
def test_the_cheapest_stage_fits_and_no_other_that_fits_sends_less(params, ranks, memory, kept):
    fitting = [one for one in choices(params, ranks, memory, kept=kept) if one.state_bytes <= memory]
    found = cheapest(params, ranks, memory, kept=kept)
    assert (found is None) == (not fitting)
    if found is not None:
        assert found in fitting
        assert all((found.sent_elements, found.stage) <= (one.sent_elements, one.stage) for one in fitting)


def test_the_cheapest_is_the_lowest_stage_among_those_that_send_the_least():
    assert cheapest(1e9, 8, 80 * GB).stage == 0
    assert cheapest(7e9, 8, 80 * GB).stage == 1
    assert cheapest(34e9, 64, 80 * GB).stage == 2
    assert cheapest(34e9, 8, 80 * GB).stage == 3
    assert cheapest(7e9, 8, 80 * GB, reserve_bytes=79 * GB) is None


def test_the_lowest_stage_on_80_gb_that_the_deck_shows():
    """By model, on 8, 64 and 1,024 devices, with what is set aside; None: even stage 3 does not fit."""
    shown = {7e9: (1, 1, 1), 34e9: (3, 3, 2), 72e9: (None, 3, 3), 405e9: (None, None, 3)}
    for params, stages in shown.items():
        found = [cheapest(params, devices, 80 * GB, reserve_bytes=RESERVE_GB * GB) for devices in (8, 64, 1024)]
        assert tuple(choice and choice.stage for choice in found) == stages


def test_what_if_asks_of_every_model_and_number_of_devices():
    found = what_if()
    assert len(found) == 6 * 8
    assert found[("405 B", 64)] is None and found[("405 B", 128)].stage == 3
    assert all(choice is None or choice.state_bytes <= 80 * GB for choice in found.values())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((1e9, 4, 5), UsageError, "stage must be one of 0"),
        ((0, 4, 1), UsageError, "params must be more than 0; given 0"),
        ((math.nan, 4, 1), UsageError, "params must be more than 0; given nan"),
        ((1e9, 0, 1), UsageError, "ranks must be a whole number from 1 on; given 0"),
        ((1e9, 2.5, 1), UsageError, "ranks must be a whole number"),
        ((1e9, 4, 1, "fp8 Adam"), UnknownName, "fp8 Adam"),
    ],
)
def test_what_cannot_be_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        state(*arguments)


def test_on_gloo_the_reduce_scatter_counts_twice():
    assert [STRATEGIES[name].units("gloo") for name in ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")] == [2, 3, 3, 4]
    assert [STRATEGIES[name].units("nccl") for name in ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")] == [2, 3, 2, 3]


def test_the_cheapest_strategy_that_fits_depends_on_the_room_and_on_the_backend():
    peaks = {name: expected_peak(name, 1000, 100, 4) for name in ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")}
    assert cheapest_fitting(peaks, 16_000, "gloo") == "ddp"
    assert cheapest_fitting(peaks, 10_000, "gloo") == "zero1"
    assert cheapest_fitting(peaks, 10_000, "nccl") == "fsdp2-no-reshard"
    assert cheapest_fitting(peaks, 8_000, "gloo") == "fsdp2-no-reshard"
    assert cheapest_fitting(peaks, 6_000, "gloo") == "fsdp2-reshard"
    assert cheapest_fitting(peaks, 1_000, "gloo") is None
