"""What the questions say that only the doctor's watchers can answer, on records made by hand."""

from __future__ import annotations

import pytest

from labkit.detect import ask
from labkit.record.schema import Event, RankLog, Run

from ..builders import head, record_of, step

WATCHED = {"watched_by": "doctor", "loop_where": "train.py:9"}


def told(name, logs, **facts):
    """What a detector says of ranks, each given as (steps, events) or (steps, events, whether it came to its end)."""
    ranks = [
        RankLog(head(rank, len(logs), **WATCHED, **facts), tuple(of[0]), tuple(of[1]), (), {}, len(of) < 3 or of[2])
        for rank, of in enumerate(logs)
    ]
    verdict = ask(name, record_of(Run("variant", tuple(ranks), 1.0)))
    assert verdict.cause and str(verdict)  # its text can be written
    return verdict


def said(name, logs, **facts):
    verdict = told(name, logs, **facts)
    return verdict.status, verdict.reason


# replicas-differ


def replica(update, weights, model=0, **fields):
    held = {
        "update": update,
        "model": model,
        "shape": "s",
        "wrapped": True,
        "sharded": False,
        "weights": weights,
        "buffers": "b",
    }
    return Event("replica", update, 0, held | fields)


def updates(count, **counts):
    return [step(number, counts={"updates": 1, **counts}) for number in range(count)]


def replicas(*of_ranks, **counts):
    """Ranks with these weights after updates 1, 2, …"""
    return [
        (updates(len(weights), **counts), [replica(at, word) for at, word in enumerate(weights, 1)]) for weights in of_ranks
    ]


@pytest.mark.parametrize(
    ("ranks", "counts", "facts", "expected"),
    [
        (["abc", "abc"], {}, {}, ("clear", "weights-equal")),
        (["abc", "abd"], {"reductions": 1}, {}, ("found", "weights-drift-under-ddp")),
        (["abc", "xyz"], {}, {"ddp_world_size": 2}, ("found", "ddp-bypassed")),
        (["abc", "xyz"], {}, {}, ("found", "nothing-is-reduced")),
        (["abc", "xyz"], {"script_collectives": 1}, {}, ("inconclusive", "weights-differ-and-ranks-talk")),
        (["abc", "xbz"], {}, {}, ("inconclusive", "weights-meet-again")),
        (["abc"], {}, {}, ("not_applicable", "one-rank-holds-one-model")),
        (["", ""], {}, {}, ("not_applicable", "no-weights-compared")),
    ],
)
def test_replicas(ranks, counts, facts, expected):
    assert said("replicas-differ", replicas(*ranks, **counts), **facts) == expected


def test_replicas_that_are_parts_of_a_model_are_not_compared():
    parts = [(updates(1), [replica(1, "a", sharded=True)]), (updates(1), [replica(1, "b", sharded=True)])]
    assert said("replicas-differ", parts) == ("not_applicable", "ranks-hold-parts")
    stages = [(updates(1), [replica(1, "a")]), (updates(1), [replica(1, "b", shape="t")])]
    assert said("replicas-differ", stages) == ("not_applicable", "ranks-hold-parts")


TALK = ("inconclusive", "weights-differ-and-ranks-talk")


def looked(at, tokens, **fields):
    """A look at four parameters, a letter a token."""
    return replica(
        at,
        "".join(tokens),
        each=" ".join(tokens),
        named="a b c d|",
        norm=1.0,
        mark=float(sum(map(ord, "".join(tokens)))),
        **fields,
    )


def update_made(at, gradients, **fields):
    same = {"layout": "l", "loose": "", "state": "s", "settings": "1 tensor: momentum=0.9, nesterov=False", "elements": 500}
    return Event("update_made", at, 0, {"update": at, "optimizer": 0, "gradients": " ".join(gradients), **same, **fields})


def ranks_of(*of_ranks, **counts):
    """Ranks with these events each."""
    return [(updates(4, **counts), events) for events in of_ranks]


