"""A planned fault fires at its rank, step and attempt, and nowhere else."""

import math

import pytest

from labkit.errors import UsageError
from labkit.ranks.faults import Fault, FaultInjector, InjectedFault


def fired(faults, *, rank=0, attempt=0, steps=5) -> list[tuple[str, int]]:
    """Kind and step of the faults that a rank announces, over some steps."""
    announced = []
    injector = FaultInjector(tuple(faults), rank, attempt, announced.append)
    for step in range(steps):
        before = len(announced)
        try:
            injector(step)
        except InjectedFault:
            assert len(announced) == before + 1
    return [(fault.kind, fault.step) for fault in announced]


def at(rank=1, step=3, **given) -> Fault:
    return Fault(**({"kind": "exception", "rank": rank, "step": step} | given))


@pytest.mark.parametrize("rank", range(4))
@pytest.mark.parametrize("attempt", range(3))
def test_a_fault_fires_once_and_only_at_its_rank_step_and_attempt(rank, attempt):
    expected = [("exception", 3)] if (rank, attempt) == (1, 0) else []
    assert fired([at()], rank=rank, attempt=attempt) == expected


@pytest.mark.parametrize("attempt", range(3))
def test_without_an_attempt_it_fires_in_each_and_with_one_in_that_alone(attempt):
    assert fired([at(attempt=None)], rank=1, attempt=attempt) == [("exception", 3)]
    assert fired([at(attempt=1)], rank=1, attempt=attempt) == ([("exception", 3)] if attempt == 1 else [])


def test_a_fault_after_the_last_step_does_not_fire():
    assert fired([at(step=5)], rank=1, steps=5) == []


def test_several_faults_fire_each_at_its_own_step():
    delay = Fault(kind="delay", rank=1, step=1, seconds=1e-9)
    assert fired([at(), delay, at(rank=2), at(step=0)], rank=1) == [("exception", 0), ("delay", 1), ("exception", 3)]


def test_an_injected_exception_says_where_it_was_planned():
    with pytest.raises(InjectedFault, match="injected at rank 1, step 3"):
        FaultInjector((at(),), 1, 0, lambda fault: None)(3)


def test_it_is_announced_before_it_happens(monkeypatch):
    """So that a rank that kills itself has said so."""
    order = []
    monkeypatch.setattr("os.kill", lambda pid, signal: order.append("kill"))
    FaultInjector((at(kind="kill"),), 1, 0, lambda fault: order.append("announce"))(3)
    assert order == ["announce", "kill"]


def test_a_delay_sleeps_its_seconds(monkeypatch):
    slept = []
    monkeypatch.setattr("time.sleep", slept.append)
    assert fired([at(kind="delay", seconds=7.5)], rank=1) == [("delay", 3)]
    assert slept == [7.5]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"kind": "explode"}, "fault kind 'explode'; there are: delay, exception, kill"),
        ({"rank": -1}, "count from 0; given rank=-1, step=3"),
        ({"step": -1}, "count from 0; given rank=1, step=-1"),
        ({"kind": "delay"}, "a delay needs seconds > 0; given 0.0"),
        ({"kind": "delay", "seconds": -1}, "a delay needs seconds > 0; given -1"),
        ({"kind": "delay", "seconds": math.nan}, "a delay needs seconds > 0; given nan"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(given, text):
    with pytest.raises(UsageError) as caught:
        at(**given)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "delay", "seconds": float("inf")}, {"kind": "delay", "seconds": float("nan")}, {"kind": "kill", "rank": "0"},
     {"kind": "kill", "step": 1.5}, {"kind": "kill", "rank": True}],
)  # fmt: skip
def test_a_fault_that_cannot_happen_is_refused_before_anything_starts(wrong):
    with pytest.raises(UsageError, match="a delay needs|count from 0"):
        Fault(**{"rank": 0, "step": 0, **wrong})
