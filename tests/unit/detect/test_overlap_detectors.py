"""The detectors of lab 05: found, silent, inconclusive where noise hides it, not applicable without what they need."""

import msgspec
import numpy as np
import pytest

from labkit.detect import ask, detector
from labkit.detect.overlap.summary import overlap_measures
from labkit.record.clocks import on_one_clock
from labkit.record.schema import Origin, Span, Step

from ..builders import crowded, record_of
from ..builders import run_of as run_of_reads
from ..shaken import shaken
from .overlap_readings import MS, ddp_step, record, same_on, spans, unused_event

NAMES = (
    "exposed-communication",
    "missing-no-sync",
    "misplaced-no-sync",
    "per-parameter-reduction",
    "needless-find-unused",
    "late-rank",
)
ONE_BUCKET = ((200, 400),)
SMALL_BUCKETS = tuple((50 * n, 50 * n + 49) for n in range(1, 5))


def verdict(name, found):
    return detector(name)(found)


def status(name, steps_of_ranks, **how) -> str:
    return verdict(name, record(steps_of_ranks, **how)).status


# Exposed communication


def test_one_bucket_after_the_backward_pass_is_found_with_its_waste():
    large = same_on(2, buckets=ONE_BUCKET, sizes=[2**24])
    found = verdict("exposed-communication", record(large, wrap_where="file.py:3"))
    assert found.status == "found" and found.where == "file.py:3"
    assert found.waste == pytest.approx(200 / 500)
    assert found.reason == "one-bucket-holds-all" and found.numbers["gradient_bytes"] == 2**24
    assert "one bucket holds all 16,777,216 bytes" in found.cause and "bucket_cap_mb" in found.fix
    small = verdict("exposed-communication", record(same_on(2, buckets=ONE_BUCKET, sizes=[20_000])))
    assert small.status == "found" and small.numbers["remedy"].key == "compute-more-in-a-step"
    assert "bucket_cap_mb" not in small.fix and "larger batch" in small.fix


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ([2**24], "bucket_cap_mb=2 (MiB)"),  # an eighth of 16 MiB
        ([14 * 10**9], "bucket_cap_mb=25 (MiB)"),  # an eighth would be 1.75 GB
        ([2**23] * 100, "try half and twice the bucket size"),  # smaller than what one would begin with
    ],
)
def test_the_size_to_begin_with_is_an_eighth_and_not_a_gigabyte(sizes, says):
    queued = tuple((200 + n, 400 + n) for n in range(len(sizes)))
    found = verdict("exposed-communication", record(same_on(2, buckets=queued, sizes=sizes)))
    assert found.status == "found" and says in found.fix


def test_buckets_that_leave_in_time_are_clear():
    found = verdict("exposed-communication", record(same_on(2, buckets=SMALL_BUCKETS)))
    assert (found.status, found.reason) == ("clear", "communication-is-hidden")
    assert found.numbers["hidden"] > 0.7 and found.numbers["saved"] < 0.2


def test_what_no_backward_pass_could_hide_is_not_held_against_the_buckets():
    """600 ms of communication behind 200 ms of backward: 400 ms are exposed whatever the buckets."""
    queued = tuple((50 * n, 50 + 150 * n) for n in range(1, 5))
    assert status("exposed-communication", same_on(2, buckets=queued)) == "clear"


def test_a_few_percent_of_communication_say_nothing():
    found = verdict("exposed-communication", record(same_on(2, buckets=((200, 205),))))
    assert (found.status, found.reason) == ("inconclusive", "communication-too-short-to-notice")
    assert found.numbers["share"] == pytest.approx(5 / 305)


def test_steps_that_differ_too_much_and_too_few_of_them_are_inconclusive():
    mixed = [[ddp_step(n, buckets=SMALL_BUCKETS if n % 2 else ONE_BUCKET) for n in range(8)] for _ in range(2)]
    noisy = verdict("exposed-communication", record(mixed))
    assert (noisy.status, noisy.reason) == ("inconclusive", "noise-hides-what-is-hidden")
    few = verdict("exposed-communication", record(same_on(2, steps=2, buckets=ONE_BUCKET)))
    assert (few.status, few.reason) == ("inconclusive", "too-few-steps-to-see-them-differ")
    assert (few.numbers["steps"], few.numbers["enough"]) == (2, 5)