def pair(first, second, one, other, *, start=None, wrapped=False, own=None, **counts):
    """Two ranks: what their weights are before (the same, or `start`), and after two updates with these gradients."""
    begin = start or ("pqrs", "pqrs")
    of_ranks = []
    for rank, (weights, gradients) in enumerate(((first, one), (second, other))):
        more = (own or ({}, {}))[rank]
        events = [looked(0, begin[rank], start=True, wrapped=wrapped)]
        for at in (1, 2, 3):
            events += [update_made(at, gradients, **more), looked(at, weights, wrapped=wrapped)]
        of_ranks.append(events)
    return ranks_of(*of_ranks, **counts)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (pair("abcd", "abcd", "wxyz", "wxyz"), ("clear", "weights-equal")),
        (pair("abcd", "efgh", "wxyz", "wxyz", start=("pqrs", "tuvw")), ("found", "ranks-start-apart")),
        (
            pair("abcd", "efgh", "wxyz", "wxyz", start=("pqrs", "tuvw"), wrapped=True, reductions=1),
            ("found", "changed-after-the-wrap"),
        ),
        (pair("abcd", "abce", "wxyz", "wxyv"), ("found", "some-gradients-not-reduced")),
        (pair("abcd", "abce", "wxyz", "wxyv", exchanged_elements=10, exchanged_in_forward=10), TALK),
        (pair("abcd", "efgh", "wxyz", "stuv", exchanged_elements=600), TALK),
        (pair("abcd", "efgh", "wxyz", "stuv", exchanged_elements=1, script_collectives=1), ("found", "nothing-is-reduced")),
        (pair("abcd", "abcd", "wxyz", "wxyz", start=("pqrs", "tuvw")), ("clear", "weights-equal")),
        (pair("abcd", "efgh", "wxyz", "wxyz"), ("found", "weights-drift-with-equal-gradients")),
        (
            pair("abcd", "efgh", "wxyz", "wxyz", wrapped=True, reductions=1, own=({"state": "s"}, {"state": "t"})),
            ("found", "state-differs-between-ranks"),
        ),
        (
            pair("abcd", "efgh", "wxyz", "wxyz", wrapped=True, reductions=1, own=({}, {"settings": "1 tensor: momentum=0"})),
            ("found", "settings-differ-between-ranks"),
        ),
        (pair("abcd", "efgh", "wxyz", "stuv", wrapped=True, reductions=1), ("found", "gradients-changed-after-ddp")),
        (pair("abcd", "abce", "wxyz", "wxyz", wrapped=True, reductions=1), ("found", "some-weights-drift-under-ddp")),
    ],
)
def test_where_a_difference_comes_from(ranks, expected):
    assert said("replicas-differ", ranks) == expected


FORGOTTEN, KEPT = ("found", "model-outside-the-wrapper"), ("inconclusive", "part-kept-by-each-rank")
SAID = Event("source_read", 1, 0, {"files": 1, "own_parts": "a.py:3"})


def saved_to(path):
    flags = ("over", "optimizer", "scheduler", "scaler", "has_scheduler", "has_scaler")
    return Event("torch_save", 1, 0, {"path": path, "where": "a.py:8", **dict.fromkeys(flags, False)})


