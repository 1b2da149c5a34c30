"""What the questions about the weight of ranks, micro-batches and targets say, on records made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from labkit.detect.weighting.taken import fit, looks
from labkit.record.schema import Event, RankLog, Run, Span

from ..builders import head, step
from .test_doctor_detectors import said, told

GROUPS, DIRECTIONS = 6, 4
MEAN, SUM, SEVERAL = 1, 2, 3
draw = np.random.default_rng(0)


def text(numbers):
    return " ".join(f"{value:.9g}" for value in np.ravel(numbers))


def gradient(update, earlier, last, taken, **fields):
    names = ", ".join(f"layer.{at}" for at in range(GROUPS))
    known = {
        "update": update,
        "optimizer": 0,
        "tensors": GROUPS,
        "left_out": 0,
        "passes": 2,
        "clipped": False,
        "scale": 1.0,
        "formats": "float32",
        "names": names if update == 1 else "",
        "earlier": text(earlier),
        "last": text(last),
        "taken": text(taken),
    }
    return Event("gradient", update, 0, known | fields)


def drawn(ranks):
    return draw.normal(size=(ranks, GROUPS, DIRECTIONS)), draw.normal(size=(ranks, GROUPS, DIRECTIONS))


def taking(take, ranks=2, updates=(1, 2, 4), **fields):
    """Events by rank: `take(earlier, last)` gives what each rank's optimizer took."""
    events = [[] for _ in range(ranks)]
    for update in updates:
        earlier, last = drawn(ranks)
        taken = np.broadcast_to(take(earlier, last), earlier.shape)
        for rank in range(ranks):
            events[rank].append(gradient(update, earlier[rank], last[rank], taken[rank], **fields))
    return events


def window(number, parts, fetches=0, **counts):
    """A step with one update; parts as (kind, share, targets), with line and inputs where they are given."""
    whole = [(*part, 9, at + 1)[:5] if len(part) == 3 else part for at, part in enumerate(parts)]
    names = ("loss_kind", "loss_share", "loss_targets", "loss_site", "loss_inputs")
    columns = [list(column) for column in zip(*whole, strict=True)]
    columns[1] = [round(value * 1e9) for value in columns[1]]
    series = dict(zip(names, columns, strict=True))
    spans = [Span("fetch", "data", number * 100, number * 100 + 1)] * fetches
    return step(number, counts={"updates": 1, **counts}, series=series, spans=spans)


def form(line=9, loss="NllLoss", kind="mean", divided_by="", source=""):
    fields = {
        "where": f"train.py:{line}",
        "loss": loss,
        "kind": kind,
        "terms": 1,
        "divided_by": divided_by,
        "source": source,
    }
    return Event("loss_form", 0, 0, fields)


def mean_of(earlier, last):
    return (earlier + last).mean(0)


def run_of(events):
    ranks = [RankLog(head(rank, len(events)), (), tuple(of)) for rank, of in enumerate(events)]
    return Run("variant", tuple(ranks), 1.0)


# What was taken


@pytest.mark.parametrize(
    ("take", "what", "factor"),
    [
        (mean_of, "mean over ranks", 1.0),
        (lambda earlier, last: 2 * mean_of(earlier, last), "mean over ranks", 2.0),
        (lambda earlier, last: earlier + last, "own rank", 1.0),
        (lambda earlier, last: earlier.mean(0) + last, "last pass own", 1.0),
        (lambda earlier, last: earlier.mean(0) + 3 * last.mean(0), "passes unequal", 3.0),
        (lambda earlier, last: np.sign(mean_of(earlier, last)), "neither", None),
    ],
)
def test_the_combination_that_was_taken_is_found(take, what, factor):
    found = fit(looks(run_of(taking(take)))[0])
    assert found.what == what
    assert factor is None or found.factor == pytest.approx(factor)


def test_what_a_scaler_divided_by_is_taken_into_account():
    scaled = taking(lambda earlier, last: mean_of(earlier, last) / 1024, scale=1024.0)
    assert fit(looks(run_of(scaled))[0]).factor == pytest.approx(1.0)


def test_a_group_that_is_not_reduced_is_told_by_its_number():
    def take(earlier, last):
        taken = np.broadcast_to(mean_of(earlier, last), earlier.shape).copy()
        taken[:, 3] = (earlier + last)[:, 3]
        return taken

    assert fit(looks(run_of(taking(take)))[0]).own == (3,)


# gradient-average


