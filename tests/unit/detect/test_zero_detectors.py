"""The detectors of sharded state, each four ways: found, silent, inconclusive, not applicable."""

import msgspec
import pytest

from labkit.detect import detector

from ..zero_runs import PSI, cheaper_run, record, run_with, with_events

WRONG, KNOWS, NORM, INIT = (
    detector(name) for name in ("wrong-stage", "optimizer-before-sharding", "per-rank-norm", "unequal-init")
)


# ---- wrong-stage


def test_a_stage_that_sends_more_and_takes_longer_than_one_that_fits_is_found_with_its_waste():
    verdict = WRONG(record(run_with(), cheaper=cheaper_run()))
    assert (verdict.status, verdict.reason) == ("found", "without-resharding-is-faster")
    assert verdict.waste == pytest.approx(1 - 76.5 / 103) and verdict.numbers["more"] == pytest.approx(4 / 3)
    assert "1.33 times what fsdp2-no-reshard sends" in verdict.cause and "use fsdp2-no-reshard" in verdict.fix


def test_another_cheaper_stage_is_advised_by_its_name_alone():
    verdict = WRONG(record(run_with(), cheaper=cheaper_run(strategy="ddp", stage=0)))
    assert (verdict.status, verdict.reason, verdict.numbers["cheaper"]) == ("found", "cheaper-stage-is-faster", "ddp")
    assert verdict.fix.startswith("use ddp; ")


def test_where_strategies_are_compared_none_is_under_study():
    runs = {"fsdp2-reshard": run_with(kept={"forward": {"parameters": 1}}), "fsdp2-no-reshard": cheaper_run()}
    compared = msgspec.structs.replace(record(runs["fsdp2-reshard"]), runs=runs)
    verdict = WRONG(compared)
    assert (verdict.status, verdict.reason) == ("not_applicable", "strategies-are-compared")


def test_the_cheapest_of_what_was_run_is_clear():
    assert (
        WRONG(record(cheaper_run(role="variant"), dear=run_with(kept={"forward": {"parameters": 1}}))).reason
        == "nothing-that-fits-sends-less"
    )


def test_a_cheaper_stage_that_does_not_fit_is_no_alternative():
    verdict = WRONG(record(run_with(), cheaper=cheaper_run(peak=9001)))
    assert (verdict.status, verdict.reason) == ("clear", "nothing-that-fits-sends-less")


def test_more_bytes_that_cost_no_time_are_no_fault():
    verdict = WRONG(record(run_with(), cheaper=cheaper_run(step_ms=(100, 102, 103, 104))))
    assert (verdict.status, verdict.reason) == ("clear", "more-sent-in-no-more-time")


def test_times_that_overlap_are_inconclusive_and_so_are_too_few():
    noisy = WRONG(record(run_with(step_ms=(80, 130, 140, 150)), cheaper=cheaper_run(step_ms=(70, 90, 120, 140))))
    assert (noisy.status, noisy.reason) == ("inconclusive", "cost-hidden-by-noise")
    few = WRONG(record(run_with(step_ms=(100, 101)), cheaper=cheaper_run(step_ms=(50, 51))))
    assert (few.status, few.reason) == ("inconclusive", "too-few-steps-beside-a-cheaper-stage")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"strategy": ""}, "no-strategy-declared"),
        ({"ranks": 1}, "one-rank-shares-nothing"),
        ({"operations": ()}, "memory-and-collectives-not-counted"),
        ({"peak": 0}, "memory-and-collectives-not-counted"),
        ({"room": 0}, "room-not-declared"),
    ],
)
def test_without_what_it_needs_it_says_what_is_missing(broken, reason):
    verdict = WRONG(record(run_with(**broken)))
    assert (verdict.status, verdict.reason) == ("not_applicable", reason) and verdict.fix


def test_alone_it_asks_for_the_run_that_the_formula_points_to_or_finds_nothing_cheaper():
    """Stage 2 keeps 4 + 12/4 = 7 bytes a parameter by the paper."""
    asks = WRONG(record(run_with(room=7 * PSI)))
    assert (asks.status, asks.reason, asks.numbers["stage"]) == ("not_applicable", "lower-stage-was-not-run", 2)
    nothing = WRONG(record(run_with(room=7 * PSI - 1)))
    assert (nothing.status, nothing.reason) == ("clear", "no-lower-stage-fits")


def test_one_that_does_not_fit_itself_is_a_question_of_memory():
    assert WRONG(record(run_with(peak=9001))).reason == "stage-itself-does-not-fit"


def test_a_higher_stage_that_holds_more_than_a_lower_one_which_fits_is_found():
    """DeepSpeed's stage 3 keeps up to 1e9 weights gathered: all of a small model."""
    verdict = WRONG(record(run_with(peak=9001), cheaper=cheaper_run()))
    assert (verdict.status, verdict.reason, verdict.numbers["stage"]) == ("found", "lower-stage-holds-less", 2)
    assert "use fsdp2-no-reshard" in verdict.fix and "of stage 2" in verdict.cause
    assert WRONG(record(run_with(peak=9001), cheaper=cheaper_run(peak=9001))).status == "clear"
    same_stage = cheaper_run(strategy="hsdp", step_ms=(100, 102, 104, 106))
    assert WRONG(record(run_with(peak=9001), cheaper=same_stage)).status == "clear"


def test_on_nccl_a_reduce_scatter_counts_once():
    verdict = WRONG(record(run_with(backend="nccl"), cheaper=cheaper_run(backend="nccl")))
    assert verdict.status == "found" and verdict.numbers["more"] == pytest.approx(1.5)


