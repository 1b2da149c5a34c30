"""Numbers as sentences say them: one thing is one, and what is simulated says so."""

import pytest

from labkit.record.quantity import Quantity
from labkit.results import Comparison
from labkit.words import duration, plural, short


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 ranks"), (1, "1 rank"), (2, "2 ranks"), (1024, "1,024 ranks"), (1.0, "1 rank"), (0.5, "0.5 ranks")],
)
def test_a_count_agrees_with_its_noun(count, said):
    assert plural(count, "rank") == said


def test_a_plural_of_its_own_is_taken():
    assert plural(1, "pass", "passes") == "1 pass" and plural(3, "pass", "passes") == "3 passes"


def test_a_quantity_says_its_source_where_it_has_one():
    assert Quantity(2.0, "ms").said == "2 ms" and Quantity(2.0, "ms", "simulated").said == "2 ms (simulated)"


def test_records_side_by_side_stay_in_columns_and_say_what_is_simulated():
    long = Quantity(0.5, "of the union of spans", "simulated")
    columns = {"broken": {"hidden": long, "steps": Quantity(3)}, "fixed": {"steps": Quantity(12345)}}
    head, *rows, label = repr(Comparison(columns, ["here"])).splitlines()
    assert label == "here" and {len(line) for line in rows} == {len(head)}
    assert "50.0% of the union of spans (simulated)" in rows[0] and rows[1].endswith("   12,345")


def test_a_time_is_said_in_the_largest_unit_of_which_it_has_one():
    assert [duration(seconds) for seconds in (0.0278, 1, 90, 3600, 11137.5)] == [
        "27.8 ms",
        "1 s",
        "1.5 min",
        "1 h",
        "3.09 h",
    ]


def test_a_short_number_never_has_an_exponent_that_a_person_must_undo():
    assert [short(value) for value in (0.0414, 5.74, 999.4, 999.6, 1152.3)] == ["0.0414", "5.74", "999", "1,000", "1,152"]