def test_waiting_for_a_late_rank_is_not_exposure():
    """Rank 0's collective is under way for 300 ms, since rank 1 comes late to it; the link itself takes 10."""
    late = [[ddp_step(n, buckets=((200, 500),)) for n in range(5)],
            [ddp_step(n, backward=490, buckets=((490, 500),)) for n in range(5)]]  # fmt: skip
    assert status("exposed-communication", late) in ("inconclusive", "clear")
    assert status("late-rank", late) == "found"


def test_gradients_reduced_by_hand_after_backward_are_found():
    steps = same_on(2, buckets=ONE_BUCKET)
    by_hand = [[msgspec.structs.replace(s, series={"by_hand_bytes": [4000]}) for s in of] for of in steps]
    found = verdict("exposed-communication", record(by_hand))
    assert (found.status, found.reason) == ("found", "reduced-after-the-backward-pass")
    assert found.numbers["exposed_ms"] == pytest.approx(200)


# Accumulation


def test_each_micro_batch_that_reduces_is_found_and_one_reduction_is_clear():
    found = verdict("missing-no-sync", record(same_on(2, passes=4), gradients_where="x.py:9"))
    assert (found.status, found.reason, found.where) == ("found", "micro-batches-reduce-all-bytes", "x.py:9")
    assert "4 of 4 micro-batches reduce their gradients of 4,000 bytes each" in found.cause and 0 < found.waste < 1
    assert verdict("missing-no-sync", record(same_on(2, passes=4), ddp_gradient_bytes=None)).reason == "micro-batches-reduce"
    last_only = [[_reducing_in_last_of_four(n) for n in range(4)] for _ in range(2)]
    assert status("missing-no-sync", last_only) == "clear" and status("misplaced-no-sync", last_only) == "clear"
    once = verdict("missing-no-sync", record(same_on(2)))
    assert (once.status, once.reason) == ("not_applicable", "nothing-is-accumulated")


def _reducing_in_last_of_four(number):
    step = ddp_step(number, passes=4)
    series = dict(step.series) | {"sync_at_forward": [0, 0, 0, 1], "sync_at_backward": [0, 0, 0, 1]}
    keep = [place for place, of in enumerate(step.series["bucket_pass"]) if of == 3]
    series |= {name: [step.series[name][place] for place in keep] for name in step.series if name.startswith("bucket_")}
    return msgspec.structs.replace(step, counts=dict(step.counts) | {"reductions": 1}, series=series)


def micro_batches(reducing: str, updates: int = 4) -> list[list[Step]]:
    """On two ranks, each micro-batch a step of its own: "0001" reduces in the last of four, then the optimizer steps."""
    steps = []
    for number in range(updates * len(reducing)):
        place = number % len(reducing)
        did = int(reducing[place])
        made = ddp_step(number, buckets=((200, 260),) if did else (), sync=(did, did))
        counts = dict(made.counts) | {"updates": int(place == len(reducing) - 1)}
        steps.append(msgspec.structs.replace(made, counts=counts, series=dict(made.series) | {"pass_reduced": [did]}))
    return [steps, steps]


def test_micro_batches_that_are_steps_of_their_own_are_counted_up_to_the_optimizers_step():
    found = verdict("missing-no-sync", record(micro_batches("1111")))
    assert found.status == "found" and (found.numbers["reduced"], found.numbers["passes"]) == (4, 4)
    right = micro_batches("0001")
    assert status("missing-no-sync", right) == "clear" and status("misplaced-no-sync", right) == "clear"
    communication = verdict("exposed-communication", record(right)).evidence["communication"]
    assert communication.value == pytest.approx(60), "of a step of the optimizer, not of the median micro-batch"


def test_a_last_micro_batch_that_stays_on_its_rank_is_found_by_the_weights():
    found = verdict("misplaced-no-sync", record(micro_batches("1000"), digests=["a", "b"]))
    assert (found.status, found.reason, found.numbers["steps"]) == ("found", "last-pass-not-reduced", 4)
    assert status("misplaced-no-sync", micro_batches("1000"), digests=["a", "a"]) == "clear"
    some = [steps[:8] + of_tail[8:] for steps, of_tail in zip(micro_batches("0001"), micro_batches("0000"), strict=True)]
    assert status("misplaced-no-sync", some, digests=["a", "b"]) == "found", "the last batches of an epoch"
    unknown = verdict("misplaced-no-sync", record(micro_batches("1000")))
    assert unknown.status == "inconclusive", "a second optimizer may own that pass"
    assert (unknown.reason, unknown.numbers["steps"]) == ("last-pass-not-reduced-and-weights-not-known", 4)


