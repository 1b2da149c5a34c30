"""The detectors of a crash, on records that are made of plain numbers: found, clear, inconclusive, not applicable."""

import msgspec
import pytest

from labkit.detect import detector
from labkit.detect.crash import resume_departs
from labkit.theory.reliability import Costs, young_interval

from ..crash_records import Attempt, crash_record, run_of_attempts, saved_and_resumed, uninterrupted


def judged(name, run, reference=None):
    verdict = detector(name)(crash_record(run, reference))
    assert verdict.cause and (verdict.status == "clear" or verdict.fix)
    return verdict


def answer(name, run, reference=None):
    verdict = judged(name, run, reference)
    return verdict.status, verdict.reason


# lost-work


def test_steps_that_were_never_saved_are_found():
    verdict = judged("lost-work", run_of_attempts(Attempt(0, 13), Attempt(0, 20, killed=None)))
    assert (verdict.status, verdict.reason) == ("found", "nothing-was-saved") and verdict.waste == pytest.approx(13 / 33)
    assert verdict.numbers == {"resumed_at": 0, "lost": 13}
    assert verdict.cause == "the crash sent the run back to step 0: 13 steps done again, because nothing had been saved"


def test_a_checkpoint_that_was_not_used_is_found():
    run = run_of_attempts(Attempt(0, 13, saves=(5, 10)), Attempt(5, 20, found=5, killed=None))
    verdict = judged("lost-work", run)
    assert verdict.reason == "newest-checkpoint-not-used" and verdict.numbers == {"saved": 10, "resumed_at": 5}


def test_steps_since_the_newest_checkpoint_are_no_fault():
    verdict = judged("lost-work", saved_and_resumed())
    assert (verdict.status, verdict.reason) == ("clear", "back-to-the-newest-checkpoint")
    assert verdict.numbers["lost"] == verdict.evidence["lost_steps"].value == 3


def test_a_crash_before_the_first_checkpoint_tells_nothing():
    run = run_of_attempts(Attempt(0, 3, found=0), Attempt(0, 20, saves=(5, 10), found=0, killed=None))
    assert answer("lost-work", run) == ("inconclusive", "crash-before-the-first-checkpoint")


def test_without_a_crash_nothing_was_lost():
    assert answer("lost-work", uninterrupted()) == ("not_applicable", "never-crashed")
    ended_at_once = msgspec.structs.replace(uninterrupted(), attempts=2)
    assert answer("lost-work", ended_at_once) == ("not_applicable", "no-step-after-the-crash")


# resume-departs


def departing(step):
    return lambda rank, number: 2.0 / (1 + number) + (0.01 if number >= step else 0.0)


@pytest.mark.parametrize(
    ("step", "reason"), [(10, "departs-at-once"), (11, "departs-after-one-step"), (14, "departs-later")]
)
def test_when_it_departs_says_what_may_be_missing(step, reason):
    verdict = judged("resume-departs", saved_and_resumed(loss=departing(step)), uninterrupted(weights="v"))
    assert (verdict.status, verdict.reason) == ("found", reason) and verdict.evidence["departs_at"].value == step
    assert verdict.numbers["step"] == step


def test_a_departure_is_counted_from_the_resume_before_it():
    run = run_of_attempts(
        Attempt(0, 8, saves=(5,)),
        Attempt(5, 13, saves=(5, 10), found=5, loss=departing(8)),
        Attempt(10, 20, found=10, killed=None, loss=departing(8)),
    )
    verdict = judged("resume-departs", run, uninterrupted(weights="v"))
    assert verdict.reason == "departs-later" and verdict.numbers == {"step": 8, "later": 3}
    assert "at step 8, 3 steps after the resume: a later update differs" in verdict.cause


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (10, "states-lost-and-departs-at-once"),
        (11, "states-lost-and-departs-after-one-step"),
        (12, "states-lost-and-departs-later"),
    ],
)
def test_states_that_are_lost_are_named_with_when_it_departs(step, reason):
    run = run_of_attempts(
        Attempt(0, 13, saves=(5, 10), states={"optimizer": "o", "scheduler": "s"}),
        Attempt(10, 20, killed=None, resumed_states={"optimizer": "x", "scheduler": "y"}, loss=departing(step)),
    )
    verdict = judged("resume-departs", run, uninterrupted())
    assert (verdict.status, verdict.reason) == ("found", reason)
    assert verdict.numbers["states"] == ["optimizer", "scheduler"] and verdict.numbers.get("later", 2) == 2
    assert "optimizer and scheduler did not come back" in verdict.cause
    assert verdict.fix.startswith("save and restore optimizer and scheduler;")