@pytest.mark.parametrize(
    ("start", "more", "expected"),
    [
        (("pqrs", "pqrs"), ((), ()), FORGOTTEN),
        (("pqrs", "tuvw"), ((), ()), KEPT),  # each rank may have a head of its own on purpose
        (("pqrs", "pqrs"), ((SAID,), ()), KEPT),
        (("pqrs", "pqrs"), ((Event("source_read", 1, 0, {"files": 1, "own_parts": ""}),), ()), FORGOTTEN),
        (("pqrs", "pqrs"), ((saved_to("0.pt"),), (saved_to("1.pt"),)), KEPT),
        (("pqrs", "pqrs"), ((saved_to("a.pt"),), ()), FORGOTTEN),
        (("pqrs", "pqrs"), ((saved_to("a.pt"), saved_to("0.pt")), (saved_to("a.pt"),)), FORGOTTEN),
    ],
)
def test_a_model_beside_the_one_that_is_wrapped(start, more, expected):
    of_ranks = []
    for own, later, others in zip(start, ("efgh", "ijkl"), more, strict=True):
        events = [*others, looked(0, "mnop", start=True), looked(0, own, start=True, wrapped=False, model=1)]
        for at in (1, 2, 3):
            events += [looked(at, "abcd"), looked(at, later, wrapped=False, model=1)]
        of_ranks.append(events)
    assert said("replicas-differ", ranks_of(*of_ranks, reductions=1)) == expected


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(([1, 2], [3, 4]), KEPT), (([1, 2], [2, 3]), FORGOTTEN), ((range(0, 30), range(40, 70)), FORGOTTEN)],
)
def test_a_model_beside_the_one_that_is_wrapped_whose_ranks_read_other_classes(classes, expected):
    def rank(later, labels):
        counts, read = {"updates": 1, "reductions": 1}, [*labels] * (60 // len(labels))
        steps = [step(n, counts=counts, digests={"targets": read} if n == 0 else {}) for n in range(4)]
        looks = [looked(at, "abcd") for at in (1, 2, 3)] + [looked(at, later, wrapped=False, model=1) for at in (1, 2, 3)]
        start = [looked(0, "mnop", start=True), looked(0, "pqrs", start=True, wrapped=False, model=1)]
        return steps, [*start, *looks]

    ranks = [rank(later, labels) for later, labels in zip(("efgh", "ijkl"), classes, strict=True)]
    assert said("replicas-differ", ranks) == expected


def test_a_tensor_of_no_module_that_drifts():
    ranks = pair("abcd", "abcd", "wxyz", "wxyz", own=({"loose": "1", "after": "m n"}, {"loose": "1", "after": "m o"}))
    assert said("replicas-differ", ranks) == ("found", "loose-tensors-drift")
    meant = [(steps, [*events, SAID]) for steps, events in ranks]
    assert said("replicas-differ", meant) == KEPT


def test_parts_are_compared_with_the_same_part_alone_and_what_cannot_be_read_with_nothing():
    sharded = [
        [looked(at, tokens, sharded=True, wrapped=False) for at in (1, 2)]
        for tokens in (["1:a", "b", "c", "-"], ["2:d", "b", "c", "e"])
    ]
    assert said("replicas-differ", ranks_of(*sharded)) == ("clear", "weights-equal")
    sharded = [
        [looked(at, tokens, sharded=True, wrapped=False) for at in (1, 2)]
        for tokens in (["1:a", "b", "c", "d"], ["2:d", "b", "c", "e"])
    ]
    assert said("replicas-differ", ranks_of(*sharded)) == ("found", "parameters-outside-the-wrapper")


def test_number_formats_that_differ_and_rounding_that_does():
    types = [[looked(1, "abcd", names="n", types=kind)] for kind in ("float32", "bfloat16")]
    assert said("replicas-differ", ranks_of(*types)) == ("found", "types-differ-between-ranks")
    near = [
        [replica(at, "w", each=" ".join(tokens), norm=1.0, mark=mark) for at in (1, 2)]
        for tokens, mark in (("abcd", 0.5), ("efgh", 0.5 + 1e-8))
    ]
    assert said("replicas-differ", ranks_of(*near)) == ("inconclusive", "weights-differ-by-rounding")


# stands-still


def stand(waits_in, where, in_collective, number=3):
    fields = {"waits_in": waits_in, "where": where, "in_collective": in_collective, "number": number}
    return Event("stood_still", -1, 0, fields)


@pytest.mark.parametrize(
    ("stands", "expected", "where"),
    [
        (
            [stand("all_reduce", "a.py:3", True), stand("barrier", "a.py:5", True)],
            "ranks-in-different-collectives",
            "a.py:3",
        ),
        ([stand("all_reduce", "a.py:3", True), stand("sleep", "a.py:7", False)], "ranks-never-came", "a.py:7"),
        ([stand("all_reduce", "a.py:3", True), None], "ranks-left-the-others-waiting", "a.py:3"),
        ([stand("all_reduce", "a.py:3", True, 4), stand("all_reduce", "a.py:3", True, 5)], "ranks-out-of-step", "a.py:3"),
        ([stand("all_reduce", "a.py:3", True), stand("all_reduce", "a.py:3", True)], "all-in-one-collective", None),
        ([stand("sleep", "a.py:3", False), stand("sleep", "a.py:3", False)], "still-outside-collectives", None),
        ([None, None], "every-rank-came-to-its-end", None),
    ],
)
def test_where_ranks_stand(stands, expected, where):
    logs = [(updates(2), [one] if one else [], one is None) for one in stands]
    verdict = told("stands-still", logs)
    assert (verdict.reason, verdict.where) == (expected, where)
    assert (verdict.status == "found") == (where is not None)


def gave_up(waits_in, where, number=3):
    fields = {"error": "RuntimeError", "message": "Connection closed by peer", "where": where, "waits_in": waits_in}
    return Event("raised", 1, 0, {**fields, "of_others": True, "number": number, "given": "float32 [4]"})


RAISED = Event("raised", 1, 0, {**gave_up("", "a.py:7").fields, "error": "ValueError", "of_others": False})
DIED = Event(
    "stood_still", -1, 0, {**stand("all_reduce", "a.py:3", True).fields, "died_of": "SIGABRT", "given": "float32 [5]"}
)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([gave_up("backward", "a.py:3"), None], ("found", "ranks-left-the-others-waiting")),
        ([gave_up("backward", "a.py:3"), RAISED], ("inconclusive", "ranks-failed-before")),
        ([RAISED, RAISED], ("not_applicable", "not-seen-standing-still")),
        ([gave_up("backward", "a.py:3"), DIED], ("found", "ranks-in-different-collectives")),
        ([gave_up("all_reduce", "a.py:3"), DIED], ("found", "ranks-give-different-tensors")),
        ([gave_up("destroy_process_group", "a.py:3"), None], ("not_applicable", "not-seen-standing-still")),
        ([stand("recv", "a.py:3", True)] * 2, ("found", "ranks-wait-for-each-other")),
    ],
)
def test_ranks_that_gave_up_waiting_or_died(ends, expected):
    assert said("stands-still", [(updates(2), [one] if one else [], one is None) for one in ends]) == expected


def test_collectives_that_return_and_do_not_match():
    of_ranks = [([step(0, series={"collective_calls": calls})], []) for calls in ([4, 5, 6], [4, 7, 6])]
    verdict = told("stands-still", of_ranks)
    assert (verdict.status, verdict.reason, verdict.numbers["call"]) == ("found", "collectives-do-not-match", 2)
    assert said("stands-still", [of_ranks[0], of_ranks[0]])[0] == "clear"


# barriers


