"""The variants' loaders as pure functions: which ids does rank r of W read in epoch e?"""

import math

import pytest
import torch
from torch.utils.data import DistributedSampler, Subset

from labkit.labs.duplicate_data import SPEC
from labkit.labs.duplicate_data.exercise import _judge
from labkit.labs.duplicate_data.programs import LOADERS, leaky_split, shared_split
from labkit.labs.reading import Sizes
from labkit.record.where import where_written

RANKS = [1, 2, 3, 4]
SIZED = [2, 3, 4, 5, 7, 16, 17, 30, 33, 61]
over_ranks = pytest.mark.parametrize("ranks", RANKS)
over_sizes = pytest.mark.parametrize("size", SIZED)


def read(name, size, ranks, batch=4, seed=0, epoch=0) -> list[list[list[int]]]:
    """Ids by rank, by batch."""
    data = list(range(size))
    loaders = [LOADERS[name](data, rank, ranks, batch, seed, epoch) for rank in range(ranks)]
    return [[ids.tolist() for ids in loader] for loader in loaders]


def flat(reading) -> list[int]:
    return [i for of_rank in reading for batch in of_rank for i in batch]


def steps(reading) -> set[int]:
    return {len(of_rank) for of_rank in reading}


@over_ranks
@over_sizes
@pytest.mark.parametrize("name", ["fixed", "no-set-epoch"])
def test_a_sampler_covers_the_data_with_the_least_padding_and_equal_steps(name, size, ranks):
    for batch in (1, 4, 7):
        reading = read(name, size, ranks, batch)
        assert set(flat(reading)) == set(range(size))
        assert len(flat(reading)) == size + -size % ranks
        assert steps(reading) == {math.ceil(math.ceil(size / ranks) / batch)}


@over_ranks
@over_sizes
@pytest.mark.parametrize("name", ["broken", "overlapping"])
def test_without_a_sampler_every_rank_reads_everything(name, size, ranks):
    for of_rank in read(name, size, ranks):
        assert sorted(flat([of_rank])) == list(range(size))


@over_ranks
def test_broken_ranks_read_the_same_order_and_overlapping_ones_their_own(ranks):
    assert len({str(of_rank) for of_rank in read("broken", 61, ranks)}) == 1
    assert len({str(of_rank) for of_rank in read("overlapping", 61, ranks)}) == ranks


@over_ranks
def test_every_epoch_comes_in_a_new_order_but_without_set_epoch(ranks):
    for name in ("broken", "overlapping", "fixed", "double-sharded"):
        assert read(name, 61, ranks, epoch=0) != read(name, 61, ranks, epoch=1), name
    assert read("no-set-epoch", 61, ranks, epoch=0) == read("no-set-epoch", 61, ranks, epoch=1)


@over_ranks
def test_no_epoch_of_a_rank_is_another_epoch_of_another(ranks):
    orders = [str(of_rank) for epoch in range(10) for of_rank in read("overlapping", 61, ranks, epoch=epoch)]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("name", ["broken", "overlapping", "fixed", "no-set-epoch", "double-sharded"])
def test_the_seed_decides_the_order(name):
    assert read(name, 61, 3, seed=1) == read(name, 61, 3, seed=1) != read(name, 61, 3, seed=2)


def double_shards(size, ranks, epoch=0) -> set[int]:
    """The ids of a share of a share, from the indices alone."""
    kept = set()
    for rank in range(ranks):
        sampler = DistributedSampler(range(size), ranks, rank, seed=0)
        sampler.set_epoch(epoch)
        kept |= set(list(sampler)[rank::ranks])
    return kept


@over_ranks
@over_sizes
def test_double_sharding_reads_the_share_of_a_share_in_equal_steps(size, ranks):
    for batch in (1, 2, 3, 4, 8):
        reading = read("double-sharded", size, ranks, batch)
        assert len(steps(reading)) == 1
        extra = set(flat(reading)) - double_shards(size, ranks)
        assert double_shards(size, ranks) <= set(flat(reading)) and len(extra) < ranks  # a sample a rank to even the steps


