"""What the questions about resumes and averaged weights say, on records made by hand."""

from __future__ import annotations

import pytest

from labkit.detect import ask
from labkit.record.schema import Event, RankLog, Run

from ..builders import head, record_of, step

WATCHED = {"watched_by": "doctor", "loop_where": "train.py:9"}


def told(name, *logs):
    """What a detector says of ranks, each given as (steps, events)."""
    ranks = [
        RankLog(head(rank, len(logs), **WATCHED), tuple(steps), tuple(events), (), {}, True)
        for rank, (steps, events) in enumerate(logs)
    ]
    verdict = ask(name, record_of(Run("variant", tuple(ranks), 1.0)))
    assert verdict.cause and str(verdict)  # its text can be written
    assert verdict.status == "found" or verdict.where is None
    return verdict.status, verdict.reason


def updates(count):
    return [step(number, counts={"updates": 1}) for number in range(count)]


def load(made=2, **fields):
    told = {"path": "a.pt", "where": "a.py:3", "optimizer": True, "weights": True, "made_step": made}
    more = {"counters": "epoch=1", "reads_counter": True, "elsewhere": False}
    return Event("torch_load", 2, 5, told | more | fields)


def resumed(at=3, **fields):
    whole = {
        "path": "a.pt",
        "where": "a.py:3",
        "file": 0,
        "made_step": 2,
        "counters": "epoch=1",
        "optimizer_given": True,
        "optimizer_where": "a.py:4",
        "file_optimizer": True,
        "file_moments": True,
        "file_steps": 3,
        "steps": 3,
        "moments": True,
        "stateful": True,
        "same_settings": True,
        "file_rate": 0.1,
        "rate": 0.1,
        "cast": "",
        "cast_down": False,
        "kept_apart": False,
        "has_schedule": False,
        "schedule_at": -1,
        "schedule_given": False,
        "file_schedule": False,
        "file_schedule_at": -1,
        "schedule_rate": -1.0,
        "has_scaler": False,
        "scaler_given": False,
        "scale": -1.0,
        "file_scale": -1.0,
        "weights_loaded": 1.0,
        "weights_missing": 0.0,
        "weights_overwritten": 0.0,
        "weights_expected": 2,
        "weights_arrived": 2,
        "put_back": 0.0,
        "load_where": "a.py:5",
    }
    return Event("resumed", at, 10, whole | fields)


LOST = {"optimizer_given": False, "moments": False, "steps": -1}
SCHEDULE = {"has_schedule": True, "schedule_at": 0}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("clear", "resume-holds-all")),
        (LOST, ("found", "optimizer-not-given")),
        (LOST | {"same_settings": False}, ("inconclusive", "optimizer-perhaps-not-given")),  # a second stage
        (LOST | {"weights_missing": 0.1}, ("clear", "resume-holds-all")),  # a new head
        (LOST | {"file_optimizer": False, "file_moments": False}, ("found", "optimizer-not-in-file")),
        (LOST | {"stateful": False, "file_moments": False}, ("clear", "resume-holds-all")),  # plain descent has none
        ({"moments": False}, ("found", "optimizer-state-dropped")),
        ({"moments": False, "unread_moments": True}, ("found", "moments-not-asked-for")),
        ({"unread_moments": True}, ("clear", "resume-holds-all")),  # they came by other ways
        ({"weights_loaded": 0.0, "weights_arrived": 0}, ("found", "weights-not-given")),
        ({"weights_loaded": 0.0}, ("clear", "resume-holds-all")),  # they came by other ways
        ({"weights_missing": 0.2}, ("found", "weights-missing-from-file")),
        ({"weights_overwritten": 1.0}, ("found", "loaded-weights-overwritten")),
        ({"weights_overwritten": 0.6}, ("inconclusive", "some-weights-overwritten")),
        ({"put_back": 0.9}, ("found", "loaded-weights-put-back")),
        ({"cast": "m from float32 to bfloat16", "cast_down": True, "kept_apart": True}, ("found", "optimizer-state-cast")),
        ({"cast": "m from bfloat16 to float32", "kept_apart": True}, ("found", "optimizer-state-grown")),
        ({"cast": "m from float32 to bfloat16", "cast_down": True}, ("inconclusive", "optimizer-state-follows")),
        (SCHEDULE | {"rate": 1.0}, ("found", "schedule-starts-again")),
        (SCHEDULE | {"rate": 1.0, "schedule_given": True}, ("clear", "resume-holds-all")),
        (SCHEDULE | {"rate": 1.0, "schedule_at": 9}, ("clear", "resume-holds-all")),  # stepped to its place
        (SCHEDULE, ("clear", "resume-holds-all")),
        (SCHEDULE | {"file_schedule_at": 9}, ("found", "schedule-not-given")),
        ({"has_scaler": True, "scale": 65536.0, "file_scale": 512.0}, ("found", "scaler-not-given")),
        ({"has_scaler": True, "scale": 512.0, "file_scale": 512.0}, ("clear", "resume-holds-all")),
    ],
)
def test_what_a_resume_holds(fields, expected):
    assert told("resume-is-whole", (updates(6), [load(), resumed(**fields)])) == expected


