"""The sampler goes on where training stopped, whatever the number of ranks; random generators too."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from labkit.errors import UsageError
from labkit.workloads.resumable import ResumableSampler, random_state, seed_everything, set_random_state, started

from ..quick import quick


def read(size, batch, ranks, *, epoch=0, consumed=0):
    """Global batches of what is left of an epoch, put together from the ranks' shares."""
    samplers = [ResumableSampler(size, batch, rank=rank, world_size=ranks, seed=3) for rank in range(ranks)]
    for sampler in samplers:
        sampler.load_state_dict({**sampler.state_dict(), "epoch": epoch, "consumed": consumed})
    return [list(shares) for shares in zip(*samplers, strict=True)]


def merged(shares):
    """The global batch that was dealt out: every W-th sample to each rank."""
    whole = [None] * sum(map(len, shares))
    for rank, share in enumerate(shares):
        whole[rank :: len(shares)] = share
    return whole


CASES = {"size": st.integers(1, 60), "batch": st.integers(6, 20), "ranks": st.integers(1, 6)}


@quick
@given(**CASES)
def test_each_sample_comes_once_an_epoch_and_shares_differ_by_one_at_most(size, batch, ranks):
    batches = read(size, batch, ranks)
    assert sorted(i for shares in batches for share in shares for i in share) == list(range(size))
    assert all(max(map(len, shares)) - min(map(len, shares)) <= 1 for shares in batches)


@quick
@given(**CASES)
def test_what_a_step_trains_on_does_not_depend_on_the_number_of_ranks(size, batch, ranks):
    assert [merged(shares) for shares in read(size, batch, ranks)] == [merged(s) for s in read(size, batch, 1)]


@quick
@given(**CASES)
def test_it_goes_on_where_it_stopped_on_another_number_of_ranks_too(size, batch, ranks):
    whole = [merged(shares) for shares in read(size, batch, 1)]
    sampler = ResumableSampler(size, batch, seed=3)
    for done in range(len(whole) + 1):
        assert len(sampler) == len(whole) - done
        assert [merged(s) for s in read(size, batch, ranks, consumed=sampler.consumed)] == whole[done:]
        sampler.advance()
    assert sampler.consumed == size  # and no further


def test_it_counts_what_was_trained_and_not_what_a_loader_fetched():
    sampler = ResumableSampler(10, 2)
    fetched = iter(sampler)
    next(fetched), next(fetched), next(fetched)
    sampler.advance()
    assert sampler.state_dict()["consumed"] == 2


def test_epochs_come_in_different_orders_and_seeds_too():
    one, two = read(50, 10, 1, epoch=0), read(50, 10, 1, epoch=1)
    assert one != two and list(ResumableSampler(50, 10, seed=4)) != list(ResumableSampler(50, 10, seed=3))


def test_the_size_of_a_step_is_that_of_all_ranks():
    sampler = ResumableSampler(10, 4, rank=1, world_size=3)
    sizes = []
    while len(sampler):
        sizes.append(sampler.global_size)
        sampler.advance()
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rank": 2, "world_size": 2}, "rank must be from 0"),
        ({"world_size": 5, "rank": 0}, "leaves some of 5 ranks no sample"),
        ({"num_samples": 0}, "num_samples=0"),
    ],
)
def test_a_sampler_that_cannot_be_is_refused(given, said):
    with pytest.raises(UsageError, match=said):
        ResumableSampler(**{"num_samples": 10, "global_batch": 4, **given})


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"num_samples": 11}, "num_samples=11, the sampler has 10"),
        ({"seed": 1}, "seed=1"),
        ({"consumed": 11}, "no place in 10 samples"),
        ({"epoch": -1}, "no place"),
    ],
)
def test_a_place_in_other_data_is_refused(place, said):
    sampler = ResumableSampler(10, 4)
    with pytest.raises(UsageError, match=said):
        sampler.load_state_dict({**sampler.state_dict(), **place})


def draws():
    return random.random(), float(np.random.rand()), float(torch.rand(()))


def test_every_generator_goes_on_where_it_was():
    seed_everything(1)
    state = random_state()
    first = draws()
    assert draws() != first
    set_random_state(state)
    assert draws() == first


def test_starting_a_loader_draws_a_number_and_setting_the_state_afterwards_undoes_that():
    """The trap: a loader draws a seed for its workers also when it has none."""
    seed_everything(1)
    state, first = random_state(), draws()
    loader = DataLoader([1, 2])
    set_random_state(state)
    iter(loader)
    assert draws()[2] != first[2]
    batches = started(loader, lambda: set_random_state(state))
    next(batches)
    assert draws() == first