def test_hashes_of_states_name_what_is_missing_with_and_without_a_reference():
    run = run_of_attempts(
        Attempt(0, 13, saves=(5, 10), states={"model": "m", "optimizer": "o"}),
        Attempt(10, 20, killed=None, resumed_states={"model": "m", "optimizer": "x"}, loss=departing(11)),
    )
    beside, alone = judged("resume-departs", run, uninterrupted()), judged("resume-departs", run)
    assert (beside.reason, beside.numbers["states"]) == ("states-lost-and-departs-after-one-step", ["optimizer"])
    assert (alone.status, alone.reason, alone.numbers["states"]) == ("found", "states-are-not-as-saved", ["optimizer"])


def test_states_that_came_back_are_clear_without_a_reference():
    states = {"model": "m", "optimizer": "o"}
    run = run_of_attempts(Attempt(0, 13, saves=(5, 10), states=states), Attempt(10, 20, killed=None, resumed_states=states))
    assert answer("resume-departs", run) == ("clear", "states-are-as-saved")


def test_a_state_that_has_not_shown_yet_is_found_all_the_same():
    run = run_of_attempts(
        Attempt(0, 13, saves=(10,), states={"scheduler": "s"}),
        Attempt(10, 20, killed=None, resumed_states={"scheduler": "x"}),
    )
    verdict = judged("resume-departs", run, uninterrupted())
    assert (verdict.reason, verdict.numbers) == ("states-lost-and-not-yet-seen", {"states": ["scheduler"]})


def test_equal_losses_and_other_weights_are_found():
    found = answer("resume-departs", saved_and_resumed(), uninterrupted(weights="v"))
    assert found == ("found", "last-update-departs")


def test_to_the_bit_is_clear_from_a_checkpoint_and_from_scratch():
    scratch = run_of_attempts(Attempt(0, 13), Attempt(0, 20, killed=None))
    assert answer("resume-departs", saved_and_resumed(), uninterrupted()) == ("clear", "resumed-to-the-bit")
    assert answer("resume-departs", scratch, uninterrupted()) == ("clear", "began-again-and-repeats")


def test_a_program_that_does_not_repeat_itself_cannot_be_judged():
    verdict = judged("resume-departs", saved_and_resumed(loss=departing(4)), uninterrupted())
    assert (verdict.status, verdict.reason) == ("inconclusive", "program-does-not-repeat-itself")
    assert verdict.numbers == {"step": 4}


def test_without_reference_and_hashes_it_says_what_to_add():
    verdict = judged("resume-departs", saved_and_resumed())
    assert (verdict.status, verdict.reason) == ("not_applicable", "no-uninterrupted-run")
    assert f"'{resume_departs.REFERENCE}'" in verdict.fix, "the role that a record names it by"
    assert answer("resume-departs", uninterrupted(), uninterrupted()) == ("not_applicable", "never-resumed")


