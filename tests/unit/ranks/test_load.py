"""The look at the machine: all that its cores did, less what was labkit's own."""

from types import SimpleNamespace

import pytest

from labkit.ranks import load
from labkit.ranks.load import LoadWatch, Look


@pytest.fixture
def looks(monkeypatch):
    """Looks in a row, in place of the machine's; nothing sleeps."""
    given = []
    monkeypatch.setattr(load, "look", lambda: given.pop(0))
    monkeypatch.setattr(load, "usable_cores", lambda: 2)
    monkeypatch.setattr(load.time, "sleep", lambda _: None)
    monkeypatch.setattr(LoadWatch, "_last", None)
    return given


def test_what_others_used_is_what_the_cores_did_less_ones_own(looks):
    looks += [Look(0.0, 10.0, 1.0), Look(0.1, 10.1, 1.0), Look(10.1, 30.1, 3.0)]
    found = LoadWatch().ended(wanted=4)
    assert (found.before, found.during, found.own, found.cores, found.wanted) == (1.0, 1.8, 0.2, 2, 4)


def test_the_end_of_one_launch_shows_the_machine_before_the_next(looks):
    looks += [Look(0.0, 0.0, 0.0), Look(0.1, 0.0, 0.0), Look(5.0, 5.0, 5.0)]
    assert LoadWatch().ended(wanted=1).during == 0.0
    looks += [Look(7.0, 9.0, 5.0), Look(8.0, 10.0, 6.0)]
    found = LoadWatch().ended(wanted=1)
    assert (found.before, found.during) == (2.0, 0.0)


def test_counts_that_make_no_sense_are_bounded_and_a_machine_that_shows_nothing_has_no_load(looks):
    looks += [Look(0.0, 10.0, 1.0), Look(0.1, 10.0, 1.0), Look(1.1, 10.5, 3.0)]
    assert LoadWatch().ended(wanted=1).during == 0.0, "a rank's time may be counted a moment before the core's"
    looks += [None, None, None, None]
    assert LoadWatch().ended(wanted=1) is None


def test_a_look_at_this_machine_counts_what_this_process_does():
    import time

    before = load.look()
    end = time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = load.look()
    assert after.own_s - before.own_s >= 0.08 and after.busy_s - before.busy_s >= 0.05
    assert load._busy_s(SimpleNamespace(_asdict=lambda: {"user": 2.0, "steal": 1.0, "idle": 7.0, "guest": 1.0})) == 3.0
