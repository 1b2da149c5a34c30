"""Each error says what was given, what was expected and what to try."""

import pytest

from labkit.errors import (
    LabkitError,
    LaunchError,
    RankFailed,
    RankLeftEarly,
    RankReport,
    RankTimeout,
    RecordError,
    RunStopped,
    UnknownName,
    UsageError,
    shown,
)


def test_an_unknown_name_lists_what_there_is_and_proposes_the_nearest():
    error = UnknownName("variant", "fxied", ["fixed", "broken"])
    assert str(error) == "no variant 'fxied'; there are: broken, fixed. Did you mean 'fixed'?"
    assert (error.what, error.given, error.known) == ("variant", "fxied", ["broken", "fixed"])


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("duplicate_data", "duplicate-data"),
        ("overlaping", "overlapping"),
        ("Broken", "broken"),
        ("no-set-epochs", "no-set-epoch"),
    ],
)
def test_the_nearest_spelling_is_the_one_that_was_meant(given, nearest):
    names = ["duplicate-data", "overlapping", "broken", "fixed", "no-set-epoch", "double-sharded"]
    assert str(UnknownName("name", given, names)).endswith(f"Did you mean {nearest!r}?")


def test_nothing_is_proposed_where_nothing_is_near():
    assert str(UnknownName("lab", "xyz", ["overlap"])) == "no lab 'xyz'; there are: overlap."
    assert str(UnknownName("lab", 7, [])) == "no lab '7'; there are: none."


def test_mistakes_of_the_caller_are_value_errors_and_all_are_labkits():
    assert issubclass(UnknownName, UsageError) and issubclass(UsageError, ValueError)
    assert issubclass(RecordError, ValueError)
    assert issubclass(RankLeftEarly, RankFailed) and issubclass(RankTimeout, RankFailed)
    for error in (UsageError, RecordError, LaunchError, RunStopped, RankFailed):
        assert issubclass(error, LabkitError)


def test_a_failed_rank_is_reported_in_a_line_each_the_cause_first():
    reports = {
        2: RankReport(2, "failed", "ValueError: no", "train.py:7", "a traceback"),
        0: RankReport(0, "waiting", "in all_reduce"),
    }
    error = RankFailed("rank 2 failed", reports, "a folder")
    assert str(error).splitlines() == [
        "rank 2 failed",
        "  rank 2 failed: ValueError: no at train.py:7",
        "  rank 0 waiting: in all_reduce",
    ]
    assert (list(error.ranks), error.folder) == ([2, 0], "a folder")


class Unprintable:
    def __repr__(self):
        raise RuntimeError


def test_a_value_is_shown_whatever_it_is():
    assert shown(1.5) == "1.5" and shown("x" * 100) == "'" + "x" * 79 + "…"
    assert shown(Unprintable()) == "a Unprintable that cannot be printed"
    assert shown(10**5000) == "a int that cannot be printed"