def average(take, parts, forms=(), ranks=2, counts=None, **fields):
    events = taking(take, ranks, **fields)
    steps = [
        [window(number, of(rank) if callable(of := parts) else of, **(counts or {})) for number in range(8)]
        for rank in range(ranks)
    ]
    return [(steps[rank], [*events[rank], *forms]) for rank in range(ranks)]


def times(factor):
    return lambda earlier, last: factor * mean_of(earlier, last)


QUARTERS = [(MEAN, 0.25, 8), (MEAN, 0.25, 8)]
ONE = [(MEAN, 0.5, 8), (MEAN, 0.5, 8)]


@pytest.mark.parametrize(
    ("factor", "parts", "forms", "ranks", "expected"),
    [
        (1, ONE, (), 2, ("clear", "gradients-are-the-mean")),
        (2, ONE, (), 2, ("found", "gradients-summed")),
        (2, [(MEAN, 1.0, 8)] * 2, (), 2, ("found", "gradients-summed")),  # and not divided by two micro-batches either
        (2, QUARTERS, (), 2, ("clear", "gradients-scaled-by-the-script")),  # the loss is divided instead
        (2, [(SUM, 0.25, 8)] * 2, (), 2, ("clear", "gradients-scaled-by-the-script")),
        (2, [(0, 0, 0)] * 2, (), 2, ("inconclusive", "gradients-summed-and-loss-not-known")),
        (0.5, ONE, (), 2, ("found", "gradients-divided-twice")),
        (0.7, ONE, (), 2, ("clear", "gradients-scaled-by-the-script")),
        (
            1,
            QUARTERS,
            [form(divided_by="2 2", source="K, world_size")],
            2,
            ("found", "loss-divided-by-the-ranks"),
        ),
        (1, QUARTERS, [form(divided_by="2 2", source="K, 2, world_size")], 2, ("clear", "gradients-are-the-mean")),
        (1, QUARTERS, [form(divided_by="2 2", source="K")], 2, ("clear", "gradients-are-the-mean")),
        (1, QUARTERS, [form(source="world_size")], 2, ("clear", "gradients-are-the-mean")),  # half on purpose
        (1, ONE, [form(divided_by="2", source="world_size")], 2, ("clear", "gradients-are-the-mean")),  # by 2 micro-batches
        (1, ONE, (), 1, ("clear", "gradients-are-the-mean")),
    ],
)
def test_factors(factor, parts, forms, ranks, expected):
    assert said("gradient-average", average(times(factor), parts, forms, ranks)) == expected


