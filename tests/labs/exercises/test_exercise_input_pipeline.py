"""Loaders that read wrongly in some epoch, or keep a device waiting in one, each refused; right ones accepted when busy."""

import itertools
import threading

import pytest
import torch
from answers import each
from torch.utils.data import DataLoader, Dataset, DistributedSampler

import labkit
from labkit.labs.input_pipeline import exercise, programs
from labkit.workloads.scans import DiskCache

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(300)]
LAB = labkit.lab("input-pipeline")


def sampled(data, rank, world_size, batch, seed, **how):
    return DataLoader(data, batch, sampler=DistributedSampler(data, world_size, rank, seed=seed), **how)


def three_workers(data, rank, world_size, batch, seed):
    return sampled(data, rank, world_size, batch, seed, num_workers=3, persistent_workers=True)


def cached(data, rank, world_size, batch, seed):
    sampler = DistributedSampler(data, world_size, rank, seed=seed)
    return DataLoader(DiskCache(data), batch, sampler=sampler)


class InMemory(Dataset):
    """Samples kept in this process once they are prepared."""

    def __init__(self, data):
        self.data, self.kept = data, {}

    def __len__(self):
        return len(self.data)

    def __getitems__(self, indices):
        missing = [i for i in indices if i not in self.kept]
        self.kept |= zip(missing, self.data.__getitems__(missing) if missing else [], strict=True)
        return [self.kept[i] for i in indices]


def kept_in_memory(data, rank, world_size, batch, seed):
    return sampled(InMemory(data), rank, world_size, batch, seed)


class Epochs:
    """A loader whose epochs differ: `of_epoch` gives the batches of each, counted from 0.

    `sampler` hears of epochs, as that of a DataLoader does.
    """

    def __init__(self, loader, of_epoch):
        self.loader, self.of_epoch, self.passes = loader, of_epoch, itertools.count()
        self.sampler = loader.sampler

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return iter(self.of_epoch(next(self.passes), self.loader))


def epochs(of_epoch, right=three_workers):
    return lambda *given: Epochs(right(*given), of_epoch)


def repeated(number, loader):
    """From the third epoch on one batch again and again, as long as an epoch is."""
    if number < 2:
        return loader
    batches = list(loader)
    return batches[:1] * len(batches)