def test_a_start_from_weights_is_no_resume():
    fields = LOST | {"file_optimizer": False, "file_moments": False, "made_step": -1}
    events = [load(made=-1, reads_counter=False), resumed(**fields)]
    assert told("resume-is-whole", (updates(6), events)) == ("clear", "starts-from-weights")
    assert told("resume-is-whole", (updates(6), [])) == ("not_applicable", "nothing-is-resumed")


def module(**fields):
    clean = {"module": 0, "where": "a.py:5", "given": 4, "own": 0, "changed": False, "missing": 0, "unexpected": 0}
    return Event("module_loaded", 1, 3, clean | {"renamed": 0, "example": "", "from_file": True, "updates": 3} | fields)


def test_a_load_of_which_nothing_fits():
    nothing = module(missing=4, unexpected=4, renamed=4, example="module.weight")
    assert told("resume-is-whole", (updates(3), [nothing])) == ("found", "nothing-was-loaded")
    assert told("resume-is-whole", (updates(3), [nothing, module()]))[0] == "not_applicable"  # tried again
    in_place = module(missing=4, unexpected=4, given=4, example="model.weight", in_place=True)
    assert told("resume-is-whole", (updates(3), [in_place])) == ("found", "nothing-was-read")
    some = module(missing=2, unexpected=2)
    assert told("resume-is-whole", (updates(3), [some]))[0] == "not_applicable"  # a new head


def restored(digest, seed):
    return Event("generator_restored", 2, 6, {"digest": digest, "seed": seed, "where": "a.py:7"})


def test_generators_of_ranks():
    def logs(*of):
        return [(updates(4), [restored(*one)]) for one in of]

    assert told("resume-is-whole", *logs(("x", "0"), ("x", "1"))) == ("found", "one-generator-for-all")
    assert told("resume-is-whole", *logs(("x", "0"), ("y", "1")))[0] == "not_applicable"
    assert told("resume-is-whole", *logs(("x", "0"), ("x", "0")))[0] == "not_applicable"  # seeded alike all along


def reads(*passes):
    """Steps of two samples each, and the ends of passes: a pass is a list of ids, and whether it came to its end."""
    steps, events = [], []
    for ids, ended in passes:
        for at in range(0, len(ids), 2):
            number = len(steps)
            part = ids[at : at + 2]
            steps.append(step(number, counts={"updates": 1}, digests={"train": part}, ids={"train": part}))
        if ended:
            events.append(Event("epoch_end", len(steps) - 1, len(steps), {"epoch": 0}))
    return steps, events


FIRST, SECOND = list(range(40)), [(7 * at) % 40 for at in range(40)]
THIRD = [(3 * at + 1) % 40 for at in range(40)]
SAMPLER = Event("sampler_epoch", 0, 0, {"epoch": 0})


@pytest.mark.parametrize(
    ("passes", "saved", "sampler", "expected"),
    [
        ([(FIRST, True), (SECOND[:20], False), (SECOND[20:], True)], 29, True, ("clear", "reads-on")),
        ([(FIRST, True), (SECOND[:20], False), (SECOND, True)], 29, True, ("found", "epoch-begun-anew")),
        ([(FIRST, True), (SECOND[:20], False), (THIRD, True)], 29, True, ("found", "epoch-begun-anew")),
        ([(FIRST, True), (SECOND[:20], False), (SECOND, True)], 19, True, ("clear", "resumes-at-an-epoch")),
        ([(FIRST, True), (SECOND[:20], False), (FIRST[20:], True)], 29, True, ("found", "resumes-in-another-epoch")),
        ([(FIRST, True), (SECOND[:20], False), (FIRST[20:], True)], 29, False, ("inconclusive", "order-is-repeated")),
        ([(SECOND, True), (THIRD, True), (SECOND, True)], 39, True, ("found", "resumes-in-another-epoch")),
    ],
)
def test_where_a_resume_reads_on(passes, saved, sampler, expected):
    at = sum(len(ids) for ids, _ in passes[:-1]) // 2
    steps, events = reads(*passes)
    seen = [*([SAMPLER] if sampler else []), *events, load(), resumed(at, made_step=saved)]
    assert told("resume-position", (steps, seen)) == expected


