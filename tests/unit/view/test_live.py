"""The moving picture from the kernel's side: what the page is told, and that it can be told again."""

import json
import threading

import anywidget
import msgspec
import numpy as np
import pytest

import labkit.reading
from labkit.ranks.progress import Progress
from labkit.record.follow import Follower
from labkit.record.spans import COUNT, Names, joined, rows_of_run
from labkit.view.live import following, parts
from labkit.view.live.kinds import PATTERNS, kinds
from labkit.view.live.place import somebody_looks
from labkit.view.live.run_bar import run_shown, said_progress
from labkit.view.live.whole import Whole, thinned
from labkit.view.live.widget import LiveView
from labkit.view.plain_terms import in_plain_terms


@pytest.fixture
def view(monkeypatch):
    """A widget that keeps what it would send."""
    made = LiveView()
    made.told = []
    monkeypatch.setattr(made, "send", lambda content, buffers=(): made.told.append((content, list(buffers))))
    return made


def test_a_whole_run_is_sent_as_numbers_that_can_be_read_back(view, broken):
    view.finish(Whole(broken, "broken"), "done")
    (whole, (spans, steps, losses)), (end, _) = view.told
    run = broken.run
    count = sum(len(step.spans) for log in run.ranks for step in log.steps)
    rows = np.frombuffer(spans, "<f8").reshape(-1, 10)
    assert len(rows) == count and rows[:, COUNT].sum() == count and not whole["joined"]
    assert len(np.frombuffer(steps, "<f8")) == 5 * sum(len(log.steps) for log in run.ranks)
    assert np.frombuffer(losses, "<f8").reshape(-1, 3)[0].tolist() == [0, 0, 2.0]
    assert whole["ranks"] == 4 and end == {"type": "end", "said": "done"} and json.dumps(whole)


def test_a_part_of_a_run_is_sent_when_the_page_asks_and_nothing_else_is_believed(view, broken):
    view.finish(Whole(broken, "broken"), "")
    view.told.clear()
    view._asked(view, {"ask": "window", "side": "now", "from": 0.0, "to": 1e-4}, [])
    (content, (rows,)), *more = view.told
    assert content["type"] == "window" and 0 < len(rows) < 80 * 4 * 20 and not more
    for odd in ("hello there", {"ask": "window", "side": "nobody"}, {"ask": "../etc"}, None):
        view._asked(view, odd, [])
    assert len(view.told) == 1


def test_a_page_that_is_opened_anew_gets_all_again(view, broken, fixed):
    view.pin(Whole(broken, "broken"))
    view.finish(Whole(fixed, "fixed"), "")
    view.say(["It is quicker."])
    view.told.clear()
    view._asked(view, {"ask": "hello"}, [])
    assert [(content["type"], content.get("side")) for content, _ in view.told] == [
        ("whole", "pinned"), ("whole", "now"), ("words", None),
    ]  # fmt: skip
    view.pin(None)
    view.told.clear()
    view._asked(view, {"ask": "hello"}, [])
    assert "pinned" not in {content.get("side") for content, _ in view.told}


def test_keys_of_the_page_reach_the_panel():
    asked = []
    view = LiveView(asked.append)
    for ask in ("stop", "run", "format the disk"):
        view._asked(view, {"ask": ask}, [])
    assert asked == ["stop", "run"]


def test_a_long_run_is_joined_for_the_first_look(broken):
    rows = rows_of_run(broken.run, Names(), 0)
    few = joined(rows, 20)
    assert len(few) <= 40 < len(rows) and few[:, COUNT].sum() == len(rows)


def test_thinned_rows_keep_the_first_and_the_last():
    values = np.arange(3000.0).reshape(-1, 3)
    kept = thinned(values, 100)
    assert len(kept) <= 101 and kept[0, 0] == 0 and kept[-1, 0] == values[-1, 0] and thinned(values, 1000) is values


def test_each_kind_of_span_has_a_look_that_needs_no_colour():
    looks = kinds(["fetch", "forward", "backward", "optimizer", "all_reduce", "of my own", "another"])
    assert {pattern for _, _, pattern in looks} <= set(PATTERNS)
    assert len({pattern for _, _, pattern in looks[1:5]}) == 4 and looks[4][0] == "all-reduce"


def progressing(folder, steps=(3, 3), **others):
    """A launch of ten steps on its way."""
    return Progress(steps=steps, total_steps=10, running=len(steps), **{"elapsed_s": 2.0, "folder": folder, **others})


