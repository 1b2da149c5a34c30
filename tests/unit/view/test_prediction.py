"""A guess: never made up, hidden from until it is there, and answered for what it was."""

import json

import ipywidgets
import pytest

from labkit import labs
from labkit.errors import UnknownName
from labkit.facade import Lab
from labkit.facts.guesses import Expected
from labkit.record.quantity import NOT_MEASURABLE, Quantity
from labkit.view import lesson, prediction
from labkit.view.prediction import Answers, number_in

SPLIT = Expected(answer="128", reply="It does `not`.", so_if="DDP split the data", low="ranks * batch")
FEW = Expected(answer="a few less", reply="One seed.", so_if="each shuffled", low="100", high="ranks * batch - 1")
ANSWERS = Answers((SPLIT, FEW), {"ranks": 4, "batch": 32})


@pytest.fixture
def shown(monkeypatch):
    """What is displayed, in a front end in which somebody can answer."""
    found = []
    monkeypatch.setattr(prediction, "is_live", lambda: True)
    monkeypatch.setattr("IPython.display.display", lambda data, raw=False: found.append(data))
    return found


def asked(guess=None, **how):
    return lesson.Prediction("How many?", guess, "samples", high=200, answers=ANSWERS, **how)


def states(widget) -> str:
    """All that the front end is sent of a widget and of what is in it."""
    inside = "".join(map(states, getattr(widget, "children", ())))
    return json.dumps({key: str(value) for key, value in widget.get_state().items()}) + inside


def test_nobody_has_said_what_nobody_guessed():
    revealed = asked().reveal(32)
    assert repr(asked()) == "How many?" and repr(revealed) == "How many? Measured: 32 samples."
    assert revealed.predicted is None and not revealed.hit and "You said" not in revealed._repr_html_()


def test_what_somebody_guessed_is_said_and_answered_for_what_it_was():
    assert repr(asked(33).reveal(32)) == "How many? You said 33 samples; measured: 32 samples. As you predicted."
    assert "128: that would be so if DDP split the data. It does `not`." in repr(asked(128).reveal(32))
    assert "120: that would be so if each shuffled." in repr(asked(120).reveal(32))
    assert repr(asked(36).reveal(32)).endswith("That is close.")
    assert repr(asked(64).reveal(32)).endswith("Your guess is 2 times that.")
    assert repr(asked(8).reveal(32)).endswith("That is 4 times your guess.")
    assert repr(asked(0).reveal(32)).endswith("It is more than you said.")


def test_an_expected_answer_that_is_right_here_is_right():
    assert repr(asked(128).reveal(128)).endswith("As you predicted.")


def test_numbers_are_said_as_a_person_says_them():
    versions = lesson.Prediction("How old?", unit="versions")
    assert repr(versions.reveal(2.974)) == "How old? Measured: about 3.0 versions."
    assert repr(lesson.Prediction("Share?", unit="%").reveal(Quantity(0.7463, "of it"))) == "Share? Measured: about 75 %."
    assert "Simulated: about 0.51" in repr(lesson.Prediction("Ratio?").reveal(Quantity(0.5123, source="simulated")))


def test_what_could_not_be_measured_is_no_miss():
    share = lesson.Prediction("Which share?", guess=70, unit="%", high=100)
    for nothing in (Quantity(NOT_MEASURABLE), Quantity(2.41, "of communication"), 241, float("nan")):
        revealed = share.reveal(nothing)
        assert not revealed.hit and revealed.actual is None
        for said in (repr(revealed), revealed._repr_html_()):
            assert "You said 70" in said and "not measurable here" in said and "241" not in said and "your guess" not in said


def test_a_page_that_nobody_runs_folds_the_answer_and_asks_to_run():
    assert "Run this cell" in asked()._repr_html_()
    html = asked(30).reveal(32)._repr_html_()
    before, _, after = html.partition("<details>")
    assert "32" not in before and "32 samples" in after and "<details open" not in html


def test_the_box_is_shown_only_where_somebody_can_write_into_it(shown):
    asked()._ipython_display_()
    question, box = shown
    assert "How many?" in question["text/html"] and "Run this cell" not in question["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in box and "HBox" not in box["text/plain"]


def test_the_measured_number_is_in_no_widget_before_a_guess_or_the_button(shown):
    guess = asked()
    panel = prediction_panel(guess, 187.6)
    assert "187.6" not in states(panel) and "easured:" not in states(panel)
    button(panel).click()
    assert "Measured: about 190 samples" in states(panel) and "You said" not in states(panel)
    assert guess.entry()._text.disabled and button(panel).disabled


def test_entering_a_guess_reveals_it(shown):
    panel = prediction_panel(guess := asked(), 187.6)
    guess.entry()._text.value = "many"
    assert "187.6" not in states(panel) and "easured:" not in states(panel) and "Write a number" in states(panel)
    guess.entry()._text.value = "201"
    assert "from 0 to 200" in states(panel) and guess.value is None
    guess.entry()._text.value = "128 samples"
    assert "You said 128 samples; measured: about 190 samples." in states(panel) and "DDP split the data" in states(panel)


def test_a_guess_that_was_entered_before_the_run_is_answered_at_once(shown):
    guess = asked()
    guess.entry()._text.value = "30"
    guess.reveal(77)._ipython_display_()
    assert "You said 30 samples" in shown[-1]["text/html"] and "widget" not in " ".join(shown[-1])
    assert guess.entry()._text.disabled


def test_where_nobody_is_there_no_widget_is_stored(monkeypatch):
    found = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw=False: found.append(data))
    asked()._ipython_display_()
    asked().reveal(3)._ipython_display_()
    assert [sorted(data) for data in found] == [["text/html", "text/plain"]] * 2


def prediction_panel(guess, actual):
    found = []
    original, prediction.show_widget = prediction.show_widget, lambda widget, text: found.append(widget)
    try:
        guess.reveal(actual)._ipython_display_()
    finally:
        prediction.show_widget = original
    return found[0]


def button(panel):
    return next(each for each in panel.children[0].children if isinstance(each, ipywidgets.Button))


def test_numbers_are_read_as_people_write_them():
    read = {"30": 30, " 30 %": 30, "1,797": 1797, "0,5": 0.5, "3 versions": 3, "": None, "nan": None, "about 3": None}
    assert {text: number_in(text, "versions") for text in read} == read


@pytest.mark.parametrize("slug", labs.slugs())
def test_each_lab_answers_a_wrong_guess_of_its_own_lesson(slug):
    opened = Lab(labs.spec(slug))
    given = {"zeros_fp32": 20.0} if slug == "precision" else {}
    answers = lesson.answers_of(opened, **given)
    low = [one for one in answers.expected if one.low]
    assert low and all(one.so_if and one.reply and "  " not in one.reply for one in low)


def test_a_value_that_a_formula_names_and_nobody_gave_is_named_at_once():
    with pytest.raises(UnknownName, match="zeros_fp32"):
        lesson.answers_of(Lab(labs.spec("precision")))


def test_the_doctor_s_lesson_has_answers_too():
    meant = lesson.answers_of("18").to(0)
    assert meant is not None and meant.so_if == "this were the tutorial's script"
