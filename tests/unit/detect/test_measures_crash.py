"""What a crash did, out of records that are made of plain numbers."""

import msgspec
import pytest

from labkit.detect import detector
from labkit.detect.crash.measures import (
    attempts,
    crash_measures,
    crashes,
    first_difference,
    global_losses,
    goodput,
    resumed_at,
    saves,
    states_not_restored,
    steps_that_count,
    time_split,
)
from labkit.detect.reads.measures import reads

from ..builders import record_of, run_of
from ..crash_records import Attempt, crash_record, run_of_attempts, saved_and_resumed, uninterrupted


def test_a_crash_loses_what_came_since_the_checkpoint_that_was_used():
    (crash,) = crashes(saved_and_resumed())
    assert (crash.done, crash.newest_save, crash.resumed_at, crash.lost_steps) == (13, 10, 10, 3)
    assert crash.restart_s == pytest.approx(0.5)


def test_a_step_that_another_rank_did_not_finish_is_not_done():
    """The rank that waited in the step of the crash writes it down as well."""
    run = saved_and_resumed()
    first = run.earlier[0]
    one_more = msgspec.structs.replace(first[1].steps[-1], step=13)
    longer = msgspec.structs.replace(first[1], steps=(*first[1].steps, one_more))
    run = msgspec.structs.replace(run, earlier=((first[0], longer),))
    assert crashes(run)[0].done == 13


def test_attempts_that_came_to_no_step_are_part_of_the_restart():
    nothing = Attempt(10, 10, found=10, killed=None)
    run = run_of_attempts(Attempt(0, 13, saves=(10,)), nothing, nothing, Attempt(10, 20, killed=None))
    (crash,) = crashes(run)
    assert len(attempts(run)) == 4 and (crash.done, crash.resumed_at) == (13, 10)
    assert crash.restart_s == pytest.approx(1.5)


@pytest.mark.parametrize("begins", [0, 10])
def test_an_attempt_that_was_killed_in_its_first_step_before_anything_was_written_is_a_crash(begins):
    run = run_of_attempts(Attempt(begins, begins), Attempt(0, 20, killed=None))
    (crash,) = crashes(run)
    assert (crash.done, crash.resumed_at, crash.lost_steps) == (begins, 0, begins)
    assert resumed_at(run) == 0


def test_a_checkpoint_that_one_rank_alone_says_is_complete_does_not_count():
    run = saved_and_resumed()
    first = run.earlier[0]
    without = msgspec.structs.replace(first[1], events=tuple(e for e in first[1].events if e.fields.get("of_step") != 10))
    assert crashes(msgspec.structs.replace(run, earlier=((first[0], without),)))[0].newest_save == 5


def test_several_crashes_are_counted_one_by_one():
    run = run_of_attempts(Attempt(0, 7, saves=(5,)), Attempt(5, 12, saves=(10,)), Attempt(10, 20, killed=None))
    assert [crash.lost_steps for crash in crashes(run)] == [2, 2]
    assert crash_measures(crash_record(run))["lost_steps"].value == 4


def test_a_run_without_a_crash_lost_nothing():
    run = uninterrupted()
    assert crashes(run) == [] and resumed_at(run) is None and "lost_steps" not in crash_measures(crash_record(run))


def test_a_step_that_was_done_twice_counts_as_it_was_done_last():
    run = run_of_attempts(Attempt(0, 4, loss=lambda rank, step: 9.0), Attempt(2, 6, killed=None, loss=lambda r, s: 1.0))
    assert list(global_losses(run).values()) == [9.0, 9.0, 1.0, 1.0, 1.0, 1.0]
    assert set(steps_that_count(run)) == {0, 1}


def test_goodput_is_the_share_of_steps_that_count():
    """20 steps' time are work, 3 are lost, half a second is the restart."""
    assert goodput(saved_and_resumed()) == pytest.approx(0.20 / (0.13 + 0.5 + 0.10))