def test_positions_of_a_file_of_another_run():
    steps, events = reads((FIRST, True), (SECOND, True))
    fields = {"made_step": -1, "counters": "epoch=1, step=30", "file_steps": 30}
    assert told("resume-position", (steps, [*events, load(made=-1), resumed(0, **fields)])) == (
        "found",
        "epoch-begun-anew-by-count",
    )
    fields |= {"counters": "epoch=2, step=40", "file_steps": 40}
    assert told("resume-position", (steps, [*events, load(made=-1), resumed(0, **fields)]))[0] == "inconclusive"
    epochs = [Event("sampler_epoch", at, at, {"epoch": epoch}) for at, epoch in ((-1, 0), (19, 1))]
    assert told("resume-position", (steps, [*events, *epochs, load(made=-1), resumed(0, **fields)])) == (
        "found",
        "resumes-in-another-epoch",
    )


def evaluation(**fields):
    clean = {"changed": 0.0, "stayed": True, "back": True, "older": 1.0, "returned": False, "average": False}
    return Event("evaluation", 1, 3, {"where": "a.py:6", "exchanged": False} | clean | fields)


LEFT = {"changed": 1.0, "back": False, "older": 0.4}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (evaluation(), ("clear", "evaluations-leave-the-weights")),
        (evaluation(changed=1.0, stayed=False, average=True), ("clear", "evaluations-leave-the-weights")),  # put back
        (evaluation(**LEFT, average=True), ("found", "average-left-in-the-model")),
        (evaluation(**LEFT, average=True, exchanged=True), ("clear", "evaluations-leave-the-weights")),  # ranks averaged
        (evaluation(**LEFT), ("inconclusive", "weights-changed-for-an-evaluation")),
        (evaluation(**LEFT, returned=True), ("clear", "evaluations-leave-the-weights")),  # rolled back
        (evaluation(**LEFT | {"older": 1.0}), ("clear", "evaluations-leave-the-weights")),  # pruned
        (module(own=4, changed=True), ("found", "state-kept-by-reference")),
        (module(own=4), ("not_applicable", "no-evaluation-between-updates")),
    ],
)
def test_weights_around_an_evaluation(event, expected):
    assert told("weights-put-back", (updates(4), [event])) == expected


def average(update, **fields):
    clean = {"update": update, "number": 0, "held_as": "ema", "tensors": 2, "called": 2, "fitting": 2}
    more = {"moved": update > 1, "weights_moved": update > 1, "evaluated": False, "since_load": 0, "from_file": False}
    return Event("average", update, update, clean | more | {"pull": 0.1, "lag": 5.0} | fields)


LOOKS = (1, 2, 3, 4, 8, 16, 32)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("clear", "averages-follow")),
        ({"moved": False, "evaluated": True}, ("found", "average-never-updated")),
        ({"moved": False, "called": 0}, ("found", "average-misses-names")),
        ({"moved": False}, ("inconclusive", "average-stands-still")),
        ({"moved": False, "weights_moved": False, "evaluated": True}, ("clear", "averages-follow")),
    ],
)
def test_averages(fields, expected):
    assert told("averaged-weights", (updates(40), [average(at, **fields) for at in LOOKS])) == expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [(1, ("found", "average-misses-names")), (0, ("clear", "averages-follow"))],
)
def test_an_average_whose_names_are_asked_for_after_each_update_is_found_sooner(named, expected):
    looks = [average(at, moved=False, called=0, named=named * at) for at in (1, 2, 3, 4, 8, 12)]
    assert told("averaged-weights", (updates(12), looks)) == expected


@pytest.mark.parametrize(
    ("pull", "lag", "from_file", "found"),
    [(0.95, 8.0, True, True), (0.1, 8.0, True, False), (0.95, 1.0, True, False), (0.95, 8.0, False, False)],
)
def test_an_average_that_takes_the_raw_weights_over_after_a_load(pull, lag, from_file, found):
    events = [average(9, since_load=1, from_file=from_file), average(10, since_load=2, pull=pull, lag=lag)]
    status, reason = told("averaged-weights", (updates(12), events))
    assert (status == "found") == found == (reason == "average-starts-again")
