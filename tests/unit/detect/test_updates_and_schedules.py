"""What the doctor says of updates and of schedulers, on records made by hand."""

from __future__ import annotations

import msgspec
import pytest

from labkit.detect import ask
from labkit.record.schema import Event, RankLog, Run

from ..builders import head, record_of, step

WATCHED = {"watched_by": "doctor", "loop_where": "train.py:9"}


def said(name, *logs, finished=True):
    """What a detector says of ranks, each given as (steps, events)."""
    ranks = [
        RankLog(head(rank, len(logs), **WATCHED), tuple(steps), tuple(events), (), {}, finished)
        for rank, (steps, events) in enumerate(logs)
    ]
    verdict = ask(name, record_of(Run("variant", tuple(ranks), 1.0)))
    assert verdict.cause and str(verdict)
    return verdict.status, verdict.reason


def look(update, **fields):
    usual = {
        "optimizer": 0,
        "update": update,
        "tensors": 4,
        "with_gradient": 4,
        "gradients_zero": False,
        "elements": 100,
        "unchanged": 0,
        "unmoved": 0,
        "undone": False,
        "moved": True,
        "lr": 0.1,
        "half": False,
        "where": "train.py:12",
    }
    return Event("update_effect", update, 0, usual | fields)


def looks(count=6, **fields):
    return [look(update, **fields) for update in range(1, count + 1)]


def backwards(passes, **counts):
    return [step(0, counts={"backward_calls": passes, **counts})]


STILL = {"moved": False, "unchanged": 100, "unmoved": 100}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        (looks(), ("clear", "updates-change-weights")),
        (looks(2), ("inconclusive", "too-few-updates-looked-at")),
        (looks(lr=0.0, **STILL), ("found", "learning-rate-is-zero")),
        (looks(with_gradient=0, elements=0, **STILL), ("found", "no-gradient-reaches-the-optimizer")),
        (looks(gradients_zero=True, elements=0, **STILL), ("found", "gradients-all-zero")),
        # a warm-up that begins at 0, and an optimizer that waits for its turn
        ([look(1, lr=0.0, **STILL), *looks()[1:]], ("clear", "updates-change-weights")),
        ([look(1, with_gradient=0, **STILL), *looks()[1:]], ("clear", "updates-change-weights")),
        ([look(1), *(look(at, undone=True) for at in (2, 3, 4))], ("found", "updates-put-back")),
        ([look(1), look(2, undone=True), look(3), look(4)], ("clear", "updates-change-weights")),
        (looks(half=True, unchanged=90, unmoved=80), ("found", "updates-round-away-in-16-bits")),
        (looks(half=True, unchanged=90, unmoved=30), ("inconclusive", "some-updates-round-away")),
        # what is left of each update adds up elsewhere, and comes in time
        (looks(half=True, unchanged=90, unmoved=1), ("clear", "updates-change-weights")),
        (looks(unchanged=99, unmoved=98), ("found", "updates-too-small-to-count")),
        (looks(unchanged=60, unmoved=60), ("clear", "updates-change-weights")),
    ],
)
def test_what_updates_do(events, expected):
    assert said("empty-updates", ([], events)) == expected


def test_one_optimizer_of_two_that_changes_nothing():
    both = [*looks(), *looks(optimizer=1, with_gradient=0, **STILL)]
    assert said("empty-updates", ([], both)) == ("found", "no-gradient-reaches-the-optimizer")


def test_gradients_that_no_optimizer_holds_are_another_question():
    fields = {"update": 1, "model": 0, "trainable": 4, "without_gradient": 0, "unheld": 4, "unheld_names": "a"}
    other = Event(
        "parameters", 1, 0, fields | {"unfrozen": 0, "unfrozen_names": "", "foreign": 4, "later": 0, "later_names": ""}
    )
    events = [*looks(with_gradient=0, elements=0, **STILL), other]
    assert said("empty-updates", ([], events)) == ("inconclusive", "optimizer-may-hold-others")


@pytest.mark.parametrize(
    ("passes", "moves", "counts", "finished", "expected"),
    [
        (48, False, {}, True, ("found", "optimizer-never-stepped")),
        (48, False, {}, False, ("inconclusive", "optimizer-may-step-later")),
        (16, False, {}, True, ("inconclusive", "optimizer-may-step-later")),
        (48, True, {}, True, ("not_applicable", "no-optimizer-stepped")),  # by hand
        (48, False, {"scaler_steps": 48}, True, ("not_applicable", "no-optimizer-stepped")),  # the scaler skips
    ],
)
def test_an_optimizer_that_makes_no_step(passes, moves, counts, finished, expected):
    event = Event("not_updated", 0, 0, {"backwards": 16, "weights_move": moves})
    assert said("empty-updates", (backwards(passes, **counts), [event]), finished=finished) == expected


