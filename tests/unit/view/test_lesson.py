import pytest

import labkit
from labkit import labs
from labkit.errors import UnknownName, UsageError
from labkit.facade import Lab
from labkit.record.quantity import NOT_MEASURABLE, Quantity
from labkit.view import lesson


@pytest.fixture
def opened():
    return Lab(labs.spec("duplicate-data"))


def test_the_banner_shows_the_parameters_and_the_machine(opened):
    banner = lesson.begin(opened, {"ranks": 3, "In": ["ranks = 4"]}, known=("ranks",))
    assert "ranks=3" in repr(banner) and "cores" in repr(banner)


def test_a_parameter_that_papermill_injects_and_the_notebook_does_not_have_is_refused(opened):
    namespace = {"ranks": 4, "In": ["ranks = 4", "# Parameters\nrank = 2\n"]}
    with pytest.raises(UnknownName, match="no parameter of this notebook 'rank'.*Did you mean 'ranks'"):
        lesson.begin(opened, namespace, known=("ranks",))


def test_names_that_the_reader_defines_are_no_business_of_the_frame(opened):
    lesson.begin(opened, {"ranks": 4, "mine": 1, "In": ["mine = 1"]}, known=("ranks",))


def test_a_prediction_keeps_its_default_until_the_reader_enters_another():
    prediction = lesson.Prediction("How many?", guess=128, unit="samples", high=200)
    assert prediction.value == 128 and "How many? Predicted: 128 samples" in repr(prediction)
    prediction._entry.value = 32
    revealed = prediction.reveal(32)
    assert revealed.hit and "You said 32, measured 32 samples." in repr(revealed)


def test_a_prediction_in_a_stored_notebook_is_a_sentence():
    bundle = lesson.Prediction("How many?", guess=60, unit="%")._repr_mimebundle_()
    assert bundle["text/plain"] == "How many? I predict 60 %: the box needs a running kernel."
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_prediction_shows_its_question_as_text_and_then_its_entry(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    lesson.Prediction("How many?", guess=60)._ipython_display_()
    question, entry = shown
    assert "How many?" in question["text/html"] and "widget" not in " ".join(question)
    assert "HBox" not in entry["text/plain"]


def test_a_guess_outside_what_can_be_is_refused():
    with pytest.raises(UsageError, match="from 0 to 10; given 11"):
        lesson.Prediction("How many?", guess=11, high=10)


def test_the_diff_of_the_fix_is_the_sampler(opened):
    text = repr(opened.diff())
    assert "-    return DataLoader(data, batch, shuffle=True, generator=shuffle)" in text
    assert "+    sampler.set_epoch(epoch)" in text


def test_opening_an_unknown_lab_names_the_nearest():
    with pytest.raises(UnknownName, match="duplicate-data"):
        labkit.lab("duplicate_data")


def test_a_share_is_revealed_in_per_cent_and_what_could_not_be_measured_is_no_miss():
    prediction = lesson.Prediction("Which share?", guess=70, unit="%", high=100)
    assert "You said 70, measured 61.1 %." in repr(prediction.reveal(Quantity(0.611, "of communication")))
    for nothing in (Quantity(NOT_MEASURABLE), Quantity(2.41, "of communication"), 241, float("nan")):
        revealed = prediction.reveal(nothing)
        assert not revealed.hit and revealed.actual is None
        for said in (repr(revealed), revealed._repr_html_()):
            assert "You said 70" in said and "not measurable here" in said and "241" not in said and "Not what" not in said
