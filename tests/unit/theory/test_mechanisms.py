"""The mechanisms that are drawn, held against what they stand for: numbers that are summed, torch's sampler and scaler."""

import itertools

import numpy as np
import pytest
import torch
from torch.utils.data import DistributedSampler

from labkit.errors import UsageError
from labkit.theory.delay import mean_staleness, pushes_in_turn
from labkit.theory.input_model import expected_step, pipeline, store_share
from labkit.theory.loss_scale import scales
from labkit.theory.ring_steps import ring_states
from labkit.theory.sampling import dealt


@pytest.mark.parametrize("ranks", [2, 3, 4, 7])
def test_messages_of_the_ring_sum_real_numbers_on_every_rank(ranks):
    """The same messages, with numbers in place of sets of ranks."""
    own = np.random.default_rng(0).integers(0, 1000, (ranks, ranks))
    held = own.copy()
    states = ring_states(ranks)
    assert len(states) == 1 + 2 * (ranks - 1)
    for before, state in itertools.pairwise(states):
        assert sorted(each.source for each in state.sent) == sorted(each.target for each in state.sent) == list(range(ranks))
        carried = [(each, held[each.source, each.chunk]) for each in state.sent]
        for each, number in carried:
            assert each.target == (each.source + 1) % ranks
            held[each.target, each.chunk] = number + (held[each.target, each.chunk] if state.half == "reduce-scatter" else 0)
        expected = [[own[sorted(state.holds[r][c]), c].sum() for c in range(ranks)] for r in range(ranks)]
        assert (held == expected).all() and state.step == before.step + 1
    assert (held == own.sum(axis=0)).all()
    half = states[ranks - 1]
    assert [sum(half.whole(rank, chunk) for chunk in range(ranks)) for rank in range(ranks)] == [1] * ranks


def test_one_rank_is_no_ring():
    with pytest.raises(UsageError, match="2 ranks"):
        ring_states(1)


@pytest.mark.parametrize("samples", [1, 2, 10, 12, 17])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_samples_are_dealt_as_torch_s_sampler_deals_them(samples, ranks):
    theirs = [list(DistributedSampler(range(samples), ranks, rank, shuffle=True, seed=3)) for rank in range(ranks)]
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(3)).tolist()
    assert dealt(order, ranks) == theirs


def test_an_empty_order_is_refused():
    with pytest.raises(UsageError):
        dealt([], 2)


def test_the_scale_moves_as_torch_s_scaler_moves_it():
    finite = [True, True, False, True, True, True, False, False, True]
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0, growth_interval=2)
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    found = []
    for each in finite:
        optimizer.zero_grad()
        before, at = weight.item(), scaler.get_scale()
        scaler.scale(weight * (1.0 if each else float("inf"))).sum().backward()
        scaler.step(optimizer)
        scaler.update()
        found.append((at, weight.item() != before))
    assert scales(finite, first=64.0, growth_interval=2) == found


@pytest.mark.parametrize(
    ("prepare", "compute", "workers"), [(4.0, 1.0, 0), (4.0, 1.0, 1), (4.0, 1.0, 2), (2.0, 3.0, 2), (6.0, 1.0, 3)]
)
def test_a_pipeline_that_runs_takes_what_the_formula_says_for_a_step(prepare, compute, workers):
    made = pipeline(prepare, compute, workers, 60)
    took = (made[54].computed[0] - made[30].computed[0]) / 24  # whole rounds of 1, 2 or 3 workers
    assert took == pytest.approx(expected_step(prepare, compute, workers), rel=0.02)
    for before, after in itertools.pairwise(made):
        assert after.computed[0] >= max(before.computed[1], after.prepared[1])


def test_no_worker_is_further_ahead_than_it_may_be():
    made = pipeline(1.0, 10.0, 2, 20, prefetch=2)
    for number, batch in enumerate(made[4:], start=4):
        assert batch.prepared[0] >= made[number - 4].computed[0]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_workers_in_turn_are_as_stale_as_the_formula_says(workers):
    made = pushes_in_turn(workers, 40)
    assert np.mean([version - pulled for _, pulled, version in made]) == pytest.approx(mean_staleness(workers, 40))
    assert {version - pulled for _, pulled, version in made[workers:]} == {workers - 1}


def test_a_store_is_shared_in_equal_parts():
    assert store_share(100.0, 4) * 4 == 100.0
