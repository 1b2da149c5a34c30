"""Ranks that hold one model together are to read the same: what they declare as `data_rank` says which."""

import msgspec
import pytest

from labkit import detect
from labkit.detect.catalogue import said

from ..builders import in_batches, record_of, run_of, shares, shuffled

SIZE, BATCH = 120, 8


def ask(name, reading, data_ranks, **given):
    run = run_of(reading, dataset_size=SIZE, batch_size=BATCH, **given)
    logs = []
    for log, share in zip(run.ranks, data_ranks, strict=True):
        facts = dict(log.head.facts) | ({} if share is None else {"data_rank": share})
        logs.append(msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts=facts)))
    return detect.detector(name)(record_of(msgspec.structs.replace(run, ranks=tuple(logs))))


def epochs_of(number, of_ranks):
    """Readings in which rank r reads share `of_ranks[r]` of `number`, in a new order each epoch."""
    dealt = [[in_batches(share, BATCH) for share in shares(shuffled(SIZE, seed), number)] for seed in (0, 1)]
    return [[epoch[share] for share in of_ranks] for epoch in dealt]


by_ids_and_by_content = pytest.mark.parametrize("ids", [True, False], ids=["by ids", "by content"])


@by_ids_and_by_content
@pytest.mark.parametrize("groups", [(0, 0, 1, 1), (0, 1, 0, 1)], ids=["neighbours", "strided"])
def test_ranks_of_one_model_read_the_same_and_that_is_right(ids, groups):
    reading = epochs_of(2, groups)
    assert ask("rank-duplicates", reading, (None,) * 4, ids=ids).status == "found", "as long as nobody says why"
    for name in ("rank-duplicates", "coverage", "order"):
        assert ask(name, reading, groups, ids=ids).status == "clear", name


@by_ids_and_by_content
def test_a_rank_that_reads_other_samples_than_its_group_is_named(ids):
    verdict = ask("rank-duplicates", epochs_of(4, (0, 0, 1, 2)), (0, 0, 1, 1), ids=ids)
    assert (verdict.status, verdict.reason) == ("found", "rank-off-its-group")
    assert verdict.numbers == {"rank": 3, "group": 1} and not verdict.notes


def test_a_rank_that_leaves_its_group_later_is_named_with_the_epoch():
    reading = [epochs_of(4, (0, 0, 1, 1))[0], epochs_of(4, (0, 0, 1, 2))[1]]
    verdict = ask("rank-duplicates", reading, (0, 0, 1, 1))
    assert verdict.evidence["begins_in_epoch"].value == 1 and verdict.notes == (said("from-epoch-on", epoch=1),)
    assert verdict.cause == (
        "rank 3 does not read what the other ranks of data_rank 1 read, though they hold one model together, from epoch 1 on"
    )


@by_ids_and_by_content
def test_groups_that_read_the_same_are_still_found(ids):
    verdict = ask("rank-duplicates", epochs_of(2, (0, 0, 0, 0)), (0, 0, 1, 1), ids=ids)
    assert (verdict.status, verdict.reason) == ("found", "ranks-identical") and verdict.numbers == {"ranks": 2}
    three = ask("rank-duplicates", epochs_of(2, (0, 0, 1, 1, 0, 0)), (0, 0, 1, 1, 2, 2), ids=ids)
    assert (three.status, three.reason) == ("found", "some-ranks-identical")
    assert three.numbers["groups"] == [said("these-ranks", ranks=[0, 4])], "by the first rank of each"


def test_where_all_ranks_hold_one_model_there_is_nobody_to_repeat():
    verdict = ask("rank-duplicates", epochs_of(1, (0, 0)), (0, 0))
    assert (verdict.status, verdict.reason) == ("not_applicable", "all-ranks-share-one-share")
