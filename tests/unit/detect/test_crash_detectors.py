"""The detectors of a crash, on records that are made of plain numbers: found, clear, inconclusive, not applicable."""

import msgspec
import pytest

from labkit.detect import detector
from labkit.detect.crash import resume_departs
from labkit.theory.reliability import Costs, young_interval

from ..crash_records import Attempt, crash_record, run_of_attempts, saved_and_resumed, uninterrupted


def judged(name, run, reference=None):
    verdict = detector(name)(crash_record(run, reference))
    assert verdict.status == "clear" or verdict.fix
    return verdict


# lost-work


def test_steps_that_were_never_saved_are_found():
    verdict = judged("lost-work", run_of_attempts(Attempt(0, 13), Attempt(0, 20, killed=None)))
    assert verdict.status == "found" and verdict.waste == pytest.approx(13 / 33)
    assert "back to step 0: 13 steps" in verdict.cause


def test_a_checkpoint_that_was_not_used_is_found():
    run = run_of_attempts(Attempt(0, 13, saves=(5, 10)), Attempt(5, 20, found=5, killed=None))
    assert "a checkpoint of 10 steps was complete" in judged("lost-work", run).cause


def test_steps_since_the_newest_checkpoint_are_no_fault():
    verdict = judged("lost-work", saved_and_resumed())
    assert verdict.status == "clear" and verdict.evidence["lost_steps"].value == 3


def test_a_crash_before_the_first_checkpoint_tells_nothing():
    run = run_of_attempts(Attempt(0, 3, found=0), Attempt(0, 20, saves=(5, 10), found=0, killed=None))
    assert judged("lost-work", run).status == "inconclusive"


def test_without_a_crash_nothing_was_lost():
    assert judged("lost-work", uninterrupted()).status == "not_applicable"


# resume-departs


def departing(step):
    return lambda rank, number: 2.0 / (1 + number) + (0.01 if number >= step else 0.0)


@pytest.mark.parametrize(("step", "why"), [(10, "random numbers"), (11, "optimizer"), (14, "schedule")])
def test_when_it_departs_says_what_may_be_missing(step, why):
    verdict = judged("resume-departs", saved_and_resumed(loss=departing(step)), uninterrupted(weights="v"))
    assert verdict.status == "found" and why in verdict.cause and verdict.evidence["departs_at"].value == step


def test_hashes_of_states_name_what_is_missing_with_and_without_a_reference():
    run = run_of_attempts(
        Attempt(0, 13, saves=(5, 10), states={"model": "m", "optimizer": "o"}),
        Attempt(10, 20, killed=None, resumed_states={"model": "m", "optimizer": "x"}, loss=departing(11)),
    )
    assert "optimizer did not come back" in judged("resume-departs", run, uninterrupted()).cause
    assert "after the resume optimizer is not what was saved" in judged("resume-departs", run).cause


def test_a_state_that_has_not_shown_yet_is_found_all_the_same():
    run = run_of_attempts(
        Attempt(0, 13, saves=(10,), states={"scheduler": "s"}),
        Attempt(10, 20, killed=None, resumed_states={"scheduler": "x"}),
    )
    assert "will show later" in judged("resume-departs", run, uninterrupted()).cause


def test_equal_losses_and_other_weights_are_found():
    assert "last update" in judged("resume-departs", saved_and_resumed(), uninterrupted(weights="v")).cause


def test_to_the_bit_is_clear_from_a_checkpoint_and_from_scratch():
    scratch = run_of_attempts(Attempt(0, 13), Attempt(0, 20, killed=None))
    for run in (saved_and_resumed(), scratch):
        assert judged("resume-departs", run, uninterrupted()).status == "clear"


def test_a_program_that_does_not_repeat_itself_cannot_be_judged():
    verdict = judged("resume-departs", saved_and_resumed(loss=departing(4)), uninterrupted())
    assert verdict.status == "inconclusive" and "from step 4 on, before the crash" in verdict.cause


def test_without_reference_and_hashes_it_says_what_to_add():
    verdict = judged("resume-departs", saved_and_resumed())
    assert verdict.status == "not_applicable" and "'uninterrupted'" in verdict.fix
    assert judged("resume-departs", uninterrupted(), uninterrupted()).status == "not_applicable"


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
    assert (verdict.status == "inconclusive") == ("dropout" in verdict.fix)


