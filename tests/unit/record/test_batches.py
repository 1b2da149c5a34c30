"""What of a batch is its samples: parts that are nested, loaders that share a name, ids that are too few."""

import collections
import dataclasses

import pytest
import torch

from labkit.errors import UsageError
from labkit.record.batches import as_rows, digest_rows, samples_and_ids
from labkit.record.probe import Probe
from labkit.record.store import read_rank

ROWS, MASK = torch.arange(6.0).reshape(3, 2), torch.tensor([[1, 0], [1, 1], [0, 1]])
Pair = collections.namedtuple("Pair", "ids mask")


@dataclasses.dataclass
class Inputs:
    ids: torch.Tensor
    mask: torch.Tensor
    note: str = "no array"


@pytest.fixture
def probe(tmp_path):
    with Probe(tmp_path / "rank-00000.jsonl") as probe:
        yield probe


def digests_of(batch, ids_at=None) -> list[int]:
    return digest_rows(samples_and_ids(batch, ids_at)[0])


NESTED = {
    "a mapping in a tuple": ({"ids": ROWS, "mask": MASK}, torch.zeros(3)),
    "a tuple in a mapping": {"labels": torch.zeros(3), "inputs": (ROWS, MASK)},
    "a mapping in a mapping": {"labels": torch.zeros(3, dtype=torch.long), "inputs": {"ids": ROWS, "mask": MASK}},
    "a named tuple": (Pair(ROWS, MASK), torch.zeros(3)),
    "a dataclass in a tuple": (Inputs(ROWS, MASK), torch.zeros(3)),
    "a list of views": ([ROWS, MASK], torch.zeros(3)),
    "lists in lists": [[[ROWS], [MASK, None, "text"]], torch.zeros(3)],
}


@pytest.mark.parametrize("batch", NESTED.values(), ids=NESTED)
def test_nested_parts_are_told_apart_by_all_of_a_samples_bytes(batch):
    found = digests_of(batch)
    assert len(set(found)) == len(found) == 3
    assert found == digests_of(({"one": ROWS, "two": MASK},)), "the same however they are nested"
    other = MASK.clone()
    other[1, 0] = 7
    changed = [one == two for one, two in zip(found, digests_of(({"one": ROWS, "two": other},)), strict=True)]
    assert changed == [True, False, True]


def test_a_dataclass_is_read_as_the_mapping_of_its_fields():
    assert digests_of(Inputs(ROWS, MASK)) == digest_rows(ROWS)
    assert samples_and_ids(Inputs(ROWS, torch.tensor([4, 5, 6])), "mask")[1].tolist() == [4, 5, 6]


def test_one_array_alone_has_the_digests_that_it_has_without_its_wrapping():
    assert digests_of(({"image": ROWS}, torch.zeros(3))) == digest_rows({"image": [ROWS]}) == digest_rows(ROWS)


def test_a_list_with_a_tensor_for_each_sample_is_known_by_the_labels_or_the_ids_beside_it():
    """Detection: images of several sizes, and a list of targets."""
    images = [torch.full((3, size, size), size) for size in (4, 5, 4)]
    images += [images[0].clone()]
    for batch, ids_at in (((images, [{"box": 1}] * 4), None), ((images, torch.zeros(4)), None), ((images, [5, 6, 7, 8]), 1)):
        one, two, three, same = digests_of(batch, ids_at)
        assert one == three == same != two
    pictures = [torch.ones(3, 4, 4) * n for n in range(4)]
    assert len(set(digests_of((pictures, torch.zeros(4))))) == 4


def test_parts_whose_first_dimensions_differ_are_refused_by_their_sizes():
    with pytest.raises(
        UsageError, match=r"one first dimension, .*; given a dict whose parts have 3, 4 rows; .*probe.samples"
    ):
        digests_of(({"ids": ROWS, "more": torch.ones(4, 2)},))
    with pytest.raises(UsageError, match="must be a tensor or an array, a row a sample; given dict"):
        as_rows({"text": ["a", "b"]})


def test_fewer_ids_than_samples_are_refused_with_both_counts(probe):
    probe.begin_step()
    with pytest.raises(UsageError, match=r"samples\('train'\): 3 samples and 2 ids; give one id a sample"):
        probe.samples("train", ROWS, [1, 2])
    with pytest.raises(UsageError, match=r"seen\('validation'\): 3 samples and 4 ids"):
        probe.seen("validation", 0, ROWS, torch.arange(4))
    with pytest.raises(UsageError, match=r"3 samples and 1 id;"):
        list(probe.batches([(ROWS, [7])], ids_at=1))


def test_micro_batches_of_one_step_add_up_and_what_batches_recorded_is_replaced(probe):
    probe.begin_step()
    probe.samples("train", ROWS[:2], [1, 2])
    probe.samples("train", ROWS[2:], [3])
    for _ in probe.batches([(ROWS, torch.zeros(3))]):
        probe.samples("train", MASK, [4, 5, 6])
    probe.begin_step()
    probe.samples("train", ROWS[:2], [1, 2])
    probe.samples("train", ROWS[2:])
    probe.close()
    added, replaced, without = read_rank(probe.path).steps
    assert (added.digests, added.ids) == ({"train": digest_rows(ROWS)}, {"train": [1, 2, 3]})
    assert (replaced.digests, replaced.ids) == ({"train": digest_rows(MASK)}, {"train": [4, 5, 6]})
    assert (without.digests, without.ids) == ({"train": digest_rows(ROWS)}, {}), "ids of some samples are those of none"


def test_each_loader_of_an_epoch_is_a_pass_of_its_own(probe):
    one, other = [ROWS] * 2, [MASK] * 2
    for epoch in range(2):
        for loader in (one, other):
            list(probe.batches(loader, epoch=epoch))
    list(zip(probe.batches(one, epoch=2), probe.batches(other, epoch=2), strict=True))
    list(probe.batches([ROWS], epoch=2, name="validation"))
    probe.close()
    log = read_rank(probe.path)
    assert [step.loader for step in log.steps] == [0, 0, 1, 1] * 2 + [0, 1, 0, 1] + [0]
    ends = [(event.fields["epoch"], event.fields.get("loader", 0)) for event in log.events]
    assert sorted(ends) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 0), (2, 1)]