def test_the_thread_that_follows_tells_the_page_what_the_ranks_wrote(view, tmp_path, monkeypatch):
    monkeypatch.setattr(following, "LOOK_S", 0.002)
    line = {"kind": "step", "step": 0, "epoch": 0, "start_ns": 5, "end_ns": 9, "spans": [["forward", "compute", 5, 8]]}
    (tmp_path / "rank-00001.jsonl").write_bytes(msgspec.json.encode(line) + b"\n")
    told = threading.Event()
    keep = view.send

    def send(content, buffers=()):
        keep(content, buffers)
        if content["type"] == "delta":
            told.set()

    view.send = send
    follows = following.Following(view, "broken")
    follows.progress("variant", progressing(tmp_path))
    assert told.wait(20)
    follows.end()
    (begin, _), (delta, (spans, _, _)), *_ = view.told
    assert begin == {"type": "begin", "ranks": 2, "title": "broken: 2 ranks"}
    assert np.frombuffer(spans, "<f8")[:1].tolist() == [1.0] and delta["kinds"][0][0] == "forward"


def test_a_launch_without_a_folder_is_not_followed(view):
    follows = following.Following(view, "broken")
    follows.progress("variant", progressing(None))
    follows.end()
    assert view.told == []


def test_no_page_no_bar_so_that_executed_notebooks_store_nothing():
    assert not somebody_looks()
    with run_shown("a run") as callback:
        assert callback is None


@pytest.mark.parametrize("metadata, looks", [({"cellId": "one"}, True), ({}, False)])
def test_a_cell_that_a_page_sent_is_told_from_one_that_a_program_executes(monkeypatch, metadata, looks):
    class Kernel:
        def get_parent(self, channel):
            return {"metadata": metadata}

    class Shell:
        kernel = Kernel()

    monkeypatch.setattr("IPython.get_ipython", Shell)
    assert somebody_looks() is looks


def test_the_bar_says_how_far_a_run_is_how_long_it_takes_and_the_loss():
    said = said_progress(progressing(None, elapsed_s=6.0, left_s=14.0), {0: 0.5, 1: 0.3})
    assert said == "step 3 of 10, 6 s so far, about 14 s left, loss 0.4"
    assert "left" not in said_progress(progressing(None))
    assert "not a number" in said_progress(progressing(None), {0: float("nan")})


def test_of_several_launches_the_bar_says_whose_end_it_sees_and_what_all_took_so_far():
    first = progressing(None, elapsed_s=6.0, left_s=14.0, launches=2)
    last = progressing(None, steps=(4,), elapsed_s=3.0, left_s=2.0, launch=2, launches=2, before_s=20.0)
    assert "6 s so far, about 14 s left of launch 1 of 2" in said_progress(first)
    assert said_progress(last) == "step 4 of 10, 23 s so far, about 2 s left"
    assert (first.fraction_of_all, last.fraction_of_all) == (0.15, 0.7)


def test_the_script_asks_for_nothing_outside_and_shows_text_as_text():
    script = parts.module() + parts.part("run_bar.js") + parts.style()
    for forbidden in ("http:", "https:", "fetch(", "import ", "innerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in script.replace("http://www.w3.org", ""), forbidden


def test_the_widget_is_one_that_other_notebooks_know():
    assert issubclass(LiveView, anywidget.AnyWidget)


def test_advice_in_a_panel_names_settings_and_no_options():
    said = in_plain_terms("set a slower link (--link 50mbit), run more steps (--set steps=40), or with --set compare=all")
    assert "--" not in said and "link = 50mbit" in said and "steps = 40" in said and "compare = all" in said


def test_a_follower_of_a_folder_that_is_gone_is_quiet(tmp_path):
    assert Follower(tmp_path / "gone", 2).look().is_empty


def test_a_kept_record_has_a_timeline_that_is_a_picture_where_nobody_looks(broken, fixed):
    timeline = labkit.reading.reading_of(broken).timeline(beneath=fixed)
    data, _ = timeline._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG") and set(data) == {"image/png", "text/plain"}
    assert "broken" in repr(timeline)
    assert [side for side in timeline.widget()._wholes] == ["pinned", "now"]


def test_where_somebody_looks_the_timeline_is_the_widget_and_still_a_picture(broken, monkeypatch):
    monkeypatch.setattr("labkit.view.live.timeline.somebody_looks", lambda: True)
    data, _ = labkit.reading.reading_of(broken).timeline()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data and data["image/png"]
