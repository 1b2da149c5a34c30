"""What the doctor says of the workers of a loader, on records made by hand."""

from __future__ import annotations

import pytest

from labkit.detect import ask
from labkit.record.schema import Event, RankLog, Run, Step

from ..builders import head, record_of

S = 1_000_000_000


def said(name, *logs):
    ranks = [
        RankLog(head(rank, len(logs), watched_by="doctor", loader_where="a.py:3"), tuple(steps), tuple(events), (), {}, True)
        for rank, (steps, events) in enumerate(logs)
    ]
    verdict = ask(name, record_of(Run("variant", tuple(ranks), 1.0)))
    assert verdict.cause and str(verdict)
    return verdict.status, verdict.reason


def draw(worker, state, start=1, generator="data set.draw", stream=False):
    fields = {"start": start, "worker": worker, "of": 2, "stream": stream, "generator": generator, "state": state}
    return Event("worker_random", 0, 0, fields)


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([draw(0, "a"), draw(1, "a")], ("found", "workers-share-a-generator")),
        ([draw(0, "a", generator="numpy"), draw(1, "a", generator="numpy")], ("found", "workers-seeded-alike")),
        ([draw(0, "a"), draw(1, "b")], ("clear", "workers-draw-their-own")),
        ([draw(0, "a"), draw(1, "b"), draw(0, "a", 2), draw(1, "b", 2)], ("inconclusive", "workers-draw-the-same-again")),
        ([draw(0, "a"), draw(1, "b"), draw(0, "c", 2), draw(1, "a", 2)], ("clear", "workers-draw-their-own")),
        # a stream whose workers shuffle alike, and take what is theirs of it
        ([draw(0, "a", stream=True), draw(1, "a", stream=True)], ("not_applicable", "no-worker-draws")),
        ([], ("not_applicable", "no-worker-draws")),
    ],
)
def test_random_numbers_of_workers(draws, expected):
    assert said("worker-random-numbers", ([], draws)) == expected


def test_workers_of_another_rank_may_draw_what_those_of_this_one_do():
    assert (
        said("worker-random-numbers", ([], [draw(0, "a"), draw(1, "b")]), ([], [draw(0, "a"), draw(1, "b")]))[0] == "clear"
    )


def started(seconds, where="a.py:3"):
    return Event("workers_started", 0, 0, {"seconds": seconds, "workers": 2, "where": where})


def steps(seconds, count=20):
    return [Step(at, 0, int(at * seconds * S), int((at + 1) * seconds * S)) for at in range(count)]


@pytest.mark.parametrize(
    ("events", "seconds", "expected"),
    [
        ([started(2.0)] * 3, 0.1, ("found", "workers-started-each-epoch")),
        ([started(0.3)] * 3, 0.01, ("clear", "workers-start-fast")),
        ([started(2.0)] * 3, 1.0, ("clear", "workers-start-fast")),  # two steps
        ([started(2.0)] * 2, 0.15, ("found", "workers-started-each-epoch")),
        ([started(2.0)], 0.1, ("not_applicable", "no-workers-started")),
        ([started(2.0), started(2.0, "b.py:9")], 0.1, ("not_applicable", "no-workers-started")),
        ([], 0.1, ("not_applicable", "no-workers-started")),
    ],
)
def test_starts_of_workers(events, seconds, expected):
    assert said("worker-restarts", (steps(seconds), events)) == expected