def on_other_ranks(gap, from_step=10, *, ranks=3, states=None, saved=None, **facts):
    """A run that stopped on 2 ranks and went on from step 10 on `ranks`, its losses `gap` apart from the uninterrupted."""

    def shifted(rank, step):
        return 2.0 / (1 + step) * (1 + (gap if step >= from_step else 0))

    before = run_of_attempts(Attempt(0, 12, saves=(5, 10), killed=None, states=saved or {}), ranks=2, role="before")
    gone_on = Attempt(10, 20, found=10, killed=None, loss=shifted, resumed_states=states)
    record = crash_record(run_of_attempts(gone_on, ranks=ranks, **facts), uninterrupted(ranks=2))
    return msgspec.structs.replace(record, runs={**record.runs, "before": before})


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("gap", "draws", "status"),
    [
        (1e-8, False, "clear"),
        (1e-8, True, "clear"),
        (1e-2, False, "found"),  # larger than rounding, and nothing was drawn
        (1e-2, True, "inconclusive"),  # larger than rounding, as other random numbers are
        (1e-2, None, "inconclusive"),
        (9.0, True, "found"),  # back to where it began: no random numbers do that
    ],
)
def test_on_another_number_of_ranks_neither_rounding_nor_other_random_numbers_are_a_departure(ranks, gap, draws, status):
    record = on_other_ranks(gap, ranks=ranks, **({} if draws is None else {"rank_draws": draws}))
    verdict = resume_departs.detect(record)
    assert verdict.status == status
    said = {
        "clear": "losses-agree-but-for-rounding",
        "found": "losses-differ-by-more-than-rounding",
        "inconclusive": "random-numbers-may-explain-it",
    }
    assert verdict.reason == said[status] and (verdict.numbers["before"], verdict.numbers["ranks"]) == (2, ranks)
    assert verdict.cause.startswith(f"on 2 ranks and on {ranks} the losses ")


def test_on_another_number_of_ranks_runs_without_a_step_in_common_are_not_compared():
    record = on_other_ranks(0.0)
    steps = tuple(msgspec.structs.replace(step, step=step.step + 100) for step in record.run.ranks[0].steps)
    ranks = tuple(msgspec.structs.replace(log, steps=steps) for log in record.run.ranks)
    apart = {**record.runs, "variant": msgspec.structs.replace(record.run, ranks=ranks)}
    verdict = resume_departs.detect(msgspec.structs.replace(record, runs=apart))
    assert (verdict.status, verdict.reason) == ("not_applicable", "no-step-in-common")


def test_on_another_number_of_ranks_a_state_that_all_ranks_share_is_to_come_back():
    saved = {"model": "m10", "optimizer": "o10"}
    lost = on_other_ranks(1e-2, saved=saved, states={"model": "m10", "optimizer": "new"}, rank_draws=True)
    verdict = resume_departs.detect(lost)
    assert (verdict.status, verdict.reason) == ("found", "shared-states-lost")
    assert verdict.numbers == {"states": ["optimizer"], "ranks": 3}
    assert verdict.evidence["states_not_restored"].value == "optimizer"
    kept = on_other_ranks(1e-2, saved=saved, states=saved, rank_draws=True)
    assert resume_departs.detect(kept).status == "inconclusive"
    assert resume_departs.detect(on_other_ranks(0.0, saved=saved, states=saved, rank_draws=True)).status == "clear"


# single-path


def on_one_path(digests):
    return saved_and_resumed(paths=("one", "one"), alone=True, digests=digests)


def test_different_state_on_one_path_is_found_and_equal_or_untold_state_is_not():
    found = judged("single-path", on_one_path(("a", "b")))
    assert (found.status, found.reason, found.numbers) == ("found", "ranks-overwrite-each-other", {"writers": 2})
    assert answer("single-path", on_one_path(("a", "a"))) == ("inconclusive", "equal-content-to-one-path")
    untold = judged("single-path", on_one_path(("", "")))
    assert (untold.status, untold.reason) == ("inconclusive", "contents-not-recorded")
    assert untold.numbers == {"writers": 2, "path": "one"}


def test_checkpoints_that_are_written_together_or_apart_are_clear():
    assert answer("single-path", saved_and_resumed()) == ("clear", "no-path-shared")
    apart = saved_and_resumed(paths=("a", "b"), alone=True, digests=("x", "y"))
    assert answer("single-path", apart) == ("clear", "no-path-shared")


def test_one_rank_or_no_save_has_nothing_to_judge():
    alone = run_of_attempts(Attempt(0, 10, saves=(5,), alone=True, killed=None), ranks=1)
    assert answer("single-path", alone) == ("not_applicable", "one-rank-shares-no-path")
    assert answer("single-path", uninterrupted()) == ("not_applicable", "no-saves-to-compare")