@pytest.mark.parametrize(
    ("each", "expected"),
    [
        ([1] * 10, ("found", "barrier-in-every-step")),
        ([0, 0, 0, 0, 1] * 2, ("clear", "no-barrier-in-every-step")),
        ([1] * 4, ("inconclusive", "too-few-updates-for-barriers")),
    ],
)
def test_barriers(each, expected):
    log = ([step(at, counts={"updates": 1, "barriers": count}) for at, count in enumerate(each)], [])
    assert said("barriers", [log, log]) == expected
    assert said("barriers", [log])[0] == "not_applicable"


# model-start


def begins(**fields):
    clean = {"model": 0, "unwritten": 0, "unwritten_buffers": 0, "unfit": 0, "untied": 0}
    names = {name: "a" for name in ("unwritten_names", "unwritten_buffer_names", "unfit_names", "untied_names")}
    return Event("model_start", 0, 0, {**clean, **names, "untied_where": "a.py:2", **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("clear", "starts-as-given")),
        ({"unwritten": 2}, ("found", "parameters-never-written")),
        ({"unwritten_buffers": 1}, ("found", "buffers-never-written")),
        ({"unfit": 1}, ("found", "weights-not-finite-at-the-start")),
        ({"untied": 1}, ("found", "tied-tensors-parted")),
    ],
)
def test_starts(fields, expected):
    assert said("model-start", [(updates(2), [begins()]), (updates(2), [begins(**fields)])]) == expected


def test_buffers_that_differ_before_the_first_pass_and_models_that_nobody_saw():
    looks = [[begins(), looked(0, "abcd", start=True, each_buffer=buffer)] for buffer in ("m", "n")]
    assert said("model-start", ranks_of(*looks)) == ("inconclusive", "buffers-differ-at-the-start")
    assert said("model-start", ranks_of([], [])) == ("not_applicable", "no-start-seen")


# same-draws


def called(*each, samples=None):
    """A rank whose model is called with these tensors, call by call."""
    events = [Event("inputs", at, 0, {"model": 0, "call": at, "each": tokens}) for at, tokens in enumerate(each, 1)]
    digests = {} if samples is None else {"train": samples}
    return [step(at, counts={"updates": 1}, digests=digests) for at in range(len(each))], [replica(1, "w"), *events]


OWN, OTHER, NOISE = ["a", "b", "c", "d"], ["e", "f", "g", "h"], ["m", "n", "o", "p"]


def both(*columns):
    return [" ".join(tokens) for tokens in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (called(*both(OWN, NOISE)), called(*both(OTHER, NOISE)), ("found", "ranks-draw-the-same")),
        (called(*NOISE, samples=[1, 2]), called(*NOISE, samples=[3, 4]), ("found", "ranks-draw-the-same")),
        (called(*NOISE, samples=[1, 2]), called(*NOISE, samples=[1, 2]), ("not_applicable", "ranks-read-the-same")),
        (called(*NOISE), called(*NOISE), ("not_applicable", "ranks-read-the-same")),
        (called(*both(OWN, ["m"] * 4)), called(*both(OTHER, ["m"] * 4)), ("clear", "ranks-draw-apart")),
        (called(*OWN), called(*OTHER), ("clear", "ranks-draw-apart")),
        (called(*NOISE[:2]), called(*NOISE[:2]), ("not_applicable", "no-inputs-compared")),
    ],
)
def test_random_numbers_of_ranks(one, other, expected):
    assert said("same-draws", [one, other]) == expected
    assert said("same-draws", [one])[0] == "not_applicable"


# train-mode


def evaluated(**fields):
    over = {"loader": 1, "batches": 4, "in_train_mode": 4, "in_eval_mode": 0, "trains_too": False, "where": "a.py:3"}
    return Event("evaluated_over", 9, 0, over | fields)


MINDS = Event("minds_mode", 0, 0, {"batch_norm": True})


@pytest.mark.parametrize(
    ("in_eval", "events", "expected"),
    [
        ([0] * 10, [MINDS, evaluated(in_train_mode=0, in_eval_mode=4)], ("clear", "modes-as-they-should-be")),
        ([0] * 10, [MINDS, evaluated()], ("found", "evaluated-in-training-mode")),
        ([0] * 10, [MINDS, evaluated(trains_too=True)], ("inconclusive", "perhaps-evaluated-in-training-mode")),
        ([0] * 10, [MINDS, evaluated(in_train_mode=20)], ("inconclusive", "perhaps-evaluated-in-training-mode")),
        ([0] * 4 + [1] * 6, [MINDS], ("found", "stays-in-evaluation-mode")),
        ([0] * 4 + [1] * 6 + [0], [MINDS], ("clear", "modes-as-they-should-be")),
        ([0] * 10, [], ("clear", "no-module-minds-its-mode")),
    ],
)
def test_modes(in_eval, events, expected):
    steps = [step(at, counts={"updates": 1, "updates_in_eval_mode": each}) for at, each in enumerate(in_eval)]
    assert said("train-mode", [(steps, events)]) == expected