def test_an_optimizer_that_steps_after_each_pass_accumulates_nothing():
    steps = same_on(2, passes=4)
    each = [[msgspec.structs.replace(s, counts=dict(s.counts) | {"updates": 4}) for s in of] for of in steps]
    assert status("missing-no-sync", each) == "not_applicable"


def test_no_sync_around_the_backward_pass_alone_is_found_and_no_other_detector_repeats_it():
    in_vain = same_on(2, passes=4, sync=(1, 0))
    found = verdict("misplaced-no-sync", record(in_vain))
    assert (found.status, found.reason) == ("found", "no-sync-leaves-the-forward-pass-out")
    other = verdict("missing-no-sync", record(in_vain))
    assert (other.status, other.reason) == ("clear", "no-sync-around-the-wrong-part")


def test_no_sync_around_everything_is_found_by_what_became_of_the_weights():
    never = same_on(2, passes=4, buckets=(), sync=(0, 0))
    found = verdict("misplaced-no-sync", record(never, digests=["a", "b"]))
    assert (found.status, found.reason) == ("found", "never-reduced-and-weights-differ")
    unhashed = verdict("misplaced-no-sync", record(never))
    assert (unhashed.status, unhashed.reason) == ("found", "every-pass-in-no-sync"), "no hash is needed"
    talk = [[msgspec.structs.replace(s, counts=dict(s.counts) | {"script_collectives": 1}) for s in of] for of in never]
    averaged = verdict("misplaced-no-sync", record(talk))
    assert (averaged.status, averaged.reason) == ("inconclusive", "never-reduced-and-ranks-talk")
    equal = verdict("misplaced-no-sync", record(never, digests=["a", "a"]))
    assert (equal.status, equal.reason) == ("clear", "never-reduced-yet-weights-are-equal")
    elsewhere = same_on(2, passes=1, buckets=(), sync=(1, 1))
    assert status("misplaced-no-sync", elsewhere) == "inconclusive", "no reduction seen, and no_sync neither"


# Many small collectives


@pytest.mark.parametrize(
    ("collectives", "params", "each", "expected"),
    [(20, 20, 2000, "found"), (5, 20, 8000, "clear"), (20, 20, 2**22, "clear"), (3, 3, 2000, "clear")],
)
def test_a_small_collective_for_each_parameter_is_found(collectives, params, each, expected):
    buckets = tuple((n, n + 1) for n in range(collectives))
    steps = same_on(2, buckets=buckets, sizes=[each] * collectives)
    found = verdict("per-parameter-reduction", record(steps, ddp_params=params))
    assert found.status == expected
    assert found.reason == ("one-collective-a-parameter" if expected == "found" else "few-or-large-collectives")
    assert (found.numbers["parameters"], found.numbers["collectives"]) == (params, collectives)


def test_small_collectives_that_the_program_sends_itself_are_found_where_it_sends_them():
    steps = [[msgspec.structs.replace(s, series={"by_hand_bytes": [4000] * 20}) for s in of] for of in same_on(2)]
    found = verdict("per-parameter-reduction", record(steps, ddp_params=20, gradients_where="x.py:3"))
    assert (found.status, found.reason) == ("found", "one-collective-a-parameter-by-hand")
    assert (found.where, found.numbers["median_bytes"]) == ("x.py:3", 4000)


# Unused parameters


