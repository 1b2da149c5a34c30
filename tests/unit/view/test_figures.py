"""Figures are tested by what is in them, not by pixels."""

import matplotlib.collections
import msgspec
import numpy as np
import pytest
from matplotlib.colors import to_hex

from labkit import labs
from labkit.detect.loss import loss_curve
from labkit.errors import UsageError
from labkit.view import palette
from labkit.view.figures import every_figure, figure, figures_of
from labkit.view.figures.reads import coverage_and_copies, loss, timeline, who_read_what

from ..builders import record_of, run_of
from .long_names import with_long_names

MINE = list(figures_of("reads"))


def squares(axis):
    (found,) = [c for c in axis.collections if isinstance(c, matplotlib.collections.PatchCollection)]
    return found


def dots(axis):
    return [c for c in axis.collections if not isinstance(c, matplotlib.collections.PatchCollection)]


def colours(axis):
    return {to_hex(colour).upper() for colour in squares(axis).get_facecolors()}


def test_a_sample_that_all_ranks_read_is_vermilion_with_a_dot_and_one_that_one_rank_reads_is_blue_without(broken, fixed):
    picture = who_read_what(broken, fixed)
    left, right = picture.figure.axes
    assert colours(left) == {palette.VERMILION} and colours(right) == {palette.BLUE}
    assert len(dots(left)[0].get_offsets()) == len(squares(left).get_paths()) == 4 * 40
    assert dots(right) == []


def test_every_rank_and_step_is_labelled_and_each_batch_begins_with_the_id_of_its_first_sample(broken):
    (axis,) = who_read_what(broken).figure.axes
    assert [t.get_text() for t in axis.get_yticklabels()] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [t.get_text() for t in axis.get_xticklabels()] == ["0", "1", "2", "3", "4"]
    first = broken.run.ranks[0].steps[0].ids["train"][0]
    assert [t.get_text() for t in axis.texts].count(f"#{first}…") == 4


def test_fewer_steps_can_be_asked_for(broken):
    (axis,) = who_read_what(broken, steps=2).figure.axes
    assert [t.get_text() for t in axis.get_xticklabels()] == ["0", "1"]


@pytest.mark.parametrize("name", MINE)
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, broken, fixed):
    picture = figure(name)(broken, fixed)
    label = broken.provenance.label()
    assert any(label in text.get_text() for text in picture.figure.texts)
    assert label in picture.alt and "broken" in picture.alt and "fixed" in picture.alt
    data, metadata = picture._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG") and metadata["image/png"]["alt"] == picture.alt == repr(picture)


def test_a_lab_draws_figures_that_a_file_declares_and_each_is_drawn_by_a_lab():
    assert {name for spec in labs.specs() for name in spec.figures} == set(every_figure())


def test_two_files_that_declare_one_name_are_told(monkeypatch):
    from labkit.view.figures import goodput

    monkeypatch.setattr(goodput, "FIGURES", {"loss": loss})
    with pytest.raises(RuntimeError, match="reads declares the figure 'loss'"):
        every_figure.__wrapped__()


@pytest.mark.parametrize("name", every_figure())
def test_a_figure_of_nothing_is_refused(name):
    with pytest.raises(UsageError, match="at least one record"):
        figure(name)()


def test_the_bars_count_samples_by_how_often_they_were_read(broken, fixed):
    axis = coverage_and_copies(broken, fixed).figure.axes[0]
    bars = {bar.get_x() + bar.get_width() / 2: bar.get_height() for bar in axis.patches}
    assert {round(x, 9): height for x, height in bars.items()} == {4: 40, 1: 40}, "one alone stands upon its tick"
    assert len(axis.get_legend_handles_labels()[1]) == 2


def test_bars_of_two_runs_stand_on_both_sides_of_the_tick_that_they_share(fixed):
    axis = coverage_and_copies(fixed, fixed).figure.axes[0]
    assert sorted(round(bar.get_x() + bar.get_width() / 2, 9) for bar in axis.patches) == [0.8, 1.2]


def test_coverage_grows_by_what_is_new_only(broken, fixed):
    curves = {line.get_label(): line.get_xydata() for line in coverage_and_copies(broken, fixed).figure.axes[1].lines}
    assert np.allclose(curves["broken"][-1], [4, 1]) and np.allclose(curves["fixed"][-1], [1, 1])
    assert np.allclose(curves["broken"][1], [32 / 40, 8 / 40])


def test_the_timeline_puts_communication_below_compute_on_each_rank(broken):
    axis = timeline(broken).figure.axes[0]
    bars = {collection.get_paths()[0].get_extents().ymin for collection in axis.collections}
    assert {round(y % 1, 2) for y in bars} == {0.12, 0.55}
    assert [t.get_text() for t in axis.get_yticklabels()] == [f"rank {r}" for r in range(4)]


def test_the_references_of_a_loss_are_left_out_when_they_are_not_wanted(broken):
    beside = msgspec.structs.replace(broken, runs={**broken.runs, "single": broken.run})
    lines = [len(loss(beside, references=wanted).figure.axes[0].lines) for wanted in (True, False)]
    assert lines == [2, 1]


def test_the_loss_is_drawn_against_all_samples_and_against_seconds(broken):
    left, right = loss(broken).figure.axes
    assert left.lines[0].get_xdata().tolist() == [32, 64, 96, 128, 160]
    assert right.lines[0].get_xdata()[-1] == pytest.approx(500e-9)
    assert "samples" in left.get_xlabel() and "seconds" in right.get_xlabel()


def test_two_records_of_one_variant_are_told_apart_by_what_differs(fixed):
    other = msgspec.structs.replace(fixed, config={"lr": 0.2})
    one = msgspec.structs.replace(fixed, config={"lr": 0.1})
    labels = [line.get_label() for line in loss(one, other).figure.axes[0].lines]
    assert labels == ["fixed (lr 0.1), 4 ranks", "fixed (lr 0.2), 4 ranks"]


def test_a_script_that_records_no_loss_is_told_what_to_record():
    reading = [[[[0, 1], [2, 3]]]]
    with pytest.raises(
        UsageError, match="no step has a loss on every rank; record it on each, within the step: probe.scalar"
    ):
        figure("loss")(record_of(run_of(reading)))


def test_a_loss_without_a_number_of_samples_counts_the_samples_that_were_seen():
    run = run_of([[[[0, 1], [2, 3]], [[4], [5]]]])
    replace, logs = msgspec.structs.replace, []
    for rank, log in enumerate(run.ranks):
        logs.append(replace(log, steps=tuple(replace(s, scalars={"loss_local": float(rank)}) for s in log.steps)))
    curve = loss_curve(msgspec.structs.replace(run, ranks=tuple(logs)))
    assert curve.loss_global.tolist() == [1 / 3, 1 / 3] and curve.samples.tolist() == [3, 6]


def test_a_rank_whose_part_of_a_step_was_empty_is_drawn_too():
    assert figure("who-read-what")(record_of(run_of([[[[0, 1]], [[]]]]))).png()


@pytest.mark.parametrize("name", MINE)
def test_four_records_with_long_names_leave_a_figure_that_can_be_read(name, broken, fixed):
    figure(name)(*with_long_names(broken, fixed))  # `laid_out` looks at each figure that is drawn here