# unequal-init, of a script


def shards(weights, unchanged=True, **fields):
    call = {"number": 0, "wrapper": "fully_shard", "tensors": 4, "weights": weights, "synced": False, "where": "a.py:5"}
    start = {"model": 0, "parts": 4, "unchanged": unchanged}
    return updates(2), [Event("sharding", 0, 0, call | fields), Event("sharded_start", 0, 0, start)]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([shards("a"), shards("a")], ("clear", "ranks-begin-with-equal-weights")),
        ([shards("a"), shards("b")], ("found", "shards-of-different-weights")),
        ([shards("a", synced=True), shards("b", synced=True)], ("clear", "wrapping-made-weights-equal")),
        ([shards("a", False), shards("b", False)], ("clear", "shards-were-written-afterwards")),
    ],
)
def test_what_a_wrapper_is_given(ranks, expected):
    assert said("unequal-init", ranks) == expected


# per-rank-norm, of a script


def clips(name, field, *values):
    return updates(3), [
        Event(name, at, 0, {"update": at, field: value, "where": "a.py:6"}) for at, value in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([clips("clipped", "norm", 1.0, 2.0), clips("clipped", "norm", 1.0, 2.0)], ("clear", "one-norm-on-all-ranks")),
        (
            [clips("clipped", "norm", 1.0, 2.0), clips("clipped", "norm", 3.0, 4.0)],
            ("found", "each-rank-has-a-norm-of-its-own"),
        ),
        (
            [clips("sharded_scaling", "factor", 0.1, 0.2), clips("sharded_scaling", "factor", 0.3, 0.4)],
            ("found", "each-rank-scales-by-its-own-factor"),
        ),
        ([clips("clipped", "norm"), clips("clipped", "norm")], ("not_applicable", "no-norms-of-one-step")),
    ],
)
def test_norms_of_a_script(ranks, expected):
    assert said("per-rank-norm", ranks) == expected


def test_norms_of_ranks_that_apply_gradients_of_their_own():
    apart = pair("abcd", "abcd", "wxyz", "stuv")
    ranks = [
        (steps, [*events, *clips("clipped", "norm", rank + 1.0, rank + 2.0)[1]])
        for rank, (steps, events) in enumerate(apart)
    ]
    assert said("per-rank-norm", ranks) == ("not_applicable", "ranks-hold-weights-of-their-own")


# untrained-parameters


def parameters(update, **fields):
    clean = {
        "trainable": 4,
        "without_gradient": 0,
        "unheld": 0,
        "unheld_names": "",
        "unfrozen": 0,
        "unfrozen_names": "",
        "foreign": 0,
        "later": 0,
        "later_names": "",
    }
    return Event("parameters", update, 0, {"update": update, "model": 0, **clean, **fields})


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ("clear", "every-gradient-is-applied")),
        ({"unheld": 2, "unheld_names": "a, b", "foreign": 2}, ("found", "optimizer-holds-others")),
        ({"unheld": 4, "unheld_names": "a"}, ("found", "model-has-no-optimizer")),
        ({"unheld": 2, "unheld_names": "a"}, ("inconclusive", "some-have-no-optimizer")),
        ({"unheld": 2, "later": 2, "later_names": "a"}, ("found", "made-after-the-optimizer")),
        ({"unfrozen": 1, "unfrozen_names": "a"}, ("found", "unfrozen-after-ddp")),
    ],
)
def test_parameters(fields, expected):
    log = (updates(3), [parameters(update, **fields) for update in (1, 2, 3)])
    assert said("untrained-parameters", [log, log]) == expected


def idle(update, share=0.9, training=True):
    fields = {"tensors": 4, "share": share, "names": "encoder", "no_grad": True, "training": training}
    return Event("idle_weights", update, 0, {"update": update, **fields})


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([idle(4), idle(8)], ("found", "no-gradient-reaches")),
        ([idle(4), idle(8, training=False)], ("inconclusive", "held-and-kept-as-it-is")),
        ([idle(4), idle(8, share=0.1)], ("clear", "every-gradient-is-applied")),  # a pooler whose output nobody uses
        ([idle(4), idle(8, share=1.0)], ("clear", "every-gradient-is-applied")),  # none gets one: empty-updates asks why
        ([idle(4), idle(6)], ("clear", "every-gradient-is-applied")),
        ([idle(8)], ("clear", "every-gradient-is-applied")),
        ([idle(3), idle(4)], ("clear", "every-gradient-is-applied")),
    ],
)
def test_weights_that_no_gradient_reaches(events, expected):
    log = (updates(12), [parameters(1), parameters(8), *events])
    assert said("untrained-parameters", [log]) == expected


def test_weights_that_get_gradients_later():
    events = [parameters(1), idle(4), idle(8)]
    assert said("untrained-parameters", [(updates(40), events)]) == ("clear", "every-gradient-is-applied")


