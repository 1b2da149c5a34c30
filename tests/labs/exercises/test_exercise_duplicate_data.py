"""Loaders that are wrong for some size, rank or epoch, each refused; right ones accepted, ten times on a busy machine."""

import itertools
import random

import pytest
import torch
from answers import each
from torch.utils.data import DataLoader, DistributedSampler, default_collate

import labkit

pytestmark = pytest.mark.ranks
LAB = labkit.lab("duplicate-data")


def order_of(data, seed, epoch):
    return torch.randperm(len(data), generator=torch.Generator().manual_seed(1000 * seed + epoch)).tolist()


def sampled(data, rank, world_size, batch, seed, epoch, **how):
    sampler = DistributedSampler(data, world_size, rank, seed=seed, **how)
    sampler.set_epoch(epoch)
    return DataLoader(data, batch, sampler=sampler)


def by_hand(data, rank, world_size, batch, seed, epoch):
    order = order_of(data, seed, epoch)
    order += (order * world_size)[: -len(order) % world_size]
    share = order[rank::world_size]
    for start in range(0, len(share), batch):
        yield default_collate([data[i] for i in share[start : start + batch]])


def in_blocks(data, rank, world_size, batch, seed, epoch):
    order = order_of(data, seed, epoch)
    order += (order * world_size)[: -len(order) % world_size]
    size = len(order) // world_size
    return DataLoader(data, batch, sampler=order[rank * size : (rank + 1) * size])


def broken(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, shuffle=True, generator=torch.Generator().manual_seed(seed + epoch))


def share_of(order, data, rank, world_size, batch):
    order += (order * world_size)[: -len(order) % world_size]
    return DataLoader(data, batch, sampler=order[rank::world_size])


def unless(holds, other=broken):
    """Right, unless something holds of (data, rank, world_size, batch, seed, epoch)."""
    return lambda *given: other(*given) if holds(*given) else sampled(*given)


THE_FIRST_SIZES = {(64, 2, 8), (65, 2, 8), (103, 3, 8), (97, 4, 5), (30, 4, 8), (64, 1, 8), (301, 4, 16)}


def of_one_epoch(number):
    """The order of another epoch than the one that is asked for."""
    return lambda data, rank, world_size, batch, seed, epoch: sampled(data, rank, world_size, batch, seed, number(epoch))


def for_so_many_calls(number):
    calls = itertools.count()
    return lambda *given: sampled(*given) if next(calls) < number else broken(*given)


def by_the_global_generator(data, rank, world_size, batch, seed, epoch):
    return share_of(torch.randperm(len(data)).tolist(), data, rank, world_size, batch)


def by_pythons_generator(data, rank, world_size, batch, seed, epoch):
    return share_of(random.sample(range(len(data)), len(data)), data, rank, world_size, batch)


KEPT = {}


def by_what_another_rank_left(data, rank, world_size, batch, seed, epoch):
    order = KEPT.setdefault((len(data), epoch, world_size), torch.randperm(len(data)).tolist())
    return share_of(list(order), data, rank, world_size, batch)


def drops_the_tail(data, rank, world_size, batch, seed, epoch):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    sampler.set_epoch(epoch)
    return DataLoader(data, batch, sampler=sampler, drop_last=True)


def drops_the_remainder(data, rank, world_size, batch, seed, epoch):
    return sampled(data, rank, world_size, batch, seed, epoch, drop_last=True)


def no_padding(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, sampler=order_of(data, seed, epoch)[rank::world_size])


def pads_a_whole_batch(data, rank, world_size, batch, seed, epoch):
    order = order_of(data, seed, epoch)
    order += (order * world_size * batch)[: -len(order) % (world_size * batch)]
    return DataLoader(data, batch, sampler=order[rank::world_size])


def other_ids(data, rank, world_size, batch, seed, epoch):
    for images, labels, ids in broken(data, rank, world_size, batch, seed, epoch):
        yield images, labels, (ids + rank) % len(data)


def a_shuffle_of_each_rank(data, rank, world_size, batch, seed, epoch):
    return share_of(order_of(data, seed + rank, epoch), data, rank, world_size, batch)


WRONG = {
    "made for the sizes of before": unless(lambda d, r, w, b, s, e: (len(d), w, b) not in THE_FIRST_SIZES),
    "right in epochs 0 and 1": unless(lambda d, r, w, b, s, e: e > 1),
    "wrong on rank 1 of several": unless(lambda d, r, w, b, s, e: r == 1),
    "wrong on the last rank": unless(lambda d, r, w, b, s, e: w > 1 and r == w - 1),
    "wrong from epoch 10 on": unless(lambda d, r, w, b, s, e: e >= 10),
    "wrong in epoch 2 alone": unless(lambda d, r, w, b, s, e: e == 2),
    "wrong for odd numbers of ranks": unless(lambda d, r, w, b, s, e: w > 1 and w % 2 == 1),
    "wrong on more than four ranks": unless(lambda d, r, w, b, s, e: w > 4),
    "wrong where ranks outnumber samples": unless(lambda d, r, w, b, s, e: w > len(d)),
    "wrong where a batch holds all": unless(lambda d, r, w, b, s, e: b >= len(d), other=pads_a_whole_batch),
    "right where the ranks divide the data": unless(lambda d, r, w, b, s, e: len(d) % w, other=no_padding),
    "right for the first 40 calls": for_so_many_calls(40),
    "one order for ever": of_one_epoch(lambda epoch: 0),
    "two orders in turn": of_one_epoch(lambda epoch: epoch % 2),
    "the last orders are one": of_one_epoch(lambda epoch: min(epoch, 9)),
    "the global generator of torch": by_the_global_generator,
    "the generator of python": by_pythons_generator,
    "what another rank of this process left": by_what_another_rank_left,
    "a shuffle of each rank's own": a_shuffle_of_each_rank,
    "every rank reads everything": broken,
    "drops last batches": drops_the_tail,
    "drops the remainder": drops_the_remainder,
    "does not pad": no_padding,
    "pads to whole batches": pads_a_whole_batch,
    "numbers samples otherwise": other_ids,
    "a batch of all ranks": lambda d, r, w, b, s, e: sampled(d, r, w, w * b, s, e),
}


@each(WRONG, quick_every=2)
def test_a_wrong_loader_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


@pytest.mark.parametrize("right", [sampled, by_hand, in_blocks])
def test_a_right_loader_is_accepted_on_a_busy_machine(right, busy):
    assert str(LAB.check(right)) == "Solved: every check passed."


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("right", [sampled, by_hand, in_blocks])
def test_a_right_loader_is_accepted_ten_times_on_a_busy_machine(right, busy):
    assert [str(LAB.check(right)) for _ in range(10)] == ["Solved: every check passed."] * 10
