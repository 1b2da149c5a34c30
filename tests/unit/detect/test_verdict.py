import pytest

from labkit.detect.verdict import Verdict, Verdicts, answering
from labkit.record.quantity import Quantity


def verdict(status, reason="", evidence=None, *, detector="coverage", **parts) -> Verdict:
    return answering(detector, "Is all read?")(status, reason, evidence, **parts)


def test_a_verdict_reads_as_text_with_all_that_it_has():
    evidence = {"missing_samples": Quantity(3, "samples")}
    found = verdict("found", "no-saves-recorded", evidence, where="x.py:1", waste=0.75)
    assert str(found).splitlines() == [
        "FOUND  coverage: Is all read?",
        "  the program recorded no saves",
        "  Fix: record each with probe.event('save', of_step=…, path=…)",
        "  Where: x.py:1",
        "  Waste: 75% of device time",
        "  missing samples: 3 samples",
    ]
    assert str(verdict("not_applicable")) == "NOT APPLICABLE  coverage: Is all read?"


@pytest.mark.parametrize(
    ("statuses", "first"),
    [
        (["clear", "inconclusive", "found", "found"], 2),
        (["not_applicable", "clear", "inconclusive"], 2),
        (["not_applicable", "clear"], 1),
        (["not_applicable"], 0),
    ],
)
def test_the_headline_is_the_first_that_found_something_or_could_not_tell(statuses, first):
    verdicts = Verdicts(verdict(status) for status in statuses)
    assert verdicts.headline is verdicts[first]
    assert [v.status for v in verdicts.found] == [status for status in statuses if status == "found"]


def test_verdicts_are_had_by_position_and_by_name():
    verdicts = Verdicts([verdict("clear"), verdict("found", detector="order")])
    assert verdicts["order"] is verdicts[1] is verdicts[-1]
    with pytest.raises(KeyError, match="no verdict of 'cost'; there are: coverage, order"):
        verdicts["cost"]
    assert repr(verdicts) == f"{verdicts[0]}\n{verdicts[1]}"
