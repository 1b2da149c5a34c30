"""When the launcher ends an attempt by itself, and when it leaves that to the agent."""

from dataclasses import dataclass, field

import pytest

from labkit.ranks import launch
from labkit.ranks.rendezvous import Rounds


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