# local-disk


def on_local_disks(found, had, fault="kill"):
    apart = {"paths": ("node0/5", "node1/5"), "alone": True, "fault": fault}
    return run_of_attempts(Attempt(0, 8, saves=(5,), found=0, had=(0, 0), **apart),
                           Attempt(found, 20, found=found, had=had, killed=None, **apart))  # fmt: skip


def test_what_went_with_its_node_is_found_and_what_did_not_is_not_proof():
    found = judged("local-disk", on_local_disks(0, (0, 5), "lose-node"))
    assert (found.status, found.reason) == ("found", "checkpoint-lost-with-its-node") and found.numbers == {"ranks": [0]}
    assert answer("local-disk", on_local_disks(5, (5, 5))) == ("inconclusive", "paths-apart-and-no-node-lost")
    clear = on_local_disks(5, (5, 5), "lose-node")
    assert answer("local-disk", clear) == ("clear", "every-rank-found-its-checkpoint")


def test_shared_storage_is_clear_after_a_restart_and_says_nothing_before_one():
    assert answer("local-disk", saved_and_resumed()) == ("clear", "every-rank-found-its-checkpoint")
    before = run_of_attempts(Attempt(0, 8, saves=(5,), killed=None))
    assert answer("local-disk", before) == ("inconclusive", "no-restart-after-a-save")
    assert answer("local-disk", uninterrupted()) == ("not_applicable", "no-saves-recorded")


# checkpoint-interval


def saving(every, *, stall_s=0.004, mtbf_s=0.0, steps=60):
    """Steps of 10 ms."""
    run = run_of_attempts(Attempt(0, steps, saves=tuple(range(every, steps + 1, every)), killed=None, stall_s=stall_s))
    facts = {"mtbf_s": mtbf_s} if mtbf_s else {}
    heads = [msgspec.structs.replace(log, head=msgspec.structs.replace(log.head, facts=facts)) for log in run.ranks]
    return msgspec.structs.replace(run, ranks=tuple(heads))


def test_youngs_interval_is_clear_and_far_ones_are_found():
    """A save of 4 ms and a failure every 4.5 s ask for one every 190 ms: 19 steps."""
    assert young_interval(Costs(save=0.004, restart=0, mtbf=4.5)) == pytest.approx(0.19, abs=0.001)
    assert answer("checkpoint-interval", saving(19, mtbf_s=4.5)) == ("clear", "no-interval-much-better")
    often = judged("checkpoint-interval", saving(1, mtbf_s=4.5))
    assert (often.status, often.reason) == ("found", "saves-too-often") and "every 0.19 s" in often.fix
    assert often.numbers["interval"] == pytest.approx(0.01) and often.numbers["better"] == pytest.approx(0.19, abs=0.001)
    seldom = judged("checkpoint-interval", saving(200, mtbf_s=4.5, steps=800))
    assert (seldom.status, seldom.reason) == ("found", "saves-too-seldom")
    assert seldom.waste == seldom.numbers["gain"] > 0.1


def test_without_a_mean_time_between_failures_no_interval_is_right_or_wrong():
    assert answer("checkpoint-interval", saving(1)) == ("inconclusive", "time-between-failures-not-known")


def test_costs_that_vary_hide_the_best_interval():
    run = saving(4, mtbf_s=4.5, steps=40)
    events = [msgspec.structs.replace(e, fields={**e.fields, "stall_s": 0.0005 if i % 2 else 0.012})
              for i, e in enumerate(run.ranks[0].events)]  # fmt: skip
    ranks = tuple(msgspec.structs.replace(log, events=tuple(events)) for log in run.ranks)
    varying = msgspec.structs.replace(run, ranks=ranks)
    assert answer("checkpoint-interval", varying) == ("inconclusive", "cost-of-a-save-varies")


def test_few_saves_or_none_are_not_judged():
    assert answer("checkpoint-interval", saving(30, mtbf_s=5, steps=30)) == ("inconclusive", "too-few-saves")
    assert answer("checkpoint-interval", uninterrupted()) == ("not_applicable", "no-save-timed")