# ---- optimizer-before-sharding


def knows(known, parameters, orphans):
    return {"known": known, "parameters": parameters, "orphans": orphans}


def test_an_optimizer_of_nobodys_parameters_is_found():
    verdict = KNOWS(with_events("optimizer_knows", [knows(28, 28, 0), knows(0, 28, 28)], wrap_where="train.py:7"))
    assert (verdict.status, verdict.reason) == ("found", "optimizer-holds-what-nothing-uses")
    assert verdict.where == "train.py:7" and verdict.waste == 1.0
    assert "0 of the model's 28 parameters" in verdict.cause and "after fully_shard" in verdict.fix


def test_an_optimizer_of_the_head_alone_is_no_fault():
    verdict = KNOWS(with_events("optimizer_knows", [knows(2, 28, 0)]))
    assert (verdict.status, verdict.reason) == ("clear", "optimizer-holds-the-models-parameters")


def test_nothing_noted_is_not_applicable():
    verdict = KNOWS(with_events("other", [{"a": 1}]))
    assert (verdict.status, verdict.reason) == ("not_applicable", "optimizers-parameters-not-noted")


def test_some_orphans_beside_weights_that_move_are_inconclusive():
    found = with_events("optimizer_knows", [knows(20, 28, 8)])
    log = found.run.ranks[0]
    import msgspec

    from labkit.record.schema import Event

    moved = msgspec.structs.replace(log, events=(*log.events, Event("weights_moved", 0, 0, {"largest": 0.1})))
    found = msgspec.structs.replace(found, runs={"variant": msgspec.structs.replace(found.run, ranks=(moved,))})
    verdict = KNOWS(found)
    assert (verdict.status, verdict.reason) == ("inconclusive", "optimizer-holds-others-but-weights-move")
    assert verdict.numbers["orphans"] == 8


# ---- per-rank-norm


def norms(*of_ranks):
    return with_events("x", [{}] * len(of_ranks), scalars=dict(enumerate(of_ranks)))


def test_norms_that_differ_between_ranks_are_found():
    verdict = NORM(norms([17.7, 17.7], [64.4, 64.4]))
    assert (verdict.status, verdict.reason) == ("found", "each-rank-has-a-norm-of-its-own")
    assert verdict.evidence["norm_of_all"].value == pytest.approx((17.7**2 + 64.4**2) ** 0.5)


def test_ranks_that_train_apart_on_purpose_have_norms_of_their_own():
    apart = norms([17.7, 17.7], [64.4, 64.4])
    logs = [msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts={**log.head.facts, "local_steps": 8}))
            for log in apart.run.ranks]  # fmt: skip
    run = msgspec.structs.replace(apart.run, ranks=tuple(logs))
    verdict = NORM(msgspec.structs.replace(apart, runs={**apart.runs, "variant": run}))
    assert (verdict.status, verdict.reason, verdict.numbers["steps"]) == ("not_applicable", "ranks-train-apart", 8)


def test_equal_norms_are_clear_up_to_the_order_of_sums():
    verdict = NORM(norms([5.0, 4.0], [5.0, 4.0 * (1 + 1e-7)]))
    assert (verdict.status, verdict.reason) == ("clear", "one-norm-on-all-ranks")


def test_a_difference_in_between_or_in_few_steps_is_inconclusive():
    verdicts = [
        NORM(norms([5.0, 4.0, 3.0], [5.0, 4.0, 3.0003])),
        NORM(norms([5.0, 4.0, 3.0], [5.0, 4.0, 9.0])),
        NORM(norms([float("nan")], [float("nan")])),
    ]
    assert {verdict.status for verdict in verdicts} == {"inconclusive"}
    assert [verdict.reason for verdict in verdicts] == [
        "norms-differ-in-few-steps", "norms-differ-in-few-steps", "no-finite-norm-on-every-rank",
    ]  # fmt: skip


def test_one_rank_or_no_norms_are_not_applicable():
    for found in (NORM(norms([5.0])), NORM(norms([], []))):
        assert (found.status, found.reason) == ("not_applicable", "no-norms-of-one-step")


# ---- unequal-init


def hashes(before, after=None):
    digests = {
        rank: {"initial_weights": one, **({"wrapped_weights": after[rank]} if after else {})}
        for rank, one in enumerate(before)
    }
    return with_events("x", [{}] * len(before), digests=digests)


def test_a_chimera_of_initial_weights_is_found():
    verdict = INIT(hashes("ab", "cc"))
    assert (verdict.status, verdict.reason, verdict.numbers["different"]) == ("found", "shards-of-different-weights", 2)


def test_equal_weights_and_weights_that_were_broadcast_are_clear():
    equal, broadcast = INIT(hashes("aa")), INIT(hashes("ab", "aa"))
    assert equal.status == broadcast.status == "clear"
    assert (equal.reason, broadcast.reason) == ("ranks-begin-with-equal-weights", "wrapping-made-weights-equal")


def test_unequal_weights_are_inconclusive_without_a_hash_after_wrapping():
    verdict = INIT(hashes("ab"))
    assert (verdict.status, verdict.reason) == ("inconclusive", "wrapped-weights-not-recorded")


def test_without_hashes_or_ranks_it_is_not_applicable():
    for found in (INIT(with_events("x", [{}, {}])), INIT(hashes("a"))):
        assert (found.status, found.reason) == ("not_applicable", "initial-weights-not-recorded")