def test_all_of_the_time_is_useful_lost_saving_restarting_or_between():
    """Steps 10 ms long; after two of each attempt a pause of 6 ms, of which 4 are a save."""

    def later(log, first, pauses):
        moved, by = [], 0
        for step in log.steps:
            moved.append(msgspec.structs.replace(step, start_ns=step.start_ns + by, end_ns=step.end_ns + by))
            by += 6_000_000 if step.step + 1 in pauses else 0
        events = tuple(msgspec.structs.replace(event, time_ns=event.time_ns + by) for event in log.events)
        return msgspec.structs.replace(log, steps=tuple(moved), events=events)

    run = saved_and_resumed()
    run = msgspec.structs.replace(
        run,
        ranks=tuple(later(log, 10, (15, 20)) for log in run.ranks),
        earlier=(tuple(later(log, 0, (5, 10)) for log in run.earlier[0]),),
    )
    split = time_split(run)
    elapsed = attempts(run)[-1].last_ns - attempts(run)[0].started_ns
    shares = [split.useful, split.lost, split.saving, split.restarting, split.between]
    assert sum(shares) == pytest.approx(1) and min(shares) >= 0
    useful, lost, saving, restarting, _ = (round(share * elapsed / 1e6) for share in shares)
    assert (useful, lost, saving) == (200, 30, 16) and restarting == round(1e3 * crashes(run)[0].restart_s)


def test_what_is_done_again_is_lost_also_where_nothing_was_saved():
    run = run_of_attempts(Attempt(0, 13), Attempt(0, 20, killed=None))
    split = time_split(run)
    assert split.lost == pytest.approx(0.13 / (0.13 + 0.5 + 0.20)) and split.saving == 0
    measured = crash_measures(crash_record(run))
    names = ("goodput", "time_lost", "time_saving", "time_restarting", "time_between")
    assert sum(measured[name].value for name in names) == pytest.approx(1)


def test_the_first_difference_is_that_of_any_rank():
    def differs(rank, step):
        return 2.0 / (1 + step) + (1e-12 if rank == 1 and step >= 12 else 0)

    assert first_difference(saved_and_resumed(loss=differs), uninterrupted()) == 12
    assert first_difference(saved_and_resumed(), uninterrupted()) is None


def test_states_are_compared_by_name_rank_and_step():
    def run(resumed):
        return run_of_attempts(
            Attempt(0, 13, saves=(5, 10), states={"model": "m", "rng": "r"}),
            Attempt(10, 20, killed=None, resumed_states=resumed),
        )

    assert states_not_restored(run({"model": "m", "rng": "r"})) == []
    assert states_not_restored(run({"model": "m", "rng": "x"})) == ["rng"]
    assert states_not_restored(saved_and_resumed()) is None


def test_saves_are_told_with_what_they_took():
    one = saves(saved_and_resumed())[0]
    assert (one.of_step, one.stall_s, one.num_bytes, one.path) == (5, 0.004, 1000, "shared")
    measures = crash_measures(crash_record(saved_and_resumed(), uninterrupted()))
    assert measures["saves"].value == 4 and measures["save_stall_ms"].value == pytest.approx(4.0)
    assert measures["weights_equal_uninterrupted"].value is True and measures["departs_at"].value == "never"


def test_an_epoch_that_a_run_went_on_in_is_not_a_whole_one():
    """Otherwise a run that goes on from a checkpoint would seem to leave out what it read before."""
    whole = run_of([[[[0, 1], [2, 3]]], [[[1, 0], [3, 2]]]], dataset_size=4)
    steps = tuple(msgspec.structs.replace(step, step=step.step + 1) for step in whole.ranks[0].steps[1:])
    resumed = msgspec.structs.replace(whole, ranks=(msgspec.structs.replace(whole.ranks[0], steps=steps),))
    assert [reads(run, 0).complete for run in (whole, resumed)] == [True, False]
    assert reads(resumed, 1).complete
    verdict = detector("coverage")(record_of(resumed))
    assert verdict.status == "clear" and verdict.evidence["epochs_judged"].value == 1  # the cut one is no whole one
