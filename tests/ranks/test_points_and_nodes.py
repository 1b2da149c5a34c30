"""Faults at points that a program names; a node that is lost with its disk; what each attempt left can be read."""

from __future__ import annotations

import os

import pytest

from labkit.errors import RankFailed
from labkit.ranks.faults import Fault
from labkit.ranks.launch import launch
from labkit.ranks.rendezvous_store import meet_after_a_crash
from labkit.record.store import read_run

pytestmark = pytest.mark.ranks


def works_in_parts(context):
    """Three steps, and in each a point; something on the node's disk. Says what an attempt found there."""
    found = context.local_disk.exists()
    context.local_disk.mkdir(exist_ok=True)
    for _ in range(3):
        context.probe.begin_step()
        context.probe.end_step()
        context.reached("middle")
    context.probe.event("done")
    return context.attempt, found


def run(folder, *faults, restarts=1, ranks=2):
    return launch(works_in_parts, ranks=ranks, folder=folder, faults=faults, max_restarts=restarts, deadline_s=60)


def test_a_kill_at_a_point_comes_the_first_time_that_the_rank_is_there_from_that_step_on(folder):
    launched = run(folder, Fault(kind="kill", rank=1, step=1, at="middle"))
    assert (launched.attempts, launched.faults_fired) == (2, 1)
    one = read_run(folder, "variant", 0.0, 2)
    (killed,) = [log for log in one.earlier[0] if log.head.rank == 1]
    assert [step.step for step in killed.steps] == [0, 1]  # the step itself was done
    (fault,) = [event for event in killed.events if event.name == "fault"]
    assert (fault.step, fault.fields["at"]) == (1, "middle")


def test_a_point_that_no_program_comes_to_never_fires(folder):
    assert run(folder, Fault(kind="kill", rank=0, step=0, at="nowhere")).faults_fired == 0


@pytest.mark.parametrize(("kind", "kept"), [("kill", True), ("lose-node", False)])
def test_a_lost_node_takes_its_disk_along_and_a_killed_rank_does_not(folder, kind, kept):
    launched = run(folder, Fault(kind=kind, rank=1, step=2))
    assert launched.values[1] == (1, kept) and launched.values[0][0] == 1


def test_every_attempt_can_be_read_also_one_that_wrote_nothing(folder):
    faults = (Fault(kind="kill", rank=0, step=0, attempt=0), Fault(kind="exception", rank=1, step=2, attempt=1))
    run(folder, *faults, restarts=2)
    one = read_run(folder, "variant", 0.0, 3)
    assert one.attempts == 3 and [log.head.attempt for log in one.ranks] == [2, 2]
    assert [{log.head.attempt for log in logs} for logs in one.earlier] == [{0}, {1}]
    assert all(log.finished for log in one.ranks)
    assert not any(log.finished for logs in one.earlier for log in logs if any(e.name == "fault" for e in log.events))


def test_restarts_that_are_used_up_still_end_in_the_named_error(folder):
    with pytest.raises(RankFailed, match="killed: by SIGKILL|vanished"):
        run(folder, Fault(kind="kill", rank=0, step=1, attempt=None), restarts=2)


def test_with_a_store_for_each_attempt_ranks_meet_again_and_the_environment_is_left_as_it_was():
    before = dict(os.environ)
    assert meet_after_a_crash(share_store=False).met
    assert dict(os.environ) == before


def test_with_the_agents_store_they_meet_fail_or_hang_but_not_for_long():
    meeting = meet_after_a_crash(share_store=True)
    assert meeting.met or meeting.said
    assert ("met after" in repr(meeting)) == meeting.met
