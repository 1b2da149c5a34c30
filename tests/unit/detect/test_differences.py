"""How two runs differ, in sentences: times with care, counts exactly, answers as they changed."""

import math

import msgspec
import pytest

from labkit.detect.differences import Side, differences, step_seconds
from labkit.detect.verdict import Verdict, Verdicts
from labkit.record.quantity import Quantity
from labkit.record.schema import RankLog, Run

from ..builders import crowded, head, record_of, step

MS = 1_000_000


def record(times_ms, *, loss=None, variant="broken", config=None):
    """Two ranks whose steps take so long, one after the other."""
    logs = []
    for rank in range(2):
        steps, at = [], 0
        for number, ms in enumerate(times_ms):
            scalars = {} if loss is None else {"loss_local": loss, "batch_samples": 4}
            end = at + int(ms * MS)
            steps.append(msgspec.structs.replace(step(number, scalars=scalars), start_ns=at, end_ns=end))
            at = end
        logs.append(RankLog(head(rank, 2), tuple(steps)))
    made = record_of(Run("variant", tuple(logs), 1.0))
    return msgspec.structs.replace(made, variant=variant, config=config or {})


def side(made, measures=None, *, main=(), exact=(), status=""):
    verdicts = [Verdict(detector="d", question="Is it so?", status=status)] if status else []
    return Side(made, measures or {}, main, exact, Verdicts(verdicts))


def shaken(ms, count=20):
    return [100, *(ms * (1 + 0.02 * math.sin(number)) for number in range(count))]


def test_a_step_that_takes_less_is_said_with_both_times_and_the_share():
    said = differences(side(record(shaken(20.1))), side(record(shaken(12.3))))
    (time,) = [one for one in said if one.startswith("A step takes")]
    assert time.startswith("A step takes 12.") and "where it took 20" in time and "39% less" in time and "measured" in time


def test_times_that_vary_by_more_than_they_differ_are_not_told_apart():
    wild = [100, *(20 if number % 2 else 35 for number in range(20))]
    said = differences(side(record(wild)), side(record([100, *(22 if number % 2 else 33 for number in range(20))])))
    assert any("vary by more" in one for one in said) and not any("where it took" in one for one in said)


def test_times_beside_a_busy_neighbour_accuse_nobody():
    busy = crowded(record(shaken(40)), 1.9)
    said = " ".join(differences(side(record(shaken(20))), side(busy)))
    assert "other programs used the cores" in said and "more;" not in said


def test_too_few_steps_have_no_time():
    assert not any("A step takes" in one for one in differences(side(record([1, 2, 3])), side(record([9, 9, 9]))))


def test_the_first_step_counts_for_nothing():
    assert step_seconds(record([500, 10, 10])).tolist() == [0.01, 0.01]


def test_losses_are_compared_after_as_many_steps():
    said = differences(side(record([10] * 8, loss=1.0)), side(record([10] * 6, loss=0.25)))
    assert "The loss is 0.25 where it was 1, after 6 steps." in said
    assert "The loss is 1 after 8 steps in both runs." in differences(*[side(record([10] * 8, loss=1.0))] * 2)


def test_a_loss_that_is_no_number_is_said_in_words():
    said = differences(side(record([10] * 8, loss=1.0)), side(record([10] * 8, loss="nan")))
    assert any("The loss is not a number where it was 1" in one for one in said)


def test_settings_that_were_chosen_differently_come_first():
    before, now = record([1], config={"batch": 16, "lr": 0.1}), record([1], variant="fixed", config={"batch": 32, "lr": 0.1})
    assert differences(side(before), side(now))[0] == (
        "Set differently: variant fixed (before: broken), batch 32 (before: 16)."
    )
    assert differences(side(now), side(now))[0] == "Both runs have the same settings."


def test_an_answer_that_changed_is_said_and_one_that_did_not_is_not():
    before, now = side(record([1]), status="found"), side(record([1]), status="clear")
    assert "Is it so? Now: clear. Before: found." in differences(before, now)
    assert not any("Is it so?" in one for one in differences(before, before))


@pytest.mark.parametrize(
    ("own", "other", "differ"),
    [
        (Quantity(3), Quantity(4), True),
        (Quantity(3), Quantity(3), False),
        (Quantity(0.50, "of step time", spread=0.1), Quantity(0.6, "of step time", spread=0.1), False),
        (Quantity(0.50, "of step time", spread=0.01), Quantity(0.6, "of step time", spread=0.01), True),
        (Quantity(10.0, "ms"), Quantity(10.2, "ms"), False),
        (Quantity("not measurable here"), Quantity(10.2, "ms"), True),
        (Quantity(True), Quantity(False), True),
    ],
)
def test_measures_differ_where_noise_does_not_explain_it(own, other, differ):
    said = differences(side(record([1]), {"padding": other}), side(record([1]), {"padding": own}))
    assert any(one.startswith("Padding:") and "where it was" in one for one in said) == differ
    assert any(one == "No difference to see in: padding." for one in said) != differ


def test_an_exact_measure_differs_by_the_least():
    before, now = (side(record([1]), {"coverage": Quantity(value, "of it")}, exact=("coverage",)) for value in (0.999, 1.0))
    assert any(one.startswith("Coverage: 100.0% of it where it was 99.9%") for one in differences(before, now))