# order and coverage, by what a sampler shares out


def sampled(rank, rows, **fields):
    known = {"loader": 0, "where": "a.py:4", "size": 48, "ranks": 2, "rank": rank, "shuffle": True, "rows": rows}
    return Event("sampled", 0, 0, known | {"cut": "a.py:2", "loop": "a.py:3", "told": False} | fields)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([sampled(0, "a b|u"), sampled(1, "c d|v")], ("found", "cut-by-rank-and-by-sampler")),
        ([sampled(0, "a b|u", cut=""), sampled(1, "c d|v", cut="")], ("inconclusive", "sampler-over-own-rows")),
        ([sampled(0, "a b|u"), sampled(1, "c d|u")], ("not_applicable", "reads-not-recorded")),  # one column is shared
        ([sampled(0, ""), sampled(1, "")], ("not_applicable", "reads-not-recorded")),
        ([sampled(0, "a"), sampled(0, "b")], ("not_applicable", "reads-not-recorded")),  # replicas of another group
        ([sampled(0, "a", ranks=1), sampled(1, "b", ranks=1)], ("not_applicable", "reads-not-recorded")),
    ],
)
def test_what_a_sampler_shares_out(events, expected):
    assert said("coverage", [(updates(2), [event]) for event in events]) == expected


@pytest.mark.parametrize(
    ("fields", "stopped", "expected"),
    [
        ({}, True, ("found", "epoch-is-never-set")),
        ({}, False, ("inconclusive", "epoch-may-need-setting")),
        ({"told": True}, True, ("not_applicable", "too-few-epochs")),
        ({"loop": ""}, True, ("not_applicable", "too-few-epochs")),
        ({"shuffle": False}, True, ("not_applicable", "too-few-epochs")),
        ({"where": "a.py:9"}, True, ("not_applicable", "too-few-epochs")),  # another loader, as of an evaluation
    ],
)
def test_an_epoch_that_nothing_sets(fields, stopped, expected):
    ended = [Event("stopped", 1, 0, {"updates": 2})] if stopped else []
    logs = [(updates(2), [sampled(rank, "", **fields), *ended]) for rank in (0, 1)]
    assert said("order", logs, loader_where="a.py:4") == expected


def test_one_look_at_parameters_accuses_nobody_and_one_rank_reduces_nothing():
    once = (updates(3), [parameters(1, unheld=4, unheld_names="a"), parameters(2), parameters(3)])
    assert said("untrained-parameters", [once])[0] == "clear"
    assert said("untrained-parameters", [(updates(3), [parameters(1, unfrozen=1, unfrozen_names="a")])])[0] == "clear"


# mixed-precision-setup


def use(*what):
    return [Event("precision_use", 0, 0, {"what": one, "where": f"a.py:{at}"}) for at, one in enumerate(what, 1)]


@pytest.mark.parametrize(
    ("used", "counts", "expected"),
    [
        ([], {}, ("not_applicable", "no-mixed-precision-used")),
        (["autocast bfloat16"], {}, ("clear", "mixed-precision-as-it-should-be")),
        (["autocast float16", "scaler"], {}, ("clear", "mixed-precision-as-it-should-be")),
        (["autocast float16"], {}, ("found", "fp16-without-a-scaler")),
        (["fp16 weights"], {}, ("found", "fp16-without-a-scaler")),
        (["autocast bfloat16", "scaler"], {}, ("found", "bf16-with-a-scaler")),
        (["scaler"], {}, ("found", "scaler-without-fp16")),
        (["autocast bfloat16"], {"autocast_open_at_update": 1}, ("found", "autocast-stays-open")),
        (["autocast bfloat16"], {"backward_in_autocast": 1}, ("found", "backward-in-autocast")),
        (["autocast float16", "scaler"], {"updates_while_scaled": 1}, ("found", "stepped-without-the-scaler")),
        ([], {"weights_cast_down": 1}, ("found", "weights-cast-in-the-loop")),
    ],
)
def test_mixed_precision(used, counts, expected):
    assert said("mixed-precision-setup", [(updates(3, **counts), use(*used))]) == expected


# learning-rate-schedule


def rates(*values, calls=None):
    return [
        step(
            at, counts={"updates": 1}, scalars={"lr_used": value, **({"scheduler_steps": calls * (at + 1)} if calls else {})}
        )
        for at, value in enumerate(values)
    ]


SCHEDULER = [Event("scheduler", 0, 0, {"where": "a.py:4", "updates_before": 1})]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1] * 20, ("clear", "schedule-lasts")),
        ([0.1 * (20 - at) for at in range(20)] + [0.0], ("clear", "schedule-lasts")),  # 0 at its very end
        ([0.1] * 10 + [0.0] * 10, ("found", "schedule-ends-early")),
        ([0.1] * 10 + [-0.1], ("found", "learning-rate-negative")),
        ([0.1] * 3, ("inconclusive", "too-few-learning-rates")),
        ([0.0] * 20, ("clear", "schedule-lasts")),  # an update of nothing on purpose, all along
    ],
)
def test_learning_rates(values, expected):
    assert said("learning-rate-schedule", [(rates(*values, calls=1), SCHEDULER)]) == expected


