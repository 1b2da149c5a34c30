"""The figures of precision, by what is in them; and the panel of a lab of one process."""

import msgspec
import numpy as np
import pytest
from matplotlib.colors import to_hex

from labkit.detect.precision.measures import LOWEST_EXPONENT
from labkit.errors import UsageError
from labkit.facade import Lab
from labkit.labs import precision
from labkit.view import palette
from labkit.view.figures import figure, figures_of
from labkit.view.figures.precision import gradient_range, loss_beside_fp32, precision_speed, zeros_and_scale
from labkit.view.widgets import Panel

from ..detect.precision_readings import beside_fp32, made_of, timed, update
from .long_names import with_long_names

MINE = list(figures_of("precision"))


def exponents(of: dict[int, int]) -> dict:
    counts = np.zeros(300, dtype=np.int64)
    for power, count in of.items():
        counts[power - LOWEST_EXPONENT] = count
    return {"gradient_exponents": counts}


def reference(steps=20):
    return made_of([update(zeros=200, loss=2.0 / (1 + n)) for n in range(steps)], arrays=exponents({-30: 60, -20: 40}))


@pytest.fixture
def broken():
    steps = [update(zeros=800, loss=2.0) for _ in range(20)]
    own = made_of(steps, timed([2.0] * 9, [1.0] * 9), exponents({-20: 40}))
    return beside_fp32(own, reference())


@pytest.fixture
def fixed():
    steps = [
        ({} if n in (0, 10) else update(zeros=200))
        | {"loss": 2.0 / (1 + n), "scaler_steps": 1, "scale": 1024.0 / (1 + (n > 0))}
        for n in range(20)
    ]
    own = made_of(steps, timed([0.5] * 9, [1.0] * 9), exponents({-30: 60, -20: 40}))
    return msgspec.structs.replace(beside_fp32(own, reference()), variant="fixed")


@pytest.mark.parametrize("name", MINE)
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, broken, fixed):
    picture = figure(name)(broken, fixed)
    label = broken.provenance.label()
    assert any(label in text.get_text() for text in picture.figure.texts)
    assert label in picture.alt and "broken" in picture.alt and "fixed" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", MINE)
def test_a_record_without_what_a_figure_draws_is_refused_by_name(name):
    with pytest.raises(UsageError, match="broken"):
        figure(name)(beside_fp32(made_of([{}])))


def test_the_loss_is_beside_fp32s_which_is_drawn_once_for_all(broken, fixed):
    lines = {line.get_label(): line.get_ydata() for line in loss_beside_fp32(broken, fixed).figure.axes[0].lines}
    assert list(lines) == ["broken", "fp32, same batches as broken", "fixed"]
    assert lines["broken"][-1] == 2.0 and lines["fixed"][-1] == pytest.approx(np.mean([2 / n for n in range(16, 21)]))


def test_a_loss_that_becomes_nan_is_marked_where_it_was_last_a_number():
    steps = [update(loss=2.0)] * 3 + [update(loss=float("nan"))] * 5
    picture = loss_beside_fp32(beside_fp32(made_of(steps), reference()))
    axis = picture.figure.axes[0]
    assert [text.get_text() for text in axis.texts] == ["NaN from here on"]
    assert [line.get_xdata()[0] for line in axis.lines if line.get_marker() == "X"] == [2]
    assert "not finite from step 3 on" in picture.alt


def test_the_share_of_gradients_that_fp16_cannot_hold_is_counted(broken):
    picture = gradient_range(broken)
    assert "60% of fp32's gradients other than 0 would be 0 in fp16" in picture.alt
    words = [text.get_text() for text in picture.figure.axes[0].texts]
    assert any("60%" in text for text in words) and {"fp32, tf32", "bf16", "fp16"} <= set(words)


