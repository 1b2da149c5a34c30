"""When the launcher ends an attempt by itself, and when it leaves that to the agent."""

import json
from dataclasses import dataclass, field, replace

import pytest

from labkit.ranks import launch
from labkit.ranks.agent import Abandoned
from labkit.ranks.backend import Placement
from labkit.ranks.board import RankState, Row
from labkit.ranks.job import Job, error_file
from labkit.ranks.rendezvous import Rounds
from labkit.ranks.reports import explain


@dataclass
class Gone:
    """A rank whose process is gone."""

    attempt: int = 0
    is_lost: bool = True
    is_alive: bool = False

    def kill(self) -> None:
        pass


@dataclass
class StandIn:
    """A board and an agent at once: two ranks of the first attempt, both gone."""

    rounds: Rounds = field(default_factory=lambda: Rounds(begun=1))
    seen: list[Gone] = field(default_factory=lambda: [Gone(), Gone()])
    abandoned: int = 0

    def rows(self) -> list[Gone]:
        return self.seen

    def abandon(self) -> None:
        self.abandoned += 1


def looked(both: StandIn, seconds: float) -> launch._Lost:
    lost = launch._Lost(both, both)  # pyright: ignore[reportArgumentType]
    for tick in range(int(seconds * 4) + 1):
        lost.look(tick / 4)
    return lost


def test_an_agent_that_does_not_notice_is_abandoned_after_a_while():
    both = StandIn()
    assert looked(both, launch._ABANDON_S - 0.5).acted_upon == [0, 1] and not both.abandoned
    looked(both, launch._ABANDON_S + 1)
    assert both.abandoned


def test_an_agent_that_has_begun_the_next_attempt_is_left_in_peace_however_long_its_ranks_take():
    both = StandIn(rounds=Rounds(begun=2))
    assert looked(both, 60).acted_upon == [] and not both.abandoned


@pytest.mark.parametrize("begun, abandoned", [(2, True), (3, False)])
def test_the_same_holds_of_a_second_restart(begun, abandoned):
    both = StandIn(rounds=Rounds(begun=begun), seen=[Gone(attempt=1), Gone(attempt=1)])
    looked(both, 60)
    assert bool(both.abandoned) == abandoned


def test_a_rank_that_failed_for_want_of_another_is_not_the_cause(tmp_path):
    """Where the launcher had to act by itself, all three are gone: rank 1 alone left nothing behind."""
    gone = Row(
        pid=2**22 + 1, started_ticks=1, attempt=0, state=RankState.RUNNING, step=3, total_steps=0, together=0, faults=0,
        returned_ns=0, errno=0,
    )  # fmt: skip
    rows = [replace(gone, state=RankState.FAILED), gone, replace(gone, state=RankState.FAILED)]
    job = Job(
        program=b"", origin="", folder=tmp_path, world_size=3, placement=Placement("gloo", "cpu", 0, ""), threads=1, seed=0,
        deadline_s=1.0,
    )  # fmt: skip
    said = {"message": "while it waited in all_reduce", "where": None, "victim": True, "gone": [0, 1], "text": ""}
    for rank in (0, 2):
        error_file(tmp_path, rank, 0).write_text(json.dumps(said))
    error = explain(Abandoned(), rows, job, lost=[0, 1, 2], server_died=False)
    assert [(rank, report.state) for rank, report in error.ranks.items()] == [
        (1, "vanished"),
        (0, "lost its peer"),
        (2, "lost its peer"),
    ]