def test_looking_for_unused_parameters_in_vain_is_found_and_with_cause_is_clear():
    found = verdict("needless-find-unused", record(same_on(2, unused=0), ddp_find_unused=True))
    assert (found.status, found.reason, found.numbers["passes"]) == ("found", "every-parameter-is-used", 10)
    assert verdict("needless-find-unused", record(same_on(2))).reason == "find-unused-not-set"
    once = verdict("needless-find-unused", record(same_on(2, unused=0), ddp_find_unused=True, ddp_static_graph=True))
    assert (once.status, once.reason) == ("clear", "static-graph-looks-once")
    few = verdict("needless-find-unused", record(same_on(2, steps=2, unused=0), ddp_find_unused=True))
    assert (few.status, few.reason) == ("inconclusive", "too-few-passes")
    once = [[ddp_step(n, unused=int(n == 3 and rank == 1)) for n in range(5)] for rank in range(2)]
    found = verdict("needless-find-unused", record(once, ddp_find_unused=True, events=[unused_event("head.bias")]))
    assert (found.status, found.reason) == ("clear", "some-parameters-are-unused")
    assert "1 of 10 passes" in found.cause and "head.bias" in str(found.evidence["unused"])


# A late rank


@pytest.mark.parametrize(("ranks", "late"), [(2, 0), (2, 1), (3, 2), (4, 1)])
def test_the_rank_that_all_wait_for_is_named(ranks, late):
    found = verdict("late-rank", record(_one_late(ranks, late, 200)))
    assert (found.status, found.reason, found.numbers["rank"]) == ("found", "rank-late-in-its-backward-pass", late)
    assert found.numbers["by_ms"] == pytest.approx(200) and found.waste > 0
    assert found.cause.startswith(f"rank {late} comes to the collectives 200 ms later than the others, who wait; it loses")


def _one_late(ranks, late, by_ms, steps=5):
    """Every rank's step ends at the same time; the late one's own all-reduce is the shortest."""
    end = 460.0 + by_ms
    return [
        [ddp_step(n, buckets=((100, 200), (200, end - 100)), length=end) for n in range(steps)]
        if rank != late
        else [ddp_step(n, backward=200 + by_ms, buckets=((100 + by_ms, 200 + by_ms), (200 + by_ms, end - 100)), length=end)
              for n in range(steps)]
        for rank in range(ranks)
    ]  # fmt: skip


def test_two_late_ranks_of_four_are_both_named():
    steps = _one_late(4, 1, 200)
    steps[3] = steps[1]
    found = verdict("late-rank", record(steps))
    assert found.status == "found" and found.numbers["rank"] == 1
    assert found.numbers["others"].numbers["ranks"] == [3] and "rank 1 (and rank 3) comes" in found.cause


def test_healthy_ranks_chance_and_too_little_are_not_found():
    healthy = verdict("late-rank", record(_one_late(2, 1, 10)))
    assert (healthy.status, healthy.reason) == ("clear", "no-rank-is-late")
    few = verdict("late-rank", record(_one_late(2, 1, 200, steps=2)))
    assert (few.status, few.reason, few.numbers["reductions"]) == ("inconclusive", "too-few-reductions", 2)
    by_turns = [
        [ddp_step(n, backward=400 if n % 2 == rank else 200, buckets=((400 if n % 2 == rank else 200, 450),), length=560)
         for n in range(6)]
        for rank in range(2)
    ]  # fmt: skip
    assert status("late-rank", by_turns) in ("clear", "inconclusive")


def test_lateness_that_varies_by_more_than_itself_may_be_chance():
    uneven = [_one_late(2, 1, by_ms, steps=1) for by_ms in (110, 500, 120, 400, 130, 110)]
    steps = [[msgspec.structs.replace(of[rank][0], step=n) for n, of in enumerate(uneven)] for rank in range(2)]
    assert status("late-rank", steps) == "inconclusive"


def test_ranks_of_several_machines_are_compared_by_their_barrier():
    """A clock of its own is 5 s ahead here, and named."""
    steps = _one_late(2, 1, 200)
    found = record(steps)
    own = found.run.ranks[1]
    ahead = 5_000_000_000
    shifted = tuple(
        msgspec.structs.replace(
            s,
            start_ns=s.start_ns + ahead,
            end_ns=s.end_ns + ahead,
            series={k: [v + ahead for v in vs] if k.endswith("_ns") else vs for k, vs in s.series.items()},
        )
        for s in own.steps
    )
    head = msgspec.structs.replace(own.head, barrier_ns=own.head.barrier_ns + ahead, clock="another")
    moved = msgspec.structs.replace(own, head=head, steps=shifted)
    run = on_one_clock(msgspec.structs.replace(found.run, ranks=(found.run.ranks[0], moved)))
    judged = verdict("late-rank", record_of(run))
    assert judged.status == "found" and judged.numbers["rank"] == 1
    assert judged.numbers["by_ms"] == pytest.approx(200, rel=1e-3)


