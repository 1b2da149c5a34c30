"""Scans, and what stands between them and a model: no process, no sleep."""

import tracemalloc

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from labkit.workloads.digits import Digits
from labkit.workloads.scans import Counted, DiskCache, FileLock, Locked, Scans, all_scans, count_dots, draw, scan_bytes


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_preparing_a_scan_gives_the_digit_to_the_bit(scale):
    digits = Digits(50)
    data = Scans(digits, scale=scale)
    for image, label, i in data.__getitems__(list(range(50))):
        assert torch.equal(image, digits.images[i]) and label == digits.labels[i]


def test_every_value_of_a_pixel_has_as_many_dots():
    values = np.arange(17).repeat(4)[:64][None]
    scan = draw(values, 2)[0]
    assert scan.shape == (64, 64) and set(np.unique(scan)) == {0, 255}
    assert (count_dots(scan) * 16).tolist() == values[0].tolist()


def test_what_a_store_holds_is_one_scan_after_the_other():
    held = all_scans(3, 2)
    assert len(held) == 3 * scan_bytes(2)
    third = np.frombuffer(held, np.uint8).reshape(3, 64, 64)[2]
    assert np.array_equal(count_dots(third), Digits(3).images[2].numpy())


def test_drawing_takes_little_more_memory_than_the_scans_themselves():
    tracemalloc.start()
    held = all_scans(8, 16)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * len(held)


def test_scans_that_are_read_elsewhere_are_counted_by_their_bytes():
    asked = []

    def read(ids):
        asked.append(list(ids))
        return draw(np.zeros((len(ids), 64), np.int64), 1)

    data = Scans(Digits(10), read=read)
    data.__getitems__([3, 4])
    assert asked == [[3, 4]]
    assert data.counters.read()["store_bytes"] == 2 * scan_bytes(1) and data.counters.read()["prepared"] == 2


def test_a_cache_prepares_a_sample_once_and_gives_the_same_bits_ever_after(tmp_path):
    digits = Digits(20)
    data = Scans(digits, local=tmp_path)
    cache = DiskCache(data)
    first, again = cache.__getitems__([5, 7]), cache.__getitems__([7, 5])
    assert data.counters.read()["prepared"] == 2
    assert torch.equal(first[0][0], again[1][0]) and torch.equal(first[0][0], digits.images[5])
    assert first[1][2] == 7 and len(cache) == 20


def test_another_rank_of_the_host_finds_what_the_first_kept(tmp_path):
    one, other = (Scans(Digits(20), local=tmp_path) for _ in range(2))
    DiskCache(one).__getitems__([1, 2, 3])
    DiskCache(other).__getitems__([2, 3, 4])
    assert other.counters.read()["prepared"] == 1


def test_locked_data_are_prepared_inside_the_lock_and_the_lock_is_given_back(tmp_path):
    seen = []

    class Watch:
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *_):
            seen.append("out")

    data = Locked(Scans(Digits(5), mark=lambda name: (seen.append(name), Watch())[1]), FileLock(tmp_path / "lock"))
    assert data[3][2] == 3 and data[4][2] == 4
    assert seen == ["inside the lock", "in", "out"] * 2 and len(data) == 5


def test_a_loader_takes_a_whole_batch_at_once_and_tells_what_it_cost():
    data, told = Scans(Digits(10)), []
    loader = Counted(DataLoader(data, 4), data.counters, lambda name, amount: told.append((name, amount)))
    assert [len(ids) for _, _, ids in loader] == [4, 4, 2] and len(loader) == 3
    assert [amount for name, amount in told if name == "prepared"] == [4, 4, 2]
