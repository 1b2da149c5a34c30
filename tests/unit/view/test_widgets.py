"""The panel without a browser and without ranks: a lab that answers at once stands in."""

import threading

import pytest

import labkit.view.widgets
from labkit import labs
from labkit.errors import RankFailed, RunStopped, UnknownName, UsageError
from labkit.facade import Lab
from labkit.labs import spec
from labkit.ranks.progress import Progress
from labkit.view.widgets import Panel


class QuickLab(Lab):
    """Gives a record, raises an error, or waits for Stop."""

    def __init__(self, answer):
        super().__init__(spec("duplicate-data"))
        self.answer, self.asked = answer, []

    def run(self, variant="broken", *, control, on_progress, **settings):
        self.asked.append({"variant": variant, **settings})
        on_progress("variant", Progress((3, 4), 10, 2, 0.5))
        if self.answer == "wait":
            while not control.stopped:
                threading.Event().wait(0.005)
            raise RunStopped("stopped after 0.0 s; its ranks are ended")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


SHOWN = {"num_samples": 1797, "batch": 32}


def with_settings(record):
    import msgspec

    return msgspec.structs.replace(record, config=SHOWN)


def press_run(panel):
    panel._run.click()
    assert panel.wait(20)


def test_run_shows_figure_verdict_and_cost(broken):
    panel = Panel(QuickLab(with_settings(broken)))
    assert panel._image.layout.display == "none"
    press_run(panel)
    assert bytes(panel._image.value).startswith(b"\x89PNG") and panel._image.layout.display == ""
    assert "they do the work of one" in panel._verdict.value
    assert "wastes 8,640" in panel._cost.value
    assert panel._lab.asked == [{"variant": "broken", "ranks": 4, "batch": 32, "num_samples": 1797, "seed": 0}]
    assert not panel._run.disabled and panel._stop.disabled


def test_moving_a_control_marks_the_figure_stale_and_moving_it_back_clears_the_mark(broken):
    panel = Panel(QuickLab(with_settings(broken)))
    press_run(panel)
    panel._controls["ranks"].value = 3
    assert "out of date: the figure is of ranks 4. Press Run." in panel._state.value
    assert "labkit-out-of-date" in panel._image._dom_classes
    panel._controls["ranks"].value = 4
    assert "out of date" not in panel._state.value and "labkit-out-of-date" not in panel._image._dom_classes


def test_stop_ends_the_run_and_says_so():
    panel = Panel(QuickLab("wait"))
    panel._run.click()
    assert panel._run.disabled and not panel._stop.disabled
    panel._stop.click()
    assert panel.wait(20)
    assert "stopped" in panel._state.value and not panel._run.disabled


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("end", ["done", "stopped", "failed", "broke"])
def test_whoever_reads_the_last_word_may_press_run_at_once(end, broken):
    raised = {"failed": RankFailed("rank 1 failed", {}), "broke": ValueError("not foreseen")}
    panel = Panel(QuickLab(raised.get(end, "wait" if end == "stopped" else with_settings(broken))))
    buttons = []
    panel._state.observe(lambda change: buttons.append((panel._run.disabled, panel._stop.disabled)), "value")
    panel._run.click()
    if end == "stopped":
        panel._stop.click()
    assert panel.wait(20)
    assert buttons[0] == (True, False) and buttons[-1] == (False, True) and not panel.running
    panel._run.click()
    panel.stop()
    assert panel.wait(20) and len(panel._lab.asked) == 2


def test_a_figure_that_cannot_be_drawn_after_a_run_says_why(broken, monkeypatch):
    def refused(record):
        raise UsageError("this record has no scan; run with scan=2")

    monkeypatch.setattr(labkit.view.widgets, "figure", lambda name: refused)
    panel = Panel(QuickLab(with_settings(broken)))
    press_run(panel)
    assert "done in" in panel._state.value and "this record has no scan; run with scan=2" in panel._state.value


def test_a_failed_run_says_what_failed_and_leaves_the_panel_ready():
    panel = Panel(QuickLab(RankFailed("rank 1 failed; <the others> were ended:", {})))
    press_run(panel)
    assert "&lt;the others&gt; were ended" in panel._verdict.value
    assert not panel._run.disabled


def test_the_cost_meter_answers_to_its_entries_without_a_new_run(broken):
    panel = Panel(QuickLab(with_settings(broken)))
    press_run(panel)
    panel._meter["num_gpus"].value = 128
    assert "wastes 17,280" in panel._cost.value


def test_another_figure_is_drawn_without_a_new_run(broken):
    panel = Panel(QuickLab(with_settings(broken)))
    press_run(panel)
    before = bytes(panel._image.value)
    panel._figure_name.value = "coverage"
    assert bytes(panel._image.value) != before and len(panel._lab.asked) == 1


def test_initial_settings_are_taken_and_unknown_ones_refused():
    assert Panel(QuickLab(None), ranks=2, variant="fixed").settings()["ranks"] == 2
    with pytest.raises(UnknownName, match="no control of the panel 'rank'.*'ranks'"):
        Panel(QuickLab(None), rank=2)


def test_the_panel_in_a_stored_notebook_is_a_sentence():
    bundle = Panel(QuickLab(None))._repr_mimebundle_()
    assert "need a running kernel" in bundle["text/plain"]


@pytest.mark.parametrize("slug", [lab.slug for lab in labs.specs() if lab.variants])
def test_what_the_controls_of_every_panel_say_is_a_configuration_of_its_lab(slug):
    lab = spec(slug)
    for variant in lab.variants:
        settings = Panel(Lab(lab), variant=variant.name).settings()
        own = {name: value for name, value in settings.items() if name not in ("variant", "ranks", "seed", "link")}
        config = lab.configure(variant, own)
        for name, value in {**variant.defaults}.items():
            if name in own:
                assert getattr(config, name) == value


def test_a_control_goes_back_to_what_the_panel_was_given_when_a_variant_has_no_condition_for_it():
    panel = Panel(Lab(spec("input-pipeline")), num_samples=384, batch=8)
    panel._controls["variant"].value = "workers-in-memory"
    assert (panel.settings()["num_samples"], panel.settings()["batch"]) == (1797, 32)
    panel._controls["variant"].value = "fixed"
    assert (panel.settings()["num_samples"], panel.settings()["batch"]) == (384, 8)


def test_why_a_figure_cannot_be_drawn_is_said_and_goes_when_another_one_is(broken, monkeypatch):
    panel = Panel(QuickLab(with_settings(broken)))
    press_run(panel)

    def refuse(*records):
        raise UsageError("the loss was not recorded; run fixed")

    drawn = labkit.view.widgets.figure
    monkeypatch.setattr("labkit.view.widgets.figure", lambda name: refuse if name == "loss" else drawn(name))
    panel._figure_name.value = "loss"
    assert panel._image.layout.display == "none" and "run fixed" in panel._state.value
    panel._figure_name.value = "coverage"
    assert panel._image.layout.display == "" and "run fixed" not in panel._state.value
    panel._figure_name.value = "loss"
    panel._controls["batch"].value = 16
    panel._figure_name.value = "coverage"
    assert "out of date" in panel._state.value, "the figure is of other settings, and still says so"
