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
    assert verdict.status == "found" and "fsdp2-no-reshard" in verdict.fix
    assert verdict.waste == pytest.approx(1 - 76.5 / 103)
    assert "1.33 times" in verdict.cause


def test_the_cheapest_of_what_was_run_is_clear():
    assert WRONG(record(cheaper_run(role="variant"), dear=run_with(kept={"forward": {"parameters": 1}}))).status == "clear"


def test_a_cheaper_stage_that_does_not_fit_is_no_alternative():
    assert WRONG(record(run_with(), cheaper=cheaper_run(peak=9001))).status == "clear"


def test_more_bytes_that_cost_no_time_are_no_fault():
    assert WRONG(record(run_with(), cheaper=cheaper_run(step_ms=(100, 102, 103, 104)))).status == "clear"


def test_times_that_overlap_are_inconclusive_and_so_are_too_few():
    noisy = WRONG(record(run_with(step_ms=(80, 130, 140, 150)), cheaper=cheaper_run(step_ms=(70, 90, 120, 140))))
    assert noisy.status == "inconclusive" and "noise" in noisy.cause and noisy.fix
    few = WRONG(record(run_with(step_ms=(100, 101)), cheaper=cheaper_run(step_ms=(50, 51))))
    assert few.status == "inconclusive" and "steps" in few.fix


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"strategy": ""}, "no strategy"),
        ({"ranks": 1}, "one rank"),
        ({"operations": ()}, "counted"),
        ({"peak": 0}, "counted"),
        ({"room": 0}, "memory a device has"),
    ],
)
def test_without_what_it_needs_it_says_what_is_missing(broken, words):
    verdict = WRONG(record(run_with(**broken)))
    assert verdict.status == "not_applicable" and words in verdict.cause and verdict.fix


def test_alone_it_asks_for_the_run_that_the_formula_points_to_or_finds_nothing_cheaper():
    """Stage 2 keeps 4 + 12/4 = 7 bytes a parameter by the paper."""
    asks = WRONG(record(run_with(room=7 * PSI)))
    assert asks.status == "not_applicable" and "stage 2" in asks.fix
    assert WRONG(record(run_with(room=7 * PSI - 1))).status == "clear"


def test_one_that_does_not_fit_itself_is_a_question_of_memory():
    assert "does not fit itself" in WRONG(record(run_with(peak=9001))).cause


def test_a_higher_stage_that_holds_more_than_a_lower_one_which_fits_is_found():
    """DeepSpeed's stage 3 keeps up to 1e9 weights gathered: all of a small model."""
    verdict = WRONG(record(run_with(peak=9001), cheaper=cheaper_run()))
    assert verdict.status == "found" and "fsdp2-no-reshard" in verdict.fix and "of stage 2" in verdict.cause
    assert WRONG(record(run_with(peak=9001), cheaper=cheaper_run(peak=9001))).status == "clear"
    same_stage = cheaper_run(strategy="hsdp", step_ms=(100, 102, 104, 106))
    assert WRONG(record(run_with(peak=9001), cheaper=same_stage)).status == "clear"


def test_on_nccl_a_reduce_scatter_counts_once():
    verdict = WRONG(record(run_with(backend="nccl"), cheaper=cheaper_run(backend="nccl")))
    assert verdict.status == "found" and "1.50 times" in verdict.cause


# ---- optimizer-before-sharding


def knows(known, parameters, orphans):
    return {"known": known, "parameters": parameters, "orphans": orphans}


def test_an_optimizer_of_nobodys_parameters_is_found():
    verdict = KNOWS(with_events("optimizer_knows", [knows(28, 28, 0), knows(0, 28, 28)], wrap_where="train.py:7"))
    assert verdict.status == "found" and "0 of the model's 28" in verdict.cause
    assert verdict.fix and verdict.where == "train.py:7" and verdict.waste == 1.0


def test_an_optimizer_of_the_head_alone_is_no_fault():
    assert KNOWS(with_events("optimizer_knows", [knows(2, 28, 0)])).status == "clear"


def test_nothing_noted_is_not_applicable():
    verdict = KNOWS(with_events("other", [{"a": 1}]))
    assert verdict.status == "not_applicable" and verdict.fix


def test_some_orphans_beside_weights_that_move_are_inconclusive():
    found = with_events("optimizer_knows", [knows(20, 28, 8)])
    log = found.run.ranks[0]
    import msgspec

    from labkit.record.schema import Event

    moved = msgspec.structs.replace(log, events=(*log.events, Event("weights_moved", 0, 0, {"largest": 0.1})))
    found = msgspec.structs.replace(found, runs={"variant": msgspec.structs.replace(found.run, ranks=(moved,))})
    assert KNOWS(found).status == "inconclusive"


# ---- per-rank-norm


def norms(*of_ranks):
    return with_events("x", [{}] * len(of_ranks), scalars=dict(enumerate(of_ranks)))


def test_norms_that_differ_between_ranks_are_found():
    verdict = NORM(norms([17.7, 17.7], [64.4, 64.4]))
    assert verdict.status == "found" and verdict.fix
    assert verdict.evidence["norm_of_all"].value == pytest.approx((17.7**2 + 64.4**2) ** 0.5)


def test_ranks_that_train_apart_on_purpose_have_norms_of_their_own():
    apart = norms([17.7, 17.7], [64.4, 64.4])
    logs = [msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts={**log.head.facts, "local_steps": 8}))
            for log in apart.run.ranks]  # fmt: skip
    run = msgspec.structs.replace(apart.run, ranks=tuple(logs))
    verdict = NORM(msgspec.structs.replace(apart, runs={**apart.runs, "variant": run}))
    assert verdict.status == "not_applicable" and "8 steps" in verdict.cause


def test_equal_norms_are_clear_up_to_the_order_of_sums():
    assert NORM(norms([5.0, 4.0], [5.0, 4.0 * (1 + 1e-7)])).status == "clear"


def test_a_difference_in_between_or_in_few_steps_is_inconclusive():
    assert NORM(norms([5.0, 4.0, 3.0], [5.0, 4.0, 3.0003])).status == "inconclusive"
    assert NORM(norms([5.0, 4.0, 3.0], [5.0, 4.0, 9.0])).status == "inconclusive"
    assert NORM(norms([float("nan")], [float("nan")])).status == "inconclusive"


def test_one_rank_or_no_norms_are_not_applicable():
    assert NORM(norms([5.0])).status == "not_applicable"
    assert NORM(norms([], [])).status == "not_applicable"


# ---- unequal-init


def hashes(before, after=None):
    digests = {
        rank: {"initial_weights": one, **({"wrapped_weights": after[rank]} if after else {})}
        for rank, one in enumerate(before)
    }
    return with_events("x", [{}] * len(before), digests=digests)


def test_a_chimera_of_initial_weights_is_found():
    verdict = INIT(hashes("ab", "cc"))
    assert verdict.status == "found" and verdict.fix


def test_equal_weights_and_weights_that_were_broadcast_are_clear():
    assert INIT(hashes("aa")).status == "clear"
    assert INIT(hashes("ab", "aa")).status == "clear"


def test_unequal_weights_are_inconclusive_without_a_hash_after_wrapping():
    verdict = INIT(hashes("ab"))
    assert verdict.status == "inconclusive" and verdict.fix


def test_without_hashes_or_ranks_it_is_not_applicable():
    assert INIT(with_events("x", [{}, {}])).status == "not_applicable"
    assert INIT(hashes("a")).status == "not_applicable"