@pytest.mark.parametrize(
    ("targets", "counts", "expected"),
    [
        ((12, 20), {"script_collectives": 1}, ("found", "global-count-averaged-again")),
        ((12, 20), {}, ("inconclusive", "sums-look-divided-twice")),
        ((16, 16), {"script_collectives": 1}, ("inconclusive", "sums-look-divided-twice")),
    ],
)
def test_sums_divided_by_the_targets_of_all_ranks(targets, counts, expected):
    def parts(rank):
        return [(SUM, targets[rank] / 2 / sum(targets), targets[rank] // 2)] * 2

    assert said("gradient-average", average(times(1), parts, counts=counts)) == expected
    doubled = average(times(1), lambda rank: [(kind, 2 * share, of) for kind, share, of in parts(rank)], counts=counts)
    assert said("gradient-average", doubled) == ("clear", "gradients-are-the-mean")


def in_part(earlier, last):
    taken = np.broadcast_to(mean_of(earlier, last), earlier.shape).copy()
    taken[:, 3] = (earlier + last)[:, 3]
    return taken


def test_gradients_that_stay_on_their_rank():
    verdict = told("gradient-average", average(in_part, ONE))
    assert (verdict.status, verdict.reason) == ("inconclusive", "some-gradients-stay-on-their-rank")
    assert "layer.3" in verdict.cause
    alone = average(lambda earlier, last: earlier + last, ONE)
    assert said("gradient-average", alone) == ("not_applicable", "gradients-stay-on-their-rank")


def test_passes_that_do_not_weigh_alike():
    early = average(lambda earlier, last: earlier.mean(0) + last, ONE)
    assert said("gradient-average", early) == ("found", "reduced-before-the-last-pass")
    more = average(lambda earlier, last: 2 * earlier.mean(0) + last.mean(0), ONE)
    assert said("gradient-average", more) == ("inconclusive", "passes-weigh-unequally")
    changed = average(lambda earlier, last: np.sign(earlier + last), ONE)
    assert said("gradient-average", changed) == ("inconclusive", "gradients-changed-by-the-script")


@pytest.mark.parametrize(
    ("passes", "kept", "formats", "expected"),
    [
        (64, 0.7, "bfloat16", ("found", "gradients-lost-in-16-bits")),
        (64, 0.98, "bfloat16", ("clear", "gradients-are-the-mean")),
        (4, 0.7, "bfloat16", ("clear", "gradients-scaled-by-the-script")),
        (64, 0.7, "float32", ("clear", "gradients-scaled-by-the-script")),
    ],
)
def test_sums_in_16_bits(passes, kept, formats, expected):
    assert said("gradient-average", average(times(kept), ONE, ranks=1, passes=passes, formats=formats)) == expected


def test_work_that_is_not_waited_for():
    late = {"gradient_works": 4, "gradient_works_not_waited_for": 1}
    seen = [Event("not_waited_for", 0, 0, {"where": "train.py:12"})]
    verdict = told("gradient-average", average(times(1), ONE, seen, counts=late))
    assert (verdict.reason, verdict.where) == ("reduction-not-waited-for", "train.py:12")
    waited = average(times(1), ONE, counts={"gradient_works": 4, "gradient_works_not_waited_for": 0})
    assert said("gradient-average", waited)[0] == "clear"


def test_gradients_that_nobody_compared():
    nothing = [([window(0, ONE)], [])]
    assert said("gradient-average", nothing) == ("not_applicable", "no-gradients-compared")
    parts = [([window(0, ONE)], [gradient(1, [], [], [], tensors=0, left_out=4)])]
    assert said("gradient-average", parts) == ("not_applicable", "gradients-are-parts")


# accumulated-loss


def accumulated(parts, forms=(), factor=1.0, fetches=2, updates=8, last=None):
    events = taking(times(factor), 1)[0]
    steps = [window(number, parts, fetches) for number in range(updates)]
    return [(steps if last is None else [*steps, window(updates, last, fetches)], [*events, *forms])]


def both(share, inputs=(1, 2), sites=(9, 9), kind=MEAN):
    return [(kind, share, 8, site, of) for of, site in zip(inputs, sites, strict=True)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (accumulated(both(0.5)), ("clear", "micro-batches-are-averaged")),
        (accumulated(both(1.0)), ("found", "accumulation-not-divided")),
        (accumulated(both(1.0, kind=SEVERAL)), ("found", "accumulation-not-divided")),
        (accumulated(both(1.0), fetches=0), ("found", "accumulation-not-divided")),  # drawn in the loop, inputs differ
        (accumulated(both(1.0, inputs=(5, 5)), fetches=1), ("inconclusive", "passes-may-be-losses-of-one-batch")),
        (accumulated(both(1.0, inputs=(0, 0)), fetches=0), ("inconclusive", "passes-may-be-losses-of-one-batch")),
        (accumulated(both(1.0, sites=(9, 12))), ("not_applicable", "passes-are-no-micro-batches")),  # a GAN's two losses
        (accumulated(both(1.0), factor=0.5), ("clear", "micro-batches-are-averaged")),  # gradients are divided instead
        (accumulated(both(0.25), [form(divided_by="2 2")]), ("found", "loss-divided-twice")),
        (accumulated(both(0.25), [form(divided_by="2")]), ("clear", "micro-batches-weighted-by-the-script")),
        (accumulated(both(0.5), last=both(0.5)[:1]), ("inconclusive", "last-window-too-light")),
        (accumulated(both(0.5), last=[(MEAN, 1.0, 8, 9, 1)]), ("clear", "micro-batches-are-averaged")),
        (accumulated(both(0.5)[:1]), ("not_applicable", "one-pass-an-update")),
        (accumulated(both(1.0), updates=2), ("inconclusive", "too-few-windows")),
    ],
)
def test_accumulation(seen, expected):
    assert said("accumulated-loss", seen) == expected


def test_accumulation_whose_gradients_nobody_knows():
    changed = [([window(number, both(1.0), 2) for number in range(8)], taking(lambda e, s: np.sign(e + s), 1)[0])]
    assert said("accumulated-loss", changed) == ("inconclusive", "loss-of-micro-batches-not-known")
    assert said("accumulated-loss", [([step(0, counts={"updates": 1})], [])]) == ("not_applicable", "no-losses-looked-at")


# loss-weighting


def weighed(*of_ranks, loss="NllLoss", updates=8, events=()):
    return [([window(number, parts) for number in range(updates)], [form(loss=loss), *events]) for parts in of_ranks]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (weighed([(MEAN, 1, 8)], [(MEAN, 1, 8)]), ("clear", "targets-weigh-alike")),
        (weighed([(MEAN, 0.25, of) for of in (100, 4, 4, 4)]), ("found", "unequal-micro-batches-averaged")),
        (weighed([(MEAN, 1, 100)], [(MEAN, 1, 20)]), ("found", "unequal-ranks-averaged")),
        (weighed([(MEAN, 1, 100)], [(MEAN, 1, 90)]), ("clear", "targets-weigh-alike")),
        (weighed([(MEAN, 1, 100)], [(MEAN, 1, 70)]), ("inconclusive", "targets-weigh-somewhat-unequally")),
        (weighed([(MEAN, 1, 100)], [(MEAN, 1, 20)], loss="mean"), ("inconclusive", "targets-weigh-somewhat-unequally")),
        (weighed([(SUM, 100 / 60, 100)], [(SUM, 20 / 60, 20)]), ("clear", "targets-weigh-alike")),
        (weighed([(SUM, 1, 100)], [(SUM, 1, 20)]), ("found", "unequal-ranks-averaged")),  # each by its own count
        (weighed([(MEAN, 1, 8)]), ("not_applicable", "one-micro-batch-an-update")),
        (weighed([(0, 0, 0)], [(0, 0, 0)]), ("not_applicable", "targets-not-known")),
        (weighed([(MEAN, 1, 100)], [(MEAN, 1, 20)], updates=3), ("inconclusive", "too-few-windows")),
    ],
)
def test_weights_of_targets(seen, expected):
    assert said("loss-weighting", seen) == expected


