"""What is said of each way of reading: the reason, the numbers in its text, and in which epochs it holds."""

import random

import pytest

from labkit import detect
from labkit.detect.catalogue import said
from labkit.detect.reads.epoch_reads import Reads
from labkit.detect.reads.over_epochs import Judged, over_epochs, too_short
from labkit.detect.verdict import answering

from ..builders import content_of, in_batches, record_of, run_of, shares, shuffled
from . import readings
from .test_strangers_scripts import SCRIPTS, verdicts_of

BY_CONTENT = {"ids": False}
CUT_SHORT = {"complete": False}
FIXED = readings.fixed(97, 2, 8)
PART = [[of_rank[:2] for of_rank in FIXED[0]]]


def all_in_turn(parts, size=120):
    """Epochs that each read one part of the data."""
    order, length = shuffled(size, 1), size // 4
    return [[in_batches(order[part * length + rank : (part + 1) * length : 2], 8) for rank in range(2)] for part in parts]


def oversampled():
    """A list that holds a quarter of the samples twice, dealt out at random."""
    listed = [*range(500), *range(0, 500, 4)]
    order = random.Random(0).sample(listed, len(listed))
    return [[in_batches(share, 8) for share in shares(order, 2)]]


def begun(epochs):
    """The first step of each of so many epochs."""
    return [[of_rank[:1] for of_rank in readings.fixed(1797, 2, 32, seed=epoch)[0]] for epoch in range(epochs)]


def identical_but_for_the_last_step():
    own = in_batches(shuffled(97, 0), 8)
    return [[own, [*own[:-1], own[0][:1]]]]


def not_read(reading, size=97) -> int:
    return size - len({sample for of_rank in reading[0] for batch in of_rank for sample in batch})


OWN_PERMUTATIONS, DRAWN = readings.own_permutations(97, 2, 8), readings.with_replacement(97, 2, 8)
ANSWERS = [  # detector, reading, what else was recorded, status, reason, numbers
    ("coverage", FIXED, {}, "clear", "every-sample-read", {}),
    ("coverage", readings.sampler_drop_last(97, 2, 8), {}, "clear", "only-a-tail-dropped", {"missing": 1}),
    ("coverage", PART, CUT_SHORT, "inconclusive", "epoch-cut-short", {}),
    (
        "coverage",
        [FIXED[0], PART[0], FIXED[1]],
        {},
        "inconclusive",
        "one-epoch-leaves-out",
        {"epoch": 1, "missing": 97 - 32},
    ),
    ("coverage", all_in_turn(range(4)), {"dataset_size": 120}, "clear", "part-after-part", {}),
    ("coverage", all_in_turn(range(2)), {"dataset_size": 120}, "inconclusive", "part-after-part-so-far", {}),
    ("coverage", OWN_PERMUTATIONS, BY_CONTENT, "inconclusive", "as-many-reads-some-equal", {}),
    ("coverage", OWN_PERMUTATIONS, {}, "found", "never-read", {"missing": not_read(OWN_PERMUTATIONS), "samples": 97}),
    (
        "coverage",
        DRAWN,
        {},
        "inconclusive",
        "some-repeated-in-place-of-others",
        {"missing": not_read(DRAWN)},
    ),
    ("coverage", FIXED, {"dataset_size": 300}, "found", "part-of-the-data", {"read": 98, "samples": 300}),
    ("rank-duplicates", FIXED, {}, "clear", "only-padding-shared", {}),
    ("rank-duplicates", readings.filled_from_the_start(97, 2, 8), {}, "clear", "only-filling-shared", {}),
    (
        "rank-duplicates",
        identical_but_for_the_last_step(),
        {},
        "found",
        "ranks-identical-in-most-steps",
        {"ranks": 2, "share": 12 / 13},
    ),
    ("rank-duplicates", OWN_PERMUTATIONS, BY_CONTENT, "inconclusive", "ranks-read-equal-samples", {}),
    ("rank-duplicates", DRAWN, {}, "inconclusive", "meetings-as-with-replacement", {}),
    ("rank-duplicates", oversampled(), {"dataset_size": 500}, "inconclusive", "list-may-repeat-samples", {}),
    ("rank-duplicates", [[r[:6] for r in FIXED[0]]], CUT_SHORT, "clear", "ranks-never-meet", {}),
    (
        "rank-duplicates",
        begun(12),
        CUT_SHORT | {"dataset_size": 1797},
        "clear",
        "ranks-never-meet-in-any-epoch",
        {"epochs": 12},
    ),
    (
        "rank-duplicates",
        [[r[:1] for r in FIXED[0]]],
        CUT_SHORT,
        "inconclusive",
        "too-few-reads-to-meet",
        {"read": 16, "samples": 97},
    ),
    ("rank-duplicates", PART, CUT_SHORT | {"dataset_size": 0}, "inconclusive", "cut-short-and-size-unknown", {}),
    ("worker-duplicates", FIXED, {}, "clear", "each-sample-once", {}),
    ("worker-duplicates", PART, CUT_SHORT, "inconclusive", "workers-may-repeat-later", {}),
    ("worker-duplicates", DRAWN, {}, "inconclusive", "repeats-uneven", {}),
    ("worker-duplicates", readings.unsharded(97, 2, 8), {}, "found", "every-sample-several-times", {"times": 2}),
    ("worker-duplicates", [[[[1], [1]]]], {"dataset_size": 1}, "inconclusive", "repeats-too-few", {}),
    ("order", FIXED[:1], {}, "not_applicable", "too-few-epochs", {"epochs": 1}),
    ("order", FIXED, {}, "clear", "second-epoch-in-another-order", {}),
    ("order", [*FIXED, *readings.fixed(97, 2, 8, seed=7)], {}, "clear", "each-epoch-in-another-order", {"epochs": 4}),
    ("order", [[share[:1] * 5 for share in FIXED[0]]] * 3, {}, "inconclusive", "every-step-the-same-batch", {}),
    (
        "order",
        readings.same_order(9, 1, 4),
        {"dataset_size": 9},
        "inconclusive",
        "chance-may-repeat-an-order",
        {"first": said("epoch-number", epoch=0), "second": said("epoch-number", epoch=1)},
    ),
    ("validation-leak", FIXED, {}, "not_applicable", "no-validation-recorded", {}),
    ("validation-leak", FIXED, {"validation": [[200], [201]]}, "clear", "validation-kept-apart", {}),
    (
        "validation-leak",
        PART,
        CUT_SHORT | {"validation": [[200], [201]]},
        "inconclusive",
        "validation-kept-apart-so-far",
        {},
    ),
    ("validation-leak", FIXED, BY_CONTENT | {"validation": [[1, 200], [201]]}, "inconclusive", "leak-or-copies", {}),
]