# What they need


@pytest.mark.parametrize("name", NAMES)
def test_on_one_rank_and_without_a_watched_module_there_is_nothing_to_judge(name):
    unwatched = record_of(run_of_reads([[[[1, 2]], [[3, 4]]]]))
    for found in (verdict(name, record(same_on(1))), verdict(name, unwatched)):
        assert found.status in ("not_applicable", "clear")
    assert verdict(name, unwatched).status == "not_applicable"


@pytest.mark.parametrize("name", NAMES)
def test_steps_that_compute_alone_change_no_verdict(name):
    plain = same_on(2, passes=2, buckets=ONE_BUCKET)
    with_alone = [
        [step for n, s in enumerate(of) for step in (s, ddp_step(n, buckets=(), sync=(0, 0), alone=1))] for of in plain
    ]
    assert status(name, with_alone) == status(name, plain)


@pytest.mark.parametrize("name", NAMES)
def test_each_finding_says_what_to_do(name):
    broken = {
        "exposed-communication": record(same_on(2, buckets=ONE_BUCKET)),
        "missing-no-sync": record(same_on(2, passes=4)),
        "misplaced-no-sync": record(same_on(2, passes=4, sync=(1, 0))),
        "per-parameter-reduction": record(same_on(2, buckets=tuple((n, n + 1) for n in range(20))), ddp_params=20),
        "needless-find-unused": record(same_on(2, unused=0), ddp_find_unused=True),
        "late-rank": record(_one_late(2, 1, 200)),
    }[name]
    found = verdict(name, broken)
    assert found.status == "found" and found.cause and found.fix and found.evidence


def _late_by(lateness_ms):
    """Rank 1 of two comes late by so much, from one step to the next."""
    steps = zip(*(_one_late(2, 1, by_ms, steps=1) for by_ms in lateness_ms), strict=True)
    return [[msgspec.structs.replace(of_step[0], step=n) for n, of_step in enumerate(of_rank)] for of_rank in steps]


def test_a_few_reductions_with_one_rank_last_are_luck_and_many_are_not():
    wavering = [100, 190, 130, 170]
    few = verdict("late-rank", record(_late_by(wavering)))
    assert (few.status, few.reason) == ("inconclusive", "rank-late-perhaps-by-chance")
    assert (few.numbers["rank"], few.numbers["late"], few.numbers["reductions"]) == (1, 4, 4)
    assert status("late-rank", _late_by(wavering * 3)) == "found"
    assert status("late-rank", _late_by([150, 160, 155, 150])) == "found", "always by as much is no luck"


# Spans that do not mean what they are taken for


def plain_ddp(steps=6, *, ranks=2):
    """A DDP script that nobody watches: its `backward` is put around loss.backward(), which ends when all is reduced."""
    parts = (
        ("forward", "compute", 0, 2),
        ("backward", "compute", 2, 65),
        ("all_reduce", "comm", 4, 64),
        ("optimizer", "compute", 65, 67),
    )
    return [[Step(n, 0, 0, 67 * MS, spans=spans(*parts)) for n in range(steps)] for _ in range(ranks)]


def test_a_backward_span_that_holds_ddps_own_wait_is_not_taken_for_computing():
    """Of a step of 67 ms 60 were all-reduce, and it was said to be hidden."""
    found = verdict("exposed-communication", record(plain_ddp()))
    assert (found.status, found.reason) == ("not_applicable", "computing-not-told-from-waiting")
    assert not any("hidden" in name or "exposed" in name for name in overlap_measures(record(plain_ddp())))
    assert verdict("missing-no-sync", record(plain_ddp())).status == "not_applicable"


def test_a_span_of_ones_own_around_a_watched_backward_pass_does_not_hide_what_the_watch_saw():
    watched = same_on(2, buckets=ONE_BUCKET, sizes=[2**24])
    both = [
        [
            msgspec.structs.replace(
                s, spans=[*s.spans, *moved(s, ("backward", "compute", 100, 500), ("wait", "idle", 300, 500))]
            )
            for s in of
        ]
        for of in watched
    ]
    assert status("exposed-communication", both) == status("exposed-communication", watched) == "found"


