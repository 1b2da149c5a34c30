"""Faults that are asked for do happen, are counted and recorded; the elastic agent starts again what was killed."""

from __future__ import annotations

import pytest
import rank_programs as programs

from labkit.errors import RankFailed, UsageError
from labkit.ranks.faults import Fault
from labkit.ranks.launch import launch
from labkit.record.store import rank_file, read_rank

pytestmark = pytest.mark.ranks


def faults_in(folder, rank, attempt=0):
    log = read_rank(rank_file(folder, rank, attempt))
    return [(event.fields["fault"], event.fields["at_step"]) for event in log.events if event.name == "fault"]


def test_a_delay_happens_once_where_it_was_planned(folder):
    fault = Fault(kind="delay", rank=1, step=3, seconds=0.4)
    launched = launch(programs.steps, 6, ranks=2, folder=folder, faults=(fault,))
    assert launched.faults_fired == 1
    assert faults_in(folder, 1) == [("delay", 3)]
    assert faults_in(folder, 0) == []
    # the delay lies at the beginning of the step; the other rank waits for it in the step's all-reduce
    steps = read_rank(rank_file(folder, 0)).steps
    longest = max(steps, key=lambda step: step.end_ns - step.start_ns)
    assert longest.step == 3
    assert longest.end_ns - longest.start_ns > 0.3e9


def test_an_exception_is_raised_where_it_was_planned(folder):
    fault = Fault(kind="exception", rank=0, step=2)
    with pytest.raises(RankFailed, match="rank 0 failed: InjectedFault: injected at rank 0, step 2"):
        launch(programs.steps, 6, ranks=2, folder=folder, faults=(fault,))
    assert faults_in(folder, 0) == [("exception", 2)]


def test_a_kill_is_recorded_before_it_happens_and_every_finished_step_stays(folder):
    fault = Fault(kind="kill", rank=1, step=4)
    with pytest.raises(RankFailed, match="rank 1 (killed: by SIGKILL in step 4|vanished: in step 4)") as caught:
        launch(programs.steps, 6, ranks=2, folder=folder, faults=(fault,))
    assert "for want of memory" not in str(caught.value), "it is known who sent it"
    log = read_rank(rank_file(folder, 1))
    assert [step.step for step in log.steps] == [0, 1, 2, 3]
    assert [step.scalar("total") for step in log.steps] == [0.0, 2.0, 4.0, 6.0]
    assert faults_in(folder, 1) == [("kill", 4)]
    assert not log.finished


def test_without_a_fault_none_is_counted(folder):
    assert launch(programs.steps, 2, ranks=2, folder=folder).faults_fired == 0


def test_a_killed_rank_is_started_again_and_both_attempts_stay(folder):
    fault = Fault(kind="kill", rank=0, step=3)
    launched = launch(programs.steps, 5, ranks=2, folder=folder, faults=(fault,), max_restarts=2)
    assert launched.attempts == 2
    assert launched.values == ((1, 8.0), (1, 8.0))
    assert launched.faults_fired == 1
    assert [len(read_rank(rank_file(folder, 0, attempt)).steps) for attempt in (0, 1)] == [3, 5]
    assert [read_rank(rank_file(folder, 1, attempt)).finished for attempt in (0, 1)] == [False, True]
    assert not list(folder.glob("store*"))


def test_ten_kills_in_a_row_are_all_recovered_from_at_once(folder):
    faults = tuple(Fault(kind="kill", rank=k % 3, step=k % 4, attempt=k) for k in range(10))
    launched = launch(programs.steps, 5, ranks=3, folder=folder, faults=faults, max_restarts=10, deadline_s=60)
    assert launched.attempts == 11
    assert launched.faults_fired == 10
    assert launched.values == ((10, 12.0),) * 3
    for attempt in range(10):
        assert faults_in(folder, attempt % 3, attempt) == [("kill", attempt % 4)]


def test_when_the_restarts_are_used_up_the_last_attempt_is_told(folder):
    fault = Fault(kind="exception", rank=1, step=1, attempt=None)
    with pytest.raises(RankFailed, match="rank 1 failed: InjectedFault"):
        launch(programs.steps, 3, ranks=2, folder=folder, faults=(fault,), max_restarts=2)
    assert sorted(path.name for path in folder.glob("rank-00001*.jsonl")) == [
        "rank-00001.attempt1.jsonl",
        "rank-00001.attempt2.jsonl",
        "rank-00001.jsonl",
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "explode", "rank": 0, "step": 0}, "there are: delay, exception, kill"),
        ({"kind": "kill", "rank": -1, "step": 0}, "count from 0"),
        ({"kind": "delay", "rank": 0, "step": 0}, "a delay needs seconds > 0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(fields, said):
    with pytest.raises(UsageError, match=said):
        Fault(**fields)


def test_a_fault_for_a_rank_that_is_not_there_is_refused(folder):
    with pytest.raises(UsageError, match="rank 2, but ranks count from 0 to 1"):
        launch(programs.steps, 3, ranks=2, folder=folder, faults=(Fault(kind="kill", rank=2, step=0),))
    assert not list(folder.iterdir())