def asked(name, reading, given):
    return detect.detector(name)(record_of(run_of(reading, **({"dataset_size": 97, "batch_size": 8} | given))))


@pytest.mark.parametrize(
    ("name", "reading", "given", "status", "reason", "numbers"), ANSWERS, ids=[row[4] for row in ANSWERS]
)
def test_each_way_of_reading_has_its_reason(name, reading, given, status, reason, numbers):
    verdict = asked(name, reading, given)
    assert (verdict.status, verdict.reason, verdict.numbers) == (status, reason, numbers)
    assert verdict.cause


@pytest.mark.parametrize(
    ("script", "name", "reason"),
    [
        ("an_evaluation_on_all_ranks_that_has_no_name_of_its_own", "rank-duplicates", "ranks-share-out-first-pass-only"),
        ("an_evaluation_on_all_ranks_that_has_no_name_of_its_own", "order", "later-pass-in-one-order"),
        ("an_evaluation_on_all_ranks", "validation-leak", "two-data-sets-may-share-ids"),
        ("a_last_training_on_all_data", "validation-leak", "trained-on-after-the-last-validation"),
        ("an_endless_loop_in_one_order", "order", "order-begins-again"),
        ("an_endless_loop", "order", "no-epochs-counted"),
        ("ids_that_number_each_ranks_own_part_in_one_epoch", "coverage", "ids-are-doubtful"),
    ],
)
def test_each_script_is_told_its_reason(script, name, reason, tmp_path):
    assert verdicts_of(SCRIPTS[script][0], tmp_path)[name].reason == reason


def test_samples_whose_content_changes_are_told_so():
    times = iter(range(10**6))
    given = {"ids": False, "content": lambda i: content_of(next(times)), "validation": [[1, 2, 3], [4, 5]]}
    verdict = asked("worker-duplicates", FIXED, given)
    assert (verdict.status, verdict.reason) == ("inconclusive", "contents-change")
    assert verdict.numbers == {"different": 2 * 98, "samples": 97}


# in which epochs something holds


def judged(statuses, kind="epochs"):
    """Epochs, passes of one epoch, or stretches of it, each with a verdict of its own."""
    how = {"epochs": {}, "passes": {"part": 0}, "stretches": {"part": 0, "stretch": True}}[kind]
    made = []
    for number, status in enumerate(statuses):
        place = {"epoch": number} if kind == "epochs" else {"epoch": 0, **how, "part": number}
        seen = Reads(**{"key": "id", "batches": (), "complete": True, **how, **place})
        short = status == "short"
        verdict = answering("coverage", "?")("inconclusive" if short else status, "every-sample-read")
        made.append(Judged(seen, too_short(verdict) if short else verdict))
    return made


@pytest.mark.parametrize(
    ("statuses", "kind", "note"),
    [
        (["found"] * 3, "epochs", said("in-all-epochs", parts=3)),
        (["found"] * 3, "passes", said("in-all-passes", parts=3)),
        (["found"] * 3, "stretches", said("in-all-stretches", parts=3)),
        (["clear", "found", "found"], "epochs", said("from-epochs", first="epoch 1", found=2, parts=3)),
        (["clear", "found", "found"], "passes", said("from-passes", first="pass 1 of epoch 0", found=2, parts=3)),
        (["clear", "found", "found"], "stretches", said("from-stretches", first="stretch 1", found=2, parts=3)),
        (["clear", "found", "clear"], "epochs", said("first-in-epochs", first="epoch 1", found=1, parts=3)),
        (["found", "clear", "found"], "passes", said("first-in-passes", first="pass 0 of epoch 0", found=2, parts=3)),
        (["clear", "clear", "found"], "stretches", said("first-in-stretches", first="stretch 2", found=1, parts=3)),
        (["short", "clear", "clear"], "epochs", said("part-cut-short", parts=["epoch 0"])),
        (["short", "clear", "short"], "epochs", said("parts-cut-short", parts=["epoch 0", "epoch 2"])),
        (["found"], "epochs", None),
        (["clear", "clear"], "epochs", None),
    ],
)
def test_where_it_holds_follows_the_cause(statuses, kind, note):
    verdict = over_epochs(judged(statuses, kind))
    assert [one.key for one in verdict.notes] == ([note.key] if note else [])
    assert verdict.cause == "every sample is read" + (str(note) if note else "")


def test_where_it_holds_is_a_whole_sentence():
    verdict = over_epochs(judged(["short", "clear", "short"]))
    assert verdict.cause == "every sample is read; epoch 0 and epoch 2 were cut short and cannot be judged"
    verdict = over_epochs(judged(["clear", "found", "found"], "passes"))
    assert verdict.cause == "every sample is read, from pass 1 of epoch 0 on: in 2 of 3 passes"
