"""The pace of an emulated store, by a clock of its own: no faster than its rate, and late only by what it slept too long."""

import types

import pytest

from labkit.ranks import data_store_server
from labkit.ranks.data_store_server import Pace


class Clock:
    """Stands in for the time module: each sleep takes `late` longer than was asked for."""

    def __init__(self, late=0.0):
        self.now, self.late = 100.0, late

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds + self.late


@pytest.fixture
def on(monkeypatch):
    def of(clock):
        stand_in = types.SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep)
        monkeypatch.setattr(data_store_server, "time", stand_in)
        return clock

    return of


def send(pace, pieces, size=1000):
    for number in range(pieces):
        pace.wait(size, goes_on=number > 0)


@pytest.mark.parametrize("idle", [0.0, 0.001, 10.0])
def test_an_answer_takes_its_bytes_over_the_rate_however_long_the_link_lay_idle(on, idle):
    clock, pace = on(Clock()), Pace(8e6)
    send(pace, 20)
    clock.now += idle
    began = clock.now
    send(pace, 20)
    assert clock.now - began == pytest.approx(20_000 / 1e6)


def test_a_sender_that_wakes_late_catches_up_within_its_answer(on):
    clock, pace = on(Clock(late=0.0007)), Pace(8e6)
    began = clock.now
    send(pace, 100)
    assert 0.1 <= clock.now - began <= 0.1 + 0.0007 + 1e-9


def test_without_a_rate_nobody_waits(on):
    clock, pace = on(Clock()), Pace(0)
    send(pace, 10)
    assert clock.now == 100.0