def test_on_another_number_of_ranks_a_state_that_all_ranks_share_is_to_come_back():
    saved = {"model": "m10", "optimizer": "o10"}
    lost = on_other_ranks(1e-2, saved=saved, states={"model": "m10", "optimizer": "new"}, rank_draws=True)
    verdict = resume_departs.detect(lost)
    assert verdict.status == "found" and verdict.evidence["states_not_restored"].value == "optimizer"
    kept = on_other_ranks(1e-2, saved=saved, states=saved, rank_draws=True)
    assert resume_departs.detect(kept).status == "inconclusive"
    assert resume_departs.detect(on_other_ranks(0.0, saved=saved, states=saved, rank_draws=True)).status == "clear"


# single-path


def on_one_path(digests):
    return saved_and_resumed(paths=("one", "one"), alone=True, digests=digests)


def test_different_state_on_one_path_is_found_and_equal_or_untold_state_is_not():
    assert judged("single-path", on_one_path(("a", "b"))).status == "found"
    assert judged("single-path", on_one_path(("a", "a"))).status == "inconclusive"
    assert judged("single-path", on_one_path(("", ""))).status == "inconclusive"


def test_checkpoints_that_are_written_together_or_apart_are_clear():
    assert judged("single-path", saved_and_resumed()).status == "clear"
    assert judged("single-path", saved_and_resumed(paths=("a", "b"), alone=True, digests=("x", "y"))).status == "clear"


def test_one_rank_or_no_save_has_nothing_to_judge():
    alone = run_of_attempts(Attempt(0, 10, saves=(5,), alone=True, killed=None), ranks=1)
    assert judged("single-path", alone).status == "not_applicable"
    assert judged("single-path", uninterrupted()).status == "not_applicable"


# local-disk


def on_local_disks(found, had, fault="kill"):
    apart = {"paths": ("node0/5", "node1/5"), "alone": True, "fault": fault}
    return run_of_attempts(Attempt(0, 8, saves=(5,), found=0, had=(0, 0), **apart),
                           Attempt(found, 20, found=found, had=had, killed=None, **apart))  # fmt: skip


def test_what_went_with_its_node_is_found_and_what_did_not_is_not_proof():
    assert judged("local-disk", on_local_disks(0, (0, 5), "lose-node")).status == "found"
    assert judged("local-disk", on_local_disks(5, (5, 5))).status == "inconclusive"
    assert judged("local-disk", on_local_disks(5, (5, 5), "lose-node")).status == "clear"


def test_shared_storage_is_clear_after_a_restart_and_says_nothing_before_one():
    assert judged("local-disk", saved_and_resumed()).status == "clear"
    assert judged("local-disk", run_of_attempts(Attempt(0, 8, saves=(5,), killed=None))).status == "inconclusive"
    assert judged("local-disk", uninterrupted()).status == "not_applicable"


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
    assert judged("checkpoint-interval", saving(19, mtbf_s=4.5)).status == "clear"
    often = judged("checkpoint-interval", saving(1, mtbf_s=4.5))
    assert often.status == "found" and "too often" in often.cause and "every 0.19 s" in often.fix
    seldom = judged("checkpoint-interval", saving(200, mtbf_s=4.5, steps=800))
    assert seldom.status == "found" and "too seldom" in seldom.cause and seldom.waste > 0.1


def test_without_a_mean_time_between_failures_no_interval_is_right_or_wrong():
    assert judged("checkpoint-interval", saving(1)).status == "inconclusive"


def test_costs_that_vary_hide_the_best_interval():
    run = saving(4, mtbf_s=4.5, steps=40)
    events = [msgspec.structs.replace(e, fields={**e.fields, "stall_s": 0.0005 if i % 2 else 0.012})
              for i, e in enumerate(run.ranks[0].events)]  # fmt: skip
    ranks = tuple(msgspec.structs.replace(log, events=tuple(events)) for log in run.ranks)
    assert judged("checkpoint-interval", msgspec.structs.replace(run, ranks=ranks)).status == "inconclusive"


def test_few_saves_or_none_are_not_judged():
    assert judged("checkpoint-interval", saving(30, mtbf_s=5, steps=30)).status == "inconclusive"
    assert judged("checkpoint-interval", uninterrupted()).status == "not_applicable"