@pytest.mark.parametrize(("size", "ranks"), [(16, 2), (16, 4), (36, 3), (144, 4)])
def test_double_sharding_covers_one_part_in_w_where_w_squared_divides_the_data(size, ranks):
    assert len(set(flat(read("double-sharded", size, ranks)))) * ranks == size


def test_double_sharding_covers_449_of_the_1797_digits_on_4_ranks():
    assert len(set(flat(read("double-sharded", 1797, 4, batch=32)))) == 449


@over_ranks
@over_sizes
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_a_shared_split_holds_the_same_samples_out_on_every_rank_and_leaves_some(size, ranks, share):
    splits = [shared_split(list(range(size)), share, seed=3, rank=rank) for rank in range(ranks)]
    training, validation = (
        [set(part[i] for i in range(len(part))) for part in parts] for parts in zip(*splits, strict=True)
    )
    assert all(t == training[0] for t in training) and all(v == validation[0] for v in validation)
    assert training[0] | validation[0] == set(range(size)) and not training[0] & validation[0]
    assert training[0] and len(validation[0]) == min(size - 1, round(share * size))


def test_a_leaky_split_holds_out_other_samples_on_each_rank():
    held_out = [frozenset(leaky_split(list(range(60)), 0.2, seed=3, rank=rank)[1].indices) for rank in range(4)]
    assert len(set(held_out)) == 4 and {len(h) for h in held_out} == {12}


def test_without_validation_the_data_are_whole():
    data = list(range(9))
    assert shared_split(data, 0.0, 3, 0)[0] is data and len(shared_split(data, 0.0, 3, 0)[1]) == 0


def test_loaders_leave_the_global_random_state_alone():
    """The loop must see the same random numbers whatever the variant."""
    for name in ("fixed", "no-set-epoch", "double-sharded"):
        before = torch.get_rng_state()
        LOADERS[name](Subset(range(9), range(9)), 0, 2, 4, 0, 0)
        assert torch.equal(torch.get_rng_state(), before), name


def test_shuffle_together_with_a_sampler_is_refused_by_torch():
    data = list(range(9))
    with pytest.raises(ValueError, match="sampler option is mutually exclusive with shuffle"):
        torch.utils.data.DataLoader(data, 4, shuffle=True, sampler=DistributedSampler(data, 2, 0))


@pytest.mark.parametrize("name", LOADERS)
def test_every_variant_shows_its_source_and_where_it_is_written(name):
    assert SPEC.source(name).startswith(f"def {LOADERS[name].__name__}(")
    assert where_written(LOADERS[name]).startswith("labkit/labs/duplicate_data/")


# What the exercise's checker makes of the order in which a loader reads


SIZES = [(64, 2, 8), (65, 2, 8), (103, 3, 8), (97, 4, 5), (30, 4, 8), (64, 1, 8), (3, 5, 2), (301, 4, 400)]
"""(samples, ranks, batch): N that W divides and that it does not, fewer samples than ranks, a batch larger than the data."""


def judged(case, name="fixed", spoil=lambda epochs: epochs) -> list[str]:
    size, ranks, batch = case
    epochs = {epoch: read(name, size, ranks, batch, epoch=epoch) for epoch in range(2)}
    return _judge(spoil(epochs), Sizes(size, ranks, batch))


@pytest.mark.parametrize("case", SIZES, ids=str)
def test_the_right_loader_has_no_finding_at_any_size(case):
    assert judged(case) == []


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("broken", "reads are repeats"),
        ("overlapping", "reads are repeats"),
        ("no-set-epoch", "epoch 1 comes in the order of epoch 0"),
        ("double-sharded", "samples are never read"),
    ],
)
def test_each_wrong_variant_has_its_finding_alone(name, finding):
    findings = judged((65, 2, 8), name)
    assert len(findings) == 1 and finding in findings[0]


def test_uneven_steps_and_large_batches_are_findings():
    def shorten(epochs):
        epochs[0][1] = [flat(epochs[0][1:])]
        return epochs

    findings = judged((65, 2, 8), spoil=shorten)
    assert len(findings) == 2
    assert "the ranks take [1, 5] steps" in findings[0] and "some would wait for ever" in findings[0]
    assert "a batch is larger than 8: it has 33 samples" in findings[1]