def rates(*values, epochs=1, calls=0):
    each = max(1, len(values) // epochs)
    return [
        step(at, epoch=at // each, counts={"updates": 1}, scalars={"lr_used": float(rate), "scheduler_steps": calls})
        for at, rate in enumerate(values)
    ]


def end(scheduler="CosineAnnealingLR", **fields):
    usual = {"calls": 40, "before_first_update": 0, "given": False, "length": 40, "updates": 40, "cut": False}
    return Event("scheduler_end", 0, 0, {"scheduler": scheduler, "where": "train.py:3"} | usual | fields)


STEADY = [0.1] * 40


@pytest.mark.parametrize(
    ("values", "events", "epochs", "calls", "expected"),
    [
        ([0.0] * 10 + [0.1] * 30, [], 1, 0, ("found", "learning-rate-zero-at-first")),
        ([0.0] + [0.1] * 39, [], 1, 0, ("clear", "learning-rate-without-a-schedule")),  # the first step of a warm-up
        ([0.1 * 0.5**at for at in range(40)], [], 1, 39, ("found", "schedule-decays-to-nothing")),
        ([0.1 * 0.5**at for at in range(40)], [], 1, 4, ("clear", "learning-rate-without-a-schedule")),
        (STEADY, [end(calls=80)], 1, 0, ("found", "scheduler-stepped-too-often")),
        (STEADY, [end(calls=42)], 1, 0, ("clear", "learning-rate-without-a-schedule")),
        (STEADY, [end(calls=80, length=80)], 1, 0, ("clear", "learning-rate-without-a-schedule")),  # made for W times
        (STEADY, [end(calls=4)], 1, 0, ("found", "scheduler-stepped-too-seldom")),
        (STEADY, [end(calls=4, cut=True)], 1, 0, ("clear", "learning-rate-without-a-schedule")),
        (STEADY, [end(calls=4, length=4)], 4, 0, ("clear", "learning-rate-without-a-schedule")),
        (STEADY, [end(calls=40, length=4)], 4, 0, ("found", "epochs-schedule-stepped-by-updates")),
        (STEADY, [end(calls=0)], 1, 0, ("found", "scheduler-never-stepped")),
        (STEADY, [end(calls=0, cut=True)], 1, 0, ("inconclusive", "scheduler-not-stepped-so-far")),
        (STEADY, [end("ReduceLROnPlateau", calls=0)], 1, 0, ("inconclusive", "scheduler-not-stepped-so-far")),
        (STEADY, [end(before_first_update=1)], 1, 0, ("found", "scheduler-before-optimizer")),
        (STEADY, [end(before_first_update=1, given=True)], 1, 0, ("clear", "learning-rate-without-a-schedule")),
        (STEADY, [end(before_first_update=7)], 1, 0, ("clear", "learning-rate-without-a-schedule")),  # resumed
    ],
)
def test_schedules(values, events, epochs, calls, expected):
    assert said("learning-rate-schedule", (rates(*values, epochs=epochs, calls=calls), events)) == expected


@pytest.mark.parametrize(
    ("length", "passes", "ranks", "expected"),
    [
        (80, 2, 1, ("found", "schedule-made-for-micro-batches")),
        (78, 2, 1, ("found", "schedule-made-for-micro-batches")),  # two epochs of 39 batches
        (60, 2, 1, ("clear", "learning-rate-without-a-schedule")),  # the run may be short on purpose
        (80, 1, 1, ("clear", "learning-rate-without-a-schedule")),
        (80, 1, 2, ("inconclusive", "schedule-made-for-one-rank")),
        (40, 2, 2, ("clear", "learning-rate-without-a-schedule")),
    ],
)
def test_a_schedule_that_is_longer_than_the_run(length, passes, ranks, expected):
    steps = [
        msgspec.structs.replace(one, counts={"updates": 1, "backward_calls": passes}) for one in rates(*STEADY, epochs=2)
    ]
    assert said("learning-rate-schedule", *[(steps, [end(length=length)])] * ranks) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (STEADY, ("found", "learning-rate-written-beside")),
        ([0.1, 0.09] * 20, ("clear", "learning-rate-without-a-schedule")),  # the groups are told too
        (STEADY[:5], ("clear", "learning-rate-without-a-schedule")),
    ],
)
def test_a_learning_rate_that_nothing_reads(values, expected):
    beside = Event("lr_beside", 1, 0, {"what": "optimizer.lr", "where": "train.py:3", "first": 0.1, "last": 0.01})
    assert said("learning-rate-schedule", (rates(*values), [beside])) == expected


def test_a_scaler_that_skips_the_first_update_is_no_schedulers_fault():
    scaler = Event("precision_use", 0, 0, {"what": "scaler", "where": ""})
    events = [scaler, end(before_first_update=1)]
    assert said("learning-rate-schedule", (rates(*STEADY), events))[0] == "clear"


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        ([1.0, 0.9, 0.8], [1.1, 0.8, 0.9], ("found", "metric-differs-between-ranks")),
        ([1.0, 0.9, 0.8], [1.0, 0.9, 0.8], ("clear", "learning-rate-without-a-schedule")),
        ([1.0, 0.9, 0.8], [1.0, 0.9 + 1e-7, 0.8], ("clear", "learning-rate-without-a-schedule")),
        ([1.0, 0.9, 0.8], [], ("clear", "learning-rate-without-a-schedule")),  # rank 0 alone looks, and tells
    ],
)
def test_a_metric_of_each_rank(own, other, expected):
    def told(values):
        return rates(*STEADY), [Event("plateau", 0, 0, {"metric": value, "where": ""}) for value in values]

    assert said("learning-rate-schedule", told(own), told(other)) == expected