def moved(step, *parts):
    return [Span(s.name, s.lane, s.start_ns + step.start_ns, s.end_ns + step.start_ns) for s in spans(*parts)]


def test_a_run_that_tries_several_bucket_sizes_has_no_one_answer():
    sizes = [[msgspec.structs.replace(s, scalars={"cap_mib": float(n % 2)}) for n, s in enumerate(of)] for of in same_on(2)]
    reasons = {name: verdict(name, record(sizes)).reason for name in ("exposed-communication", "per-parameter-reduction")}
    assert reasons == {
        "exposed-communication": "several-bucket-sizes-were-tried",
        "per-parameter-reduction": "sweep-tries-one-bucket-a-parameter",
    }
    in_lab, in_script = (ask("exposed-communication", made) for made in (record(sizes), of_script(record(sizes))))
    assert "--set bucket_mb" in in_lab.fix and "--set" not in in_script.fix != ""


def of_script(found):
    return msgspec.structs.replace(found, lab="", origin=Origin.SCRIPT)


def test_communication_after_the_backward_pass_is_judged_also_where_nobody_watched():
    parts = (("backward", "compute", 0, 100), ("all_reduce", "comm", 100, 200))
    steps = [[Step(n, 0, 0, 200 * MS, spans=spans(*parts)) for n in range(6)] for _ in range(2)]
    assert status("exposed-communication", steps) == "found"


# Noise, and other programs


def test_with_other_programs_on_the_cores_a_broken_run_is_never_clear():
    """Their time makes steps longer, and what is waited for a smaller share of them."""
    stretched = record(same_on(2, steps=6, buckets=ONE_BUCKET, length=4000))
    assert verdict("exposed-communication", stretched).status in ("clear", "inconclusive")
    for during in (1.0, 1.8):
        found = ask("exposed-communication", crowded(stretched, during))
        assert (found.status, found.notes[-1].key) == ("inconclusive", "other-programs-meanwhile")
        assert dict(found.notes[-1].numbers) == {"used": during, "cores": 2}


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_whatever_noise_does_to_steps_one_bucket_is_never_clear_and_small_ones_are_never_found(first):
    for seed in range(first, first + 25):
        rng = np.random.default_rng(seed)
        one, small = (shaken(record(same_on(2, steps=8, buckets=b)), rng) for b in (ONE_BUCKET, SMALL_BUCKETS))
        assert verdict("exposed-communication", one).status != "clear"
        assert verdict("exposed-communication", small).status != "found"


def test_ranks_late_by_a_millisecond_on_a_shared_machine_are_not_accused():
    """3 ms a step, one rank 1 ms later in all four reductions: the scheduler's doing."""
    own = [
        [ddp_step(n, forward=1, backward=1 + rank, buckets=((1 + rank, 2),), length=3) for n in range(4)]
        for rank in range(2)
    ]
    assert status("late-rank", own) == "clear"


def test_where_threads_outnumber_the_cores_a_rank_that_is_late_by_as_much_as_that_makes_it_is_not_accused():
    late = record(_one_late(2, 1, 110))
    assert verdict("late-rank", late).status == "found"
    crowd = verdict("late-rank", crowded(late, 1.8))
    assert (crowd.status, crowd.reason) == ("inconclusive", "late-as-threads-outnumber-cores")


def test_a_rank_that_is_late_now_and_then_is_found_with_how_often():
    found = verdict("late-rank", record(_late_by([300 if n % 5 < 2 else 0 for n in range(60)])))
    assert found.status == "found" and found.numbers["when"].key == "late-in-some-reductions"
    assert dict(found.numbers["when"].numbers) == {"late": 24, "reductions": 60}
    assert "who wait, in 24 of 60 reductions; it loses" in found.cause


def test_a_late_rank_is_found_in_the_steps_in_which_it_is_late():
    late_from = 60
    steps = zip(*(_one_late(2, 1, 200 if n >= late_from else 0, steps=1) for n in range(110)), strict=True)
    found = verdict("late-rank", record([[msgspec.structs.replace(s[0], step=n) for n, s in enumerate(of)] for of in steps]))
    assert found.status == "found" and found.evidence["late_from_step"].value == 60
    assert "who wait, from step 60 on; it loses" in found.cause
