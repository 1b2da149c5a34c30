"""What the doctor says of what modules are given, of workers' streams and of indices, on records made by hand."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from labkit.detect import ask
from labkit.record.columns import NOT_HASHED
from labkit.record.schema import Event, Origin, RankLog, Run

from ..builders import head, record_of, run_of, step

WATCHED = {"watched_by": "doctor", "loop_where": "a.py:9", "loader_where": "a.py:3"}


def told(name, *logs, **facts):
    """A verdict on ranks, each given as (steps, seen, events)."""
    ranks = []
    for rank, (steps, *rest) in enumerate(logs):
        seen, events = [*rest, (), ()][:2]
        ranks.append(RankLog(head(rank, len(logs), **WATCHED, **facts), tuple(steps), tuple(events), tuple(seen), {}, True))
    verdict = ask(name, record_of(Run("variant", tuple(ranks), 1.0)))
    assert verdict.cause and str(verdict)
    return verdict


def said(name, *logs, **facts):
    verdict = told(name, *logs, **facts)
    return verdict.status, verdict.reason


def fed(batches, **more):
    return [step(at, digests={"fed": list(batch)}, counts={"updates": 1}, **more) for at, batch in enumerate(batches)]


def batches(first, count=10, size=8):
    return [range(first + at * size, first + (at + 1) * size) for at in range(count)]


def shuffled(seed, size=8):
    """Batches of all of 80 rows in an order of their own."""
    order = np.random.default_rng(seed).permutation(80)
    return [order[at : at + size].tolist() for at in range(0, 80, size)]


def dealt(rank, world, seed, size=8):
    """What a rank is given of twelve batches, whose order is drawn anew with each seed."""
    order = np.random.default_rng(seed).permutation(12).tolist()
    return [range(at * size, (at + 1) * size) for at in order[rank::world]]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([batches(0), batches(0)], ("found", "ranks-fed-the-same")),
        ([batches(0), batches(80)], ("clear", "ranks-fed-apart")),
        ([shuffled(1), shuffled(2)], ("found", "ranks-fed-the-same-rows")),
        ([shuffled(1)[:7], shuffled(2)[:7]], ("found", "ranks-fed-the-same-rows")),
        # one order in each epoch, dealt out to the ranks: three of three epochs come to each row of a rank
        ([[*dealt(rank, 3, 1), *dealt(rank, 3, 2), *dealt(rank, 3, 3)] for rank in range(3)], ("clear", "ranks-fed-apart")),
        ([[*dealt(rank, 2, 1), *dealt(1 - rank, 2, 1)] for rank in range(2)], ("clear", "ranks-fed-apart")),
        ([batches(0, 1) * 10, batches(0, 1) * 10], ("inconclusive", "too-few-different-rows")),
        ([batches(0, 1, 16) * 10, batches(0, 1, 16) * 10], ("inconclusive", "one-batch-on-all-ranks")),
        ([batches(0, 4), batches(0, 4)], ("not_applicable", "no-samples-recorded")),
        # windows drawn with replacement meet now and then
        ([[*batches(0), range(8)], [*batches(72), range(200, 208)]], ("not_applicable", "no-samples-recorded")),
    ],
)
def test_what_modules_are_given(ranks, expected):
    assert said("rank-duplicates", *[(fed(of_rank),) for of_rank in ranks]) == expected


def test_ranks_that_hold_one_model_together_are_given_the_same():
    together = [(fed(batches(0)),)] * 2
    assert said("rank-duplicates", *together, data_rank="both")[0] == "not_applicable"


def test_few_kinds_of_rows_are_equal_by_chance():
    few = [[1, 2, 1, 2, 1, 1, 2, 1]] * 10
    assert said("rank-duplicates", (fed(few),), (fed(few),)) == ("inconclusive", "too-few-different-rows")


def both(read, given, elements):
    """Steps that read some samples, and give a module others, of so many elements of 64."""
    return [
        step(at, digests={"train": list(one), "fed": list(other)}, counts={"read_elements": 64, "fed_elements": elements})
        for at, (one, other) in enumerate(zip(read, given, strict=True))
    ]


def test_ranks_that_read_the_same_and_take_a_part_of_it_each():
    read = batches(0)
    halves = [[list(batch)[:4] for batch in read], [list(batch)[4:] for batch in read]]
    logs = [(both(read, half, 32),) for half in halves]
    assert said("rank-duplicates", *logs, dataset_size=80) == ("clear", "ranks-take-parts-of-a-batch")
    same = [(both(read, halves[0], 32),)] * 2
    assert said("rank-duplicates", *same, dataset_size=80)[0] == "found"
    noisy = [(both(read, [[row + 1000 * rank for row in batch] for batch in read], 64),) for rank in (1, 2)]
    assert said("rank-duplicates", *noisy, dataset_size=80)[0] == "found"


def test_ranks_that_hold_stages_of_a_model_read_the_same():
    read = batches(0)
    logs = [
        (both(read, read, 64), (), [Event("replica", 0, 0, {"update": 1, "model": 0, "shape": shape, "weights": "w"})])
        for shape in "ab"
    ]
    assert said("rank-duplicates", *logs, dataset_size=80) == ("inconclusive", "ranks-may-hold-parts")


def stream(of_workers, epoch=0):
    """Steps that read a batch each, of workers in turn."""
    turns = [(worker, batch) for pair in zip(*of_workers, strict=True) for worker, batch in enumerate(pair)]
    return [
        step(at, epoch, digests={"train": list(batch)}, series={"batch_worker": [worker], "batch_rows": [len(batch)]})
        for at, (worker, batch) in enumerate(turns)
    ]


@pytest.mark.parametrize(
    ("of_workers", "expected"),
    [
        ([batches(0), batches(0)], ("found", "each-worker-yields-all")),
        ([batches(0), batches(0)[::-1]], ("found", "each-worker-yields-all")),
        ([batches(0), batches(80)], "each-worker-yields-all"),
        ([[[1] * 8] * 9, [[1] * 8] * 9], "each-worker-yields-all"),  # equal samples
    ],
)
def test_streams_of_workers(of_workers, expected):
    verdict = told("worker-duplicates", (stream(of_workers),), workers=2)
    if isinstance(expected, tuple):
        assert (verdict.status, verdict.reason) == expected and verdict.waste == 0.5
    else:
        assert verdict.reason != expected


def reading(orders, targets, epochs=2, size=40, **facts):
    """Ranks that share indices out in turn, differently in each epoch; index i is sample orders[rank][i]."""
    run = run_of(
        [[[list(range((rank + epoch) % 2, size, 2))] for rank in (0, 1)] for epoch in range(epochs)],
        content=lambda at: at,
        **WATCHED,
        **facts,
    )
    logs = []
    for log, order, labels in zip(run.ranks, orders, targets, strict=True):
        steps = []
        for one in log.steps:
            ids = list(one.ids["train"])
            read = [order[at] for at in ids]
            digests = {"train": read, "targets": [labels[sample] for sample in read]}
            steps.append(step(one.step, one.epoch, ids={"train": ids, "targets": ids}, digests=digests))
        logs.append(RankLog(log.head, tuple(steps), log.events, (), {}, True))
    record = msgspec.structs.replace(record_of(Run("variant", tuple(logs), 1.0)), origin=Origin.DOCTOR)
    verdict = ask("same-index", record)
    assert verdict.cause and str(verdict)
    return verdict.status, verdict.reason


PLAIN, TURNED = list(range(100, 140)), list(range(139, 99, -1))
LABELS = {sample: sample % 2 for sample in range(300)}


def test_indices():
    others = {sample: 1 - label for sample, label in LABELS.items()}
    assert reading([PLAIN, PLAIN], [LABELS, LABELS]) == ("clear", "indices-mean-the-same")
    assert reading([PLAIN, TURNED], [LABELS, LABELS]) == ("found", "index-is-another-sample")
    assert reading([PLAIN, PLAIN], [LABELS, others]) == ("found", "label-is-another")
    # a part of the data on each rank, with numbers of its own; equal samples; one epoch
    assert reading([PLAIN, list(range(200, 240))], [LABELS, LABELS])[0] == "inconclusive"
    assert reading([[1] * 40, [1] * 40], [LABELS, LABELS])[0] != "found"
    assert reading([PLAIN, PLAIN], [LABELS, others], epochs=1) == ("inconclusive", "no-sample-read-by-two-ranks")


def test_contents_that_were_not_looked_at_say_nothing_of_an_index():
    """What the doctor follows between two bursts it knows by ids alone: of two passes over the data the second."""
    orders = [[*PLAIN[:20], *[NOT_HASHED] * 20], [*[NOT_HASHED] * 20, *PLAIN[20:]]]
    labels = {**LABELS, NOT_HASHED: 0}
    assert reading(orders, [labels, labels]) == ("inconclusive", "no-sample-read-by-two-ranks")


def of_two_ranks(content):
    """Ranks that share indices out, in two passes: index i of a rank in a pass is the sample `content(rank, pass, i)`."""
    logs = []
    for rank in (0, 1):
        passes = [list(range((rank + epoch) % 2, 40, 2)) for epoch in (0, 1)]
        steps = [
            step(
                at, at, ids={"train": ids}, digests={"train": [content(rank, at, one) for one in ids]}, counts={"updates": 1}
            )
            for at, ids in enumerate(passes)
        ]
        logs.append((steps,))
    return logs


def test_ids_are_not_contradicted_by_contents_that_were_not_looked_at():
    later = of_two_ranks(lambda rank, epoch, one: NOT_HASHED if epoch else 100 + one)
    assert said("coverage", *later, dataset_size=40)[0] == said("rank-duplicates", *later, dataset_size=40)[0] == "clear"
    apart = of_two_ranks(lambda rank, epoch, one: NOT_HASHED if epoch else 100 * rank + one)
    assert said("rank-duplicates", *apart, dataset_size=40)[0] != "found"