def test_learning_rates_that_differ_between_ranks_and_none_at_all():
    one, other = (rates(*[0.1] * 9), SCHEDULER), (rates(*[0.1] * 8, 0.05), SCHEDULER)
    alone = (rates(*[0.2] * 9), SCHEDULER)
    assert said("learning-rate-schedule", [one, alone]) == ("inconclusive", "each-rank-tries-its-own-rate")
    assert said("learning-rate-schedule", [one, other]) == ("found", "learning-rate-differs-between-ranks")
    assert said("learning-rate-schedule", [(updates(3), [])]) == ("not_applicable", "learning-rates-not-recorded")
    assert said("learning-rate-schedule", [(rates(*[0.1] * 9), [])]) == ("clear", "learning-rate-without-a-schedule")


def astray(first, last, calls=8):
    fields = {"scheduler": "StepLR", "where": "a.py:4", "calls": calls, "first": first, "last": last}
    return [*SCHEDULER, Event("scheduler_astray", 1, 0, fields)]


@pytest.mark.parametrize(
    ("used", "events", "expected"),
    [
        ([0.1] * 20, astray(0.1, 0.01), ("found", "scheduler-of-another-optimizer")),
        ([0.1] * 20, astray(0.1, 0.1), ("clear", "schedule-lasts")),
        ([0.1] * 10 + [0.05] * 10, astray(0.1, 0.05), ("clear", "schedule-lasts")),  # copied to the one that makes updates
        ([0.1] * 6, astray(0.1, 0.01), ("clear", "schedule-lasts")),
    ],
)
def test_a_scheduler_of_another_optimizer(used, events, expected):
    assert said("learning-rate-schedule", [(rates(*used, calls=1), events)]) == expected


# old-gradients


@pytest.mark.parametrize(
    ("counts", "count", "expected"),
    [
        ({}, 20, ("clear", "gradients-of-their-own-batches")),
        ({"backward_onto_used": 1}, 20, ("found", "gradients-never-cleared")),
        ({"backward_unused": 1}, 20, ("found", "last-window-dropped")),
        ({"backward_onto_used": 1}, 3, ("inconclusive", "too-few-updates-for-gradients")),
    ],
)
def test_old_gradients(counts, count, expected):
    assert said("old-gradients", [(updates(count, backward_calls=2, **counts), [])]) == expected


@pytest.mark.parametrize(
    ("passes", "cleared", "expected"),
    [
        (4, 3, ("inconclusive", "micro-batches-cleared")),
        (4, 1, ("clear", "gradients-of-their-own-batches")),  # a pass that looks at something beside micro-batches
        (2, 1, ("clear", "gradients-of-their-own-batches")),  # one that looks where the loss grows, and one there
    ],
)
def test_passes_whose_gradients_are_cleared_before_any_update(passes, cleared, expected):
    steps = updates(8, backward_calls=passes, backward_cleared=cleared)
    assert said("old-gradients", [(steps, [])]) == expected


def test_gradients_are_judged_by_the_updates_that_were_looked_at():
    closely = updates(10, backward_calls=1, backward_onto_used=1)
    followed = updates(200, backward_calls=1, between_bursts=1)
    assert said("old-gradients", [([*closely, *followed], [])]) == ("found", "gradients-never-cleared")
    cleared = [*updates(10, backward_calls=1), *updates(200, backward_calls=1, between_bursts=1)]
    assert said("old-gradients", [(cleared, [])]) == ("clear", "gradients-of-their-own-batches")


@pytest.mark.parametrize(
    ("over_two_epochs", "expected"),
    [
        (5, ("found", "window-over-two-epochs")),  # what was left and a whole window
        (4, ("clear", "gradients-of-their-own-batches")),  # micro-batches counted through the epochs
        (8, ("clear", "gradients-of-their-own-batches")),  # a step that a scaler skipped
    ],
)
def test_a_window_over_two_epochs_is_too_large_or_as_large_as_others(over_two_epochs, expected):
    left = step(4, counts={"backward_calls": 1})
    joined = step(5, counts={"updates": 1, "backward_calls": over_two_epochs - 1, "backward_onto_last_epoch": 1})
    steps = [*updates(4, backward_calls=4), left, joined, *updates(4, backward_calls=4)]
    assert said("old-gradients", [(steps, [])]) == expected


def test_gradients_that_nobody_watched():
    assert said("old-gradients", [(updates(20), [])]) == ("not_applicable", "gradients-not-watched")


# checkpoint-files


