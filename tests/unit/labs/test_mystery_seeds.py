"""A record to diagnose where a busy machine hides what a program shows."""

import pytest

from labkit import facade, labs
from labkit.labs.checking import CannotTell


def hides(times: int):
    """A stand-in for the making of a record, of which the first few show nothing."""
    asked: list[int] = []

    def make(lab, seed):
        asked.append(seed)
        if len(asked) <= times:
            raise CannotTell("busy")
        return seed

    return make, asked


def test_another_program_is_drawn_where_one_shows_nothing(monkeypatch):
    make, asked = hides(3)
    monkeypatch.setattr(facade, "make", make)
    assert facade.Lab(labs.spec("overlap")).mystery() == asked[-1] and len(set(asked)) == 4


def test_a_seed_that_was_given_is_the_only_one(monkeypatch):
    make, asked = hides(3)
    monkeypatch.setattr(facade, "make", make)
    with pytest.raises(CannotTell):
        facade.Lab(labs.spec("overlap")).mystery(7)
    assert asked == [7]


def test_it_is_said_where_none_shows_anything(monkeypatch):
    make, asked = hides(1000)
    monkeypatch.setattr(facade, "make", make)
    with pytest.raises(CannotTell):
        facade.Lab(labs.spec("overlap")).mystery()
    assert len(asked) == facade.OTHER_MYSTERIES + 1