def test_gradients_that_the_script_weighs_by_targets_accuse_nobody():
    def by_targets(earlier, last):
        return (earlier + last)[0] * 100 / 120 + (earlier + last)[1] * 20 / 120

    ranks = weighed([(MEAN, 1, 100)], [(MEAN, 1, 20)], events=())
    changed = [(steps, [*events, *own]) for (steps, events), own in zip(ranks, taking(by_targets), strict=True)]
    assert said("loss-weighting", changed) == ("inconclusive", "gradients-changed-by-the-script")
    averaged = [(steps, [*events, *own]) for (steps, events), own in zip(ranks, taking(mean_of), strict=True)]
    assert said("loss-weighting", averaged) == ("found", "unequal-ranks-averaged")


def test_ranks_that_train_apart_are_not_weighed_against_each_other():
    apart = taking(lambda earlier, last: earlier + last)
    seen = weighed([(MEAN, 1, 100)], [(MEAN, 1, 20)])
    logs = [(steps, [*events, *apart[rank]]) for rank, (steps, events) in enumerate(seen)]
    assert said("loss-weighting", logs) == ("not_applicable", "one-micro-batch-an-update")


def test_one_short_last_batch_accuses_nobody():
    steps = [window(number, [(MEAN, 1, 8)]) for number in range(8)]
    short = [*steps[:-1], window(7, [(MEAN, 1, 1)])]
    assert said("loss-weighting", [(steps, [form()]), (short, [form()])]) == ("clear", "targets-weigh-alike")


# gathered-features


def gathered(used=True, own_back=False, losses=(1.0, 2.0), times=3, share=1.0):
    def event(loss):
        return Event("gathered", 0, 0, {"where": "a.py:4", "used": used, "own_back": own_back, "loss": loss, "ranks": 2})

    steps = [window(number, [(MEAN, share, 8)]) for number in range(times)]
    return [(steps, [event(loss)] * times) for loss in losses]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (gathered(), ("found", "gathered-without-gradient")),
        (gathered(times=1), ("inconclusive", "gathered-too-seldom")),
        (gathered(used=False), ("inconclusive", "gathered-and-not-seen-in-the-loss")),
        (gathered(own_back=True), ("inconclusive", "own-features-alone-have-a-gradient")),
        (gathered(own_back=True, losses=(1.0, 1.0)), ("found", "own-features-alone-of-one-loss")),
        (gathered(own_back=True, losses=(1.0, 1.0), share=2.0), ("clear", "own-features-times-the-ranks")),
        ([([window(0, ONE)], [])], ("not_applicable", "nothing-gathered-for-a-gradient")),
    ],
)
def test_features_gathered_without_gradient(seen, expected):
    assert said("gathered-features", seen) == expected
