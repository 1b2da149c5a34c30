"""The figures of a crash, by what is in them."""

import msgspec
import pytest

from labkit.errors import UsageError
from labkit.plan.goodput import costs_of
from labkit.theory.reliability import Costs, young_interval
from labkit.view.figures import figure

from ..crash_records import Attempt, crash_record, run_of_attempts, saved_and_resumed, uninterrupted

SETTINGS = {"num_samples": 40, "global_batch": 8, "decay_every": 4, "momentum": 0.9, "dropout": 0.1, "augment": True,
            "precision": "fp32"}  # fmt: skip
NAMES = ["crash-timeline", "departure", "ablation", "goodput"]


def late(rank, step):
    return 2.0 / (1 + step) + (0.01 if step >= 11 else 0)


@pytest.fixture
def good():
    return crash_record(saved_and_resumed(), uninterrupted(), leave_out="nothing", **SETTINGS)


@pytest.fixture
def without_momentum():
    return crash_record(saved_and_resumed(loss=late), uninterrupted(), leave_out="optimizer", **SETTINGS)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, good, without_momentum):
    for records in ((good,), (good, without_momentum)):
        picture = figure(name)(*records)
        label = good.provenance.label()
        assert any(label in text.get_text() for text in picture.figure.texts) and label in picture.alt
        assert picture.png().startswith(b"\x89PNG")


def test_the_timeline_has_each_attempt_its_saves_and_what_was_lost(good):
    (axis,) = figure("crash-timeline")(good).figure.axes
    lines = [list(line.get_ydata()) for line in axis.lines]
    assert lines == [list(range(1, 14)), list(range(11, 21))]
    saves, crash = [c.get_offsets()[:, 1].tolist() for c in axis.collections if c.get_offsets().any()][:2]
    assert sorted(set(saves)) == [5, 10, 15, 20] and crash == [13]
    assert "3 lost" in [text.get_text() for text in axis.texts]


def test_a_run_without_a_crash_can_be_drawn_too():
    picture = figure("crash-timeline")(crash_record(uninterrupted()))
    assert "no crash" in picture.alt


def test_the_departure_is_marked_where_it_is(without_momentum, good):
    picture = figure("departure")(good, without_momentum)
    _, right = picture.figure.axes
    assert [text.get_text() for text in right.texts] == ["step 11", "equal to the bit"]
    assert "never departs" in picture.alt and "departs at step 11" in picture.alt


def test_the_ablation_marks_the_predicted_step(without_momentum):
    picture = figure("ablation")(without_momentum)
    (axis,) = picture.figure.axes
    predicted = [c.get_offsets().tolist() for c in axis.collections if c.get_offsets().any()]
    assert predicted == [[[11.0, 0.0]]]
    differing = [bar for bar in axis.patches if bar.get_hatch()]
    assert len(axis.patches) == 20 and len(differing) == 9
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["without optimizer"]


def test_goodput_is_drawn_with_youngs_interval_and_says_where_failures_are_from(good):
    picture = figure("goodput")(good)
    (axis,) = picture.figure.axes
    gpu_hours = 384 * 54 * 24 * 16384 / 419 / 384
    young = young_interval(Costs(save=40, restart=900, mtbf=3600 * gpu_hours / 384))
    marked, share = axis.collections[1].get_offsets()[0]
    assert marked == pytest.approx(young, rel=1e-3) and f": {share:.1%}" in axis.texts[0].get_text()
    assert (
        "40 s on 384 GPUs (quoted: BLOOM production)" in picture.alt
        and "simulated" in axis.get_legend().get_texts()[1].get_text()
    )


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(UsageError, match="no uninterrupted run to compare with"):
        figure("departure")(crash_record(saved_and_resumed()))
    with pytest.raises(UsageError, match="saves nothing"):
        figure("goodput")(crash_record(run_of_attempts(Attempt(0, 3, killed=None))))
    for name in NAMES:
        with pytest.raises(UsageError, match="at least one record"):
            figure(name)()


def test_a_toys_milliseconds_stand_beside_failures_as_given_alone():
    """Beside a cluster's failures the save is one of that scale; of the record comes the share that training waits for."""
    given = crash_record(
        run_of_attempts(Attempt(0, 13, saves=(5, 10)), Attempt(10, 20, killed=None), mtbf_s=60.0), uninterrupted()
    )
    found = costs_of(given)
    assert (found.costs.save, found.costs.restart, found.costs.mtbf) == (0.004, 0.5, 60.0)
    assert "save 4 ms, restart 500 ms (measured, of this model), failure every 1 min (as given)" in found.said
    background = crash_record(saved_and_resumed(), uninterrupted())
    run = background.run
    written = [
        msgspec.structs.replace(log, events=tuple(_written_in(event, 0.016) for event in log.events)) for log in run.ranks
    ]
    run = msgspec.structs.replace(run, ranks=tuple(written), earlier=())
    quoted = costs_of(msgspec.structs.replace(background, runs={"variant": run}))
    assert quoted.costs.save == pytest.approx(10.0) and "training waits for 25% (measured here)" in quoted.said


def _written_in(event, seconds):
    return msgspec.structs.replace(event, fields={**event.fields, "write_s": seconds}) if event.name == "save" else event


def test_an_attempt_that_ended_before_it_finished_a_step_draws_no_line():
    tried = [Attempt(0, 13, saves=(5, 10)), Attempt(10, 10, found=10), Attempt(10, 20, found=10, killed=None)]
    (axis,) = figure("crash-timeline")(crash_record(run_of_attempts(*tried))).figure.axes
    assert [list(line.get_ydata()) for line in axis.lines] == [list(range(1, 14)), list(range(11, 21))]
