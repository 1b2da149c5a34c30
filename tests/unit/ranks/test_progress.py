"""How long a launch will take: by the pace that was seen, whatever came before it."""

import pytest

from labkit.ranks.progress import Pace


def told(*looks):
    """What a pace says after each look: (attempt, share of the steps, seconds)."""
    pace = Pace()
    return [pace.left_s(*look) for look in looks]


def test_the_seconds_in_which_processes_come_up_are_no_part_of_the_pace():
    *early, last = told((0, 0.0, 5.0), (0, 0.0, 20.0), (0, 0.1, 20.0), (0, 0.3, 22.0))
    assert early == [None, None, None]
    assert last == pytest.approx(7.0), "0.2 of the steps took 2 s, and 0.7 are left"


def test_nothing_is_told_after_a_moment_or_a_few_steps():
    assert told((0, 0.1, 1.0), (0, 0.5, 1.5)) == [None, None]
    assert told((0, 0.1, 1.0), (0, 0.11, 30.0)) == [None, None]


def test_a_restart_is_judged_by_its_own_pace():
    *_, before, at, after = told((0, 0.1, 1.0), (0, 0.5, 5.0), (1, 0.4, 25.0), (1, 0.7, 31.0))
    assert (before, at, after) == (pytest.approx(5.0), None, pytest.approx(6.0))


def test_at_the_end_nothing_is_left_and_more_steps_than_planned_tell_nothing():
    assert told((0, 0.5, 1.0), (0, 1.0, 3.0))[-1] == 0.0
    assert told((0, 0.5, 1.0), (0, 1.2, 3.0))[-1] is None
