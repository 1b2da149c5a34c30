"""The file of answers to expect, read."""

import pytest

from labkit.errors import UnknownName, UsageError
from labkit.facts.guesses import Expected, expected_in, markdown_of, value_of


def test_answers_are_read_with_their_numbers_and_conditions():
    first, second, third = expected_in("03")
    assert first.answer == "128, DDP splits the data" and first.so_if == "DDP gave each rank a part of its own"
    assert (first.low, first.high) == ("ranks * batch", "") and ":guess:" not in first.reply
    assert second.high and not third.low and third.reply


def test_a_guess_stands_for_an_answer_near_its_number_or_in_its_range():
    one, range_ = Expected(answer="", reply="", low="4 * 32"), Expected(answer="", reply="", low="0", high="n - 1")
    assert one.is_meant_by(128, {}) and one.is_meant_by(127, {}) and not one.is_meant_by(120, {})
    assert range_.is_meant_by(0, {"n": 5}) and range_.is_meant_by(4, {"n": 5}) and not range_.is_meant_by(4.1, {"n": 5})
    assert not Expected(answer="", reply="").is_meant_by(0, {})


def test_what_is_no_formula_is_refused():
    for formula in ("__import__('os')", "ranks.real", "'a'", "[1]"):
        with pytest.raises(UsageError):
            value_of(formula, {"ranks": 4})
    with pytest.raises(UnknownName, match="rank"):
        value_of("rank", {"ranks": 4})
    assert value_of("17 - 17 % 5", {}) == 15


def test_a_lesson_that_is_not_there_is_named():
    with pytest.raises(UnknownName, match="03_duplicate_data"):
        markdown_of("99")
