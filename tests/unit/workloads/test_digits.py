import pytest
import torch
from torch.utils.data import DataLoader

from labkit.workloads import digits as module
from labkit.workloads.digits import Digits, DigitStream


def test_a_digit_is_an_image_a_label_and_its_id():
    image, label, index = Digits()[5]
    assert (image.shape, image.dtype, label.item(), index) == ((64,), torch.float32, 5, 5)
    assert len(Digits()) == 1797


@pytest.mark.parametrize("size", [1, 2, 97, 1797])
def test_the_first_digits_are_the_same_whatever_their_number_and_precision(size):
    data = Digits(size, torch.float64)
    assert len(data) == size and data.images.dtype == torch.float64
    assert torch.equal(data.images, Digits().images[:size].double())  # sixteenths are exact
    assert data.images.min() == 0 and data.images.max() <= 1


class Worker:
    def __init__(self, id: int, num_workers: int) -> None:
        self.id, self.num_workers = id, num_workers


def streamed(monkeypatch, size, *, ranks=1, workers=0, seed=0, **how) -> list[list[int]]:
    """The ids that each worker of each rank yields; without workers, each rank."""
    found = []
    for rank in range(ranks):
        place = {"rank": rank} if "world_size" in how else {}
        for worker in range(max(1, workers)):
            info = Worker(worker, workers) if workers else None
            monkeypatch.setattr(module, "get_worker_info", lambda info=info: info)
            found.append([item[2] for item in DigitStream(Digits(size), seed=seed, **place, **how)])
    return found


@pytest.mark.parametrize("size", [1, 7, 12, 97])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_a_stream_that_is_split_gives_each_sample_to_one_worker_of_one_rank(monkeypatch, size, ranks, workers):
    shares = streamed(monkeypatch, size, ranks=ranks, workers=workers, world_size=ranks, split_workers=True)
    assert sorted(i for share in shares for i in share) == list(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_stream_that_asks_nobody_gives_everything_to_everyone(monkeypatch):
    shares = streamed(monkeypatch, 9, ranks=2, workers=3)
    assert len(shares) == 6 and all(share == shares[0] and sorted(share) == list(range(9)) for share in shares)


def test_a_stream_split_over_ranks_alone_is_repeated_by_each_worker(monkeypatch):
    shares = streamed(monkeypatch, 9, ranks=2, workers=3, world_size=2)
    assert shares[0] == shares[1] == shares[2] and sorted(shares[0] + shares[3]) == list(range(9))


def test_a_rank_that_does_not_exist_has_no_stream():
    with pytest.raises(ValueError, match="from 0 to world_size - 1 = 0; given 1"):
        DigitStream(Digits(9), seed=0, rank=1)


def test_the_seed_decides_the_order(monkeypatch):
    one, same, other = (streamed(monkeypatch, 97, seed=seed)[0] for seed in (1, 1, 2))
    assert one == same != other


def test_a_stream_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    list(DigitStream(Digits(9), seed=3))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loader_batches_images_labels_and_ids():
    images, labels, ids = next(iter(DataLoader(Digits(9), 4)))
    assert (images.shape, labels.shape, ids.tolist()) == ((4, 64), (4,), [0, 1, 2, 3])
