"""Ranks that train models of their own on purpose, and ranks of which one trains something else before; on records made by
hand."""

from __future__ import annotations

import pytest

from labkit.detect import ask
from labkit.detect.overlap.measures import arrivals
from labkit.record.schema import Event, RankLog, Run, Span, Step

from ..builders import head, record_of, step


def look(update, token, **fields):
    held = {"update": update, "model": 0, "shape": "s", "wrapped": False, "sharded": False, "weights": token, "buffers": "b"}
    return Event("replica", update, 0, held | fields)


def told(*of_ranks, **facts):
    """Verdicts on ranks, each given as (tokens of its weights, learning rate)."""
    logs = []
    for rank, (tokens, rate) in enumerate(of_ranks):
        steps = [step(number, counts={"updates": 1}, scalars={"lr_used": rate}) for number in range(20)]
        events = [look(at, token, start=not at) for at, token in enumerate(tokens)]
        known = {"watched_by": "doctor", "group_size": len(of_ranks), **facts}
        logs.append(RankLog(head(rank, len(of_ranks), **known), tuple(steps), tuple(events), (), {}, True))
    record = record_of(Run("variant", tuple(logs), 1.0))
    return {name: ask(name, record) for name in ("replicas-differ", "learning-rate-schedule")}


def said(verdict):
    return verdict.status, verdict.reason


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("abc", 0.1), ("xyz", 0.1), "ranks-train-models-of-their-own"),  # an ensemble
        (("abc", 0.1), ("ayz", 0.2), "ranks-train-models-of-their-own"),  # a search over settings
    ],
)
def test_models_of_their_own_are_not_accused(one, other, expected):
    verdicts = told(one, other)
    assert said(verdicts["replicas-differ"]) == ("inconclusive", expected)
    assert verdicts["learning-rate-schedule"].status != "found"


@pytest.mark.parametrize(
    ("one", "other", "facts", "expected"),
    [
        (("abc", 0.1), ("ayz", 0.1), {}, "nothing-is-reduced"),  # from one start
        (("abc", 0.1), ("xyz", 0.1), {"ddp_world_size": 2}, "ddp-bypassed"),
        (("abc", 0.1), ("xyz", 0.1), {"group_size": 0}, "ranks-never-joined"),
    ],
)
def test_one_model_that_is_meant_is(one, other, facts, expected):
    assert said(told(one, other, **facts)["replicas-differ"]) == ("found", expected)


def test_a_model_that_one_rank_trains_beside_is_not_compared():
    tokens = ("a", "b")
    logs = [
        RankLog(head(rank, 2, watched_by="doctor"), (), (look(1, tokens[rank], wrapped=bool(rank)),), (), {}, True)
        for rank in range(2)
    ]
    assert said(ask("replicas-differ", record_of(Run("variant", tuple(logs), 1.0)))) == (
        "not_applicable",
        "no-weights-compared",
    )


def reducing(number, begin):
    series = {"bucket_pass": [0], "bucket_ready_ns": [begin + 5], "backward_start_ns": [begin + 1]}
    sent = Span("all_reduce", "comm", begin + 5, begin + 9)
    return Step(number, 0, begin, begin + 10, spans=[sent], series=series)


def test_arrivals_are_those_of_one_step_where_a_rank_took_others_before():
    alone = [Step(number, 0, 10 * number, 10 * number + 9) for number in range(4)]
    first = [*alone, *(reducing(4 + at, 100 + 10 * at) for at in range(6))]
    second = [reducing(at, 100 + 10 * at) for at in range(6)]
    logs = [
        RankLog(head(rank, 2, watched_by="doctor", warm_up=0), tuple(steps), (), (), {}, True)
        for rank, steps in enumerate((first, second))
    ]
    seen = arrivals(Run("variant", tuple(logs), 1.0))
    assert len(seen) == 6 and all(one.late_s.max() == 0 for one in seen)