def half(number, loader):
    return loader if number < 2 else list(loader)[: (len(loader) + 1) // 2]


def nothing(number, loader):
    return loader if number < 2 else []


def twice(number, loader):
    return loader if number < 2 else [*loader, *loader]


def slow_from(first):
    """Cached, and from some epoch on prepared again by the reading process."""

    def my_loader(data, rank, world_size, batch, seed):
        quick, slow = cached(data, rank, world_size, batch, seed), sampled(data, rank, world_size, batch, seed)
        slow = DataLoader(data, batch, sampler=quick.sampler)
        return Epochs(quick, lambda number, loader: loader if number < first else slow)

    return my_loader


def one_worker(data, rank, world_size, batch, seed):
    return sampled(data, rank, world_size, batch, seed, num_workers=1, persistent_workers=True)


def one_worker_that_fetches_far_ahead(data, rank, world_size, batch, seed):
    return sampled(data, rank, world_size, batch, seed, num_workers=1, persistent_workers=True, prefetch_factor=8)


def a_thread_ahead(data, rank, world_size, batch, seed):
    loader = sampled(data, rank, world_size, batch, seed)

    def ahead(number, loader):
        batches = iter(loader)
        box = []
        while True:
            fetch = threading.Thread(target=lambda: box.append(next(batches, None)))
            fetch.start()
            fetch.join()
            if box[-1] is None:
                return
            yield box[-1]

    return Epochs(loader, ahead)


def caches_half(data, rank, world_size, batch, seed):
    whole = InMemory(data)

    class Half(Dataset):
        def __len__(self):
            return len(data)

        def __getitems__(self, indices):
            even = [i for i in indices if i % 2 == 0]
            odd = [i for i in indices if i % 2]
            return [*whole.__getitems__(even), *(data.__getitems__(odd) if odd else [])]

    return sampled(Half(), rank, world_size, batch, seed)


def forgets_each_epoch(data, rank, world_size, batch, seed):
    loader = kept_in_memory(data, rank, world_size, batch, seed)

    def anew(number, loader):
        loader.dataset.kept.clear()
        return loader

    return Epochs(loader, anew)


def the_answer(data, rank, world_size, batch, seed):
    return sampled(data.digits, rank, world_size, batch, seed)


def mixed_up(data, rank, world_size, batch, seed):
    batches = list(sampled(data, rank, world_size, batch, seed))
    return [(batches[0][0], labels, ids) for _, labels, ids in batches]


def once(data, rank, world_size, batch, seed):
    yield from sampled(data, rank, world_size, batch, seed)


def unsharded(data, rank, world_size, batch, seed):
    return DataLoader(data, batch, shuffle=True, num_workers=3, persistent_workers=True)


def one_wrong_rank(data, rank, world_size, batch, seed):
    return three_workers(data, 0 if rank == 1 else rank, world_size, batch, seed)


def right_where_ranks_divide(data, rank, world_size, batch, seed):
    order = list(range(rank, len(data), world_size))
    return DataLoader(data, batch, sampler=order, num_workers=3, persistent_workers=True)


def drops_the_last(data, rank, world_size, batch, seed):
    return sampled(data, rank, world_size, batch, seed, num_workers=3, persistent_workers=True, drop_last=True)


def ranks_that_shuffle_apart(data, rank, world_size, batch, seed):
    return three_workers(data, rank, world_size, batch, seed + rank)


def empty_images(data, rank, world_size, batch, seed):
    loader = three_workers(data, rank, world_size, batch, seed)
    return Epochs(loader, lambda number, loader: ((torch.zeros_like(i), y, ids) for i, y, ids in loader))


def a_larger_batch(data, rank, world_size, batch, seed):
    return three_workers(data, rank, world_size, 2 * batch, seed)


WRONG = {
    "one batch again from the third epoch on": epochs(repeated),
    "prepares itself from the third epoch on": slow_from(2),
    "half of the data from the third epoch on": epochs(half),
    "no data from the third epoch on": epochs(nothing),
    "all data twice from the third epoch on": epochs(twice),
    "prepares itself from the fourth epoch on": slow_from(3),
    "inline": programs.broken,
    "one worker": one_worker,
    "one worker that fetches far ahead": one_worker_that_fetches_far_ahead,
    "a thread that is waited for": a_thread_ahead,
    "caches half": caches_half,
    "forgets at each epoch": forgets_each_epoch,
    "locked": programs.locked,
    "reads the answer": the_answer,
    "images of another": mixed_up,
    "one pass": once,
    "unsharded": unsharded,
    "rank 1 reads rank 0's": one_wrong_rank,
    "does not pad": right_where_ranks_divide,
    "drops the last batch": drops_the_last,
    "ranks that shuffle apart": ranks_that_shuffle_apart,
    "empty images": empty_images,
    "a larger batch": a_larger_batch,
}


@each(WRONG, quick_every=6)
def test_a_wrong_loader_is_refused(wrong):
    result = LAB.check(wrong)
    assert not result.passed
    if result.doubt:
        pytest.skip(f"a loader that is known to be right waits as well: {result.doubt}")
    assert result.findings


RIGHT = {"three workers": three_workers, "cached": cached, "kept in memory": kept_in_memory, "both": programs.fixed}


def solved_or_in_doubt(answer) -> str:
    """What a check says of a right answer on a busy machine; never that it is wrong."""
    result = LAB.check(answer)
    assert not result.findings, result.findings
    return "in doubt" if result.doubt else "solved"


@pytest.mark.parametrize("name", ["three workers", "cached"])
def test_a_right_loader_is_not_called_wrong_on_a_busy_machine(name, busy):
    assert solved_or_in_doubt(RIGHT[name])


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_loader_is_never_called_wrong_in_ten_checks_on_a_busy_machine(name, busy, capsys):
    said = [solved_or_in_doubt(RIGHT[name]) for _ in range(10)]
    with capsys.disabled():
        print(f"\n{name}: {said.count('solved')} of 10 solved, {said.count('in doubt')} in doubt")
    assert "solved" in said


def test_where_the_known_loader_waits_as_long_the_check_cannot_tell(monkeypatch):
    waits = exercise._Seen([], share=0.4)
    monkeypatch.setattr(exercise, "_run", lambda *given: waits)
    monkeypatch.setattr(LAB, "try_out", lambda *given, **how: [])
    result = LAB.check(programs.broken)
    assert not result.passed and not result.findings and "other programs use the cores" in result.doubt
    assert "Cannot tell on this machine now" in str(result) and "cannot tell" in result._repr_html_()