def test_what_came_to_the_optimizer_and_the_scaled_gradients_are_lines_over_fp32s(broken, fixed):
    one, other = gradient_range(broken, fixed).figure.axes
    of = one.lines[0].get_xydata()
    assert of[of[:, 0] == -20, 1] == 0.4 and of[of[:, 0] == -30, 1] == 0
    scaled = other.lines[1].get_xydata()
    assert scaled[scaled[:, 0] == -21, 1] == 0.6  # 2^-30 times a scale of 2^9


def test_zeros_are_in_percent_and_skipped_steps_are_crosses(broken, fixed):
    left, right = zeros_and_scale(broken, fixed).figure.axes
    first = {line.get_label().partition(":")[0]: line.get_ydata()[0] for line in left.lines if "_" not in line.get_label()}
    assert first == {
        "broken": 80, "fp32": 20, "fixed": 20,
    }  # fmt: skip
    (crosses,) = [line for line in right.lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert crosses.get_xdata().tolist() == [0, 10]


def test_without_a_scaler_the_right_half_says_so(broken):
    assert [text.get_text() for text in zeros_and_scale(broken).figure.axes[1].texts] == ["no scaler was used"]


def test_the_bars_are_medians_and_carry_the_measured_ratio(broken, fixed):
    picture = precision_speed(broken, fixed)
    axis = picture.figure.axes[0]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([2.0, 1.0, 0.5, 1.0])
    assert [text.get_text() for text in axis.texts] == ["2.00×  (2.00 to 2.00)", "0.50×  (0.50 to 0.50)"]
    slow, fast = axis.patches[0].get_facecolor(), axis.patches[2].get_facecolor()
    assert slow != fast and "broken: 2.00 times" in picture.alt


def test_a_speed_that_noise_hides_is_neither_the_colour_of_slower_nor_of_faster():
    noisy = made_of([update()], timed([0.7, 1.6, 0.8, 1.4, 0.9, 1.5], [1.0] * 6))
    bar = precision_speed(beside_fp32(noisy)).figure.axes[0].patches[0]
    assert to_hex(bar.get_facecolor()).upper() == palette.GREY


# The panel


def test_a_lab_of_one_process_has_no_control_for_ranks():
    panel = Panel(Lab(precision.SPEC))
    assert list(panel.settings()) == ["variant", "model", "optimizer", "lr", "loss_weight", "seed"]


def test_choosing_a_variant_sets_its_conditions_and_no_others():
    panel = Panel(Lab(precision.SPEC), variant="half-weights", seed=3)
    assert panel.settings()["optimizer"] == "sgd" and panel.settings()["loss_weight"] == 1.0
    panel._controls["model"].value = "cnn"
    panel._controls["variant"].value = "fixed"
    after = panel.settings()
    assert (after["optimizer"], after["lr"], after["loss_weight"]) == ("adam", 3e-3, 1e-5)
    assert (after["model"], after["seed"]) == ("cnn", 3)


def test_what_the_caller_sets_goes_before_a_variants_conditions():
    assert Panel(Lab(precision.SPEC), lr=0.5, variant="half-weights").settings()["lr"] == 0.5


@pytest.mark.parametrize("name", MINE)
def test_four_records_with_long_names_leave_a_figure_that_can_be_read(name, broken, fixed):
    figure(name)(*with_long_names(broken, fixed))  # `laid_out` looks at each figure that is drawn here


def test_three_records_have_axes_of_their_own_each_with_its_fp32(broken, fixed):
    axes = loss_beside_fp32(broken, fixed, broken).figure.axes
    assert len(axes) == 3 and {axis.get_ylim() for axis in axes} == {axes[0].get_ylim()}
    for axis in axes:
        assert axis.get_legend_handles_labels()[1][-1] == "fp32, same batches" and len(axis.lines) >= 2


def test_the_legend_names_a_scale_only_where_there_is_a_scaler(broken, fixed):
    def said(*records):
        return [text.get_text() for text in gradient_range(*records).figure.legends[0].get_texts()]

    assert "fp32's × last scale" in said(fixed) and "fp32's × last scale" not in said(broken)