def saved(path="a.pt", **fields):
    whole = {"optimizer": True, "scheduler": True, "scaler": True, "has_scheduler": True, "has_scaler": True}
    return Event("torch_save", 1, 0, {"path": path, "over": False, "where": "a.py:8", **whole, **fields})


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([[saved()], []], ("clear", "checkpoints-are-whole")),
        ([[saved("0.pt")], [saved("1.pt")]], ("clear", "checkpoints-are-whole")),
        ([[saved()], [saved()]], ("found", "ranks-save-to-one-path")),
        ([[saved(scheduler=False)], []], ("found", "scheduler-not-saved")),
        ([[saved(scaler=False)], []], ("found", "scaler-not-saved")),
        ([[saved(scheduler=False, has_scheduler=False)], []], ("clear", "checkpoints-are-whole")),
        ([[saved(optimizer=False, scheduler=False, over=True)], []], ("clear", "weights-are-exported")),
        ([[saved(), saved(over=True)], []], ("inconclusive", "written-over-the-last-one")),
        ([[saved(), saved(over=True, others=1)], []], ("clear", "checkpoints-are-whole")),
        ([[], []], ("not_applicable", "nothing-saved")),
        ([[saved(shared=True)], [saved(shared=True)]], ("clear", "checkpoints-are-whole")),
        ([[saved("0", shared=True)], [saved("1", shared=True)]], ("found", "parts-in-different-folders")),
        ([[saved("0", shared=True)], []], ("clear", "checkpoints-are-whole")),
    ],
)
def test_checkpoints(ranks, expected):
    assert said("checkpoint-files", [(updates(2), events) for events in ranks]) == expected


def test_ranks_that_made_no_process_group():
    assert said("replicas-differ", replicas("abc", "abc"), group_size=0) == ("found", "ranks-never-joined")
    assert said("replicas-differ", [([], []), ([], [])], group_size=0) == ("not_applicable", "no-weights-compared")
    # runs side by side, as of a search over learning rates
    search = [([step(n, counts={"updates": 1}, scalars={"lr_used": rate}) for n in range(3)], []) for rate in (0.1, 0.01)]
    assert said("replicas-differ", search, group_size=0) == ("inconclusive", "runs-of-their-own")
    # one rank that does something else than train, beside one that trains
    assert said("replicas-differ", [*replicas("abc"), ([], [])], group_size=0)[0] != "found"
    assert said("replicas-differ", replicas("abc", "abc"), group_size=2)[0] == "clear"


# What libraries do by themselves is no fault of the script


def test_unused_parameters_that_a_library_looks_for_unless_told_not_to():
    looks = {"ddp_params": 4, "ddp_find_unused": True, "ddp_static_graph": False}
    passes = [step(number, series={"unused_params": [0]}) for number in range(8)]
    for made_by, expected in (
        ("", ("found", "every-parameter-is-used")),
        ("accelerate", ("found", "every-parameter-is-used")),
        ("accelerate, transformers", ("inconclusive", "library-looks-for-unused")),
    ):
        assert said("needless-find-unused", [(passes, []), (passes, [])], ddp_made_by=made_by, **looks) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ("inconclusive", "stream-in-one-order")),
        ({"dataset_size": 64}, ("found", "second-epoch-repeats-order")),
    ],
)
def test_a_stream_may_have_an_order_of_its_own(facts, expected):
    def epoch(number):
        read = [
            step(
                16 * number + at, epoch=number, digests={"train": [1000 - 7 * place for place in range(4 * at, 4 * at + 4)]}
            )
            for at in range(16)
        ]
        return read, Event("epoch_end", 16 * number + 15, 0, {"epoch": number})

    (first, end), (second, other_end) = epoch(0), epoch(1)
    assert said("order", [([*first, *second], [end, other_end])], **facts) == expected


# what is read in the source


def read(*events):
    return [(updates(2), [Event("source_read", 1, 0, {"files": 1}), *events])]


def unread(kind="option", alone=True):
    fields = {"where": "a.py:3", "kind": kind, "setting": "lr", "function": "fit", "alone": alone}
    return Event("unread", 1, 0, fields)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ("clear", "settings-are-read")),
        ([unread()], ("found", "option-never-read")),
        ([unread("argument", alone=False)], ("inconclusive", "argument-never-read")),
        ([unread("argument", alone=False), unread("argument")], ("found", "argument-never-read")),
        ([unread("field")], ("found", "field-never-read")),
        ([unread("field", alone=False)], ("inconclusive", "field-never-read")),  # another script may read it
    ],
)
def test_settings_that_nothing_reads(events, expected):
    assert said("unread-settings", read(*events)) == expected
    assert said("unread-settings", [(updates(2), [])]) == ("not_applicable", "source-not-read")


def test_calls_that_nothing_comes_to():
    fields = {"where": "a.py:5", "call": "schedule.step()", "after": "a.py:4", "ends_with": "return"}
    assert said("unreached-calls", read(Event("unreached", 1, 0, fields))) == ("found", "call-never-reached")
    assert said("unreached-calls", read()) == ("clear", "calls-are-reached")
    assert said("unreached-calls", [(updates(2), [])]) == ("not_applicable", "source-not-read")
