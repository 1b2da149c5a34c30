"""The drawings of the mechanisms: exact for their numbers, inside their frame, said in words, refused where impossible."""

import xml.etree.ElementTree as ET

import pytest

from labkit.errors import UnknownName, UsageError
from labkit.view import lesson
from labkit.view.drawings import drawing, every_drawing, every_stepper, steps
from labkit.view.sketch import Box, Words, beside, moved, text_width

OTHERS = {
    "ring": {"ranks": 2},
    "buckets": {"layers_a_bucket": 1},
    "shards": {"ranks": 2},
    "parameter-server": {"workers": 4},
    "sampler": {"samples": 16, "ranks": 3},
    "checkpoint": {"interval": 7, "crash": 3},
    "loss-scale": {"growth_interval": 10},
    "step-time": {"data": 0, "link": 60},
    "loader": {"workers": 0},
}
CASES = [(name, {}) for name in OTHERS] + list(OTHERS.items())


def words_of(sketch) -> list[str]:
    return [shape.text for shape in sketch.shapes if isinstance(shape, Words)]


def test_each_mechanism_has_its_drawing():
    assert set(every_drawing()) == set(OTHERS) and set(every_stepper()) == {"ring", "buckets"}
    assert lesson.drawing is drawing and lesson.steps is steps


@pytest.mark.parametrize(("name", "numbers"), CASES, ids=[f"{name}-{'-'.join(map(str, n.values()))}" for name, n in CASES])
def test_a_drawing_is_well_formed_inside_its_frame_and_has_words(name, numbers):
    drawn = drawing(name, **numbers)
    root = ET.fromstring(drawn.svg)
    assert root.get("aria-label") == drawn.sketch.alt == repr(drawn) and len(repr(drawn)) > 60
    for shape in drawn.sketch.shapes:
        if isinstance(shape, Box):
            assert shape.x >= 0 and shape.x + shape.width <= drawn.sketch.width + 0.5, shape
            assert shape.y >= 0 and shape.y + shape.height <= drawn.sketch.height + 0.5, shape
        if isinstance(shape, Words) and not shape.turned:
            wide = text_width(shape.text, shape.size)
            left = shape.x - {"start": 0, "middle": 0.5, "end": 1}[shape.anchor] * wide
            assert left >= -1 and left + wide <= drawn.sketch.width + 1, shape
            assert 0 < shape.y < drawn.sketch.height, shape


def test_a_drawing_is_stored_as_svg_picture_and_text():
    data, metadata = drawing("loss-scale")._repr_mimebundle_()
    assert data["image/png"].startswith(b"\x89PNG") and data["image/svg+xml"].startswith("<svg")
    assert data["text/plain"] == metadata["image/png"]["alt"]


def test_a_drawing_is_written_as_its_path_ends(tmp_path):
    drawing("loss-scale").save(tmp_path / "one.svg")
    drawing("loss-scale").save(tmp_path / "one.png", dark=True)
    assert ET.parse(tmp_path / "one.svg").getroot().get("viewBox")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_the_ring_s_last_state_holds_the_whole_sum_everywhere():
    counted = words_of(drawing("ring", ranks=3).sketch)
    assert counted.count("3/3") == (3 + 6 + 9) and counted.count("1/3") == 9 + 6 + 3
    stepper = steps("ring", ranks=3)
    assert [stepper.at({"step": step}).said.split(". ")[-1].split(" ")[0] for step in range(5)] == ["0", "0", "3", "6", "9"]
    assert "rank 2 sends chunk" in stepper.at({"step": 1}).sketches[0].alt
    assert repr(drawing("ring", ranks=3)) in repr(stepper)
    assert "0 of 64 chunks" in repr(steps("ring", ranks=8)), "too large to be drawn as a whole"


def test_buckets_that_have_not_left_are_not_drawn_on_the_link():
    stepper = steps("buckets")
    early, late = stepper.at({"now_ms": 15.0}), stepper.at({"now_ms": 180.0})
    assert "its all-reduce" not in early.sketches[0].alt and "At 15 ms 0 have arrived" in early.said
    assert "At 180 ms 4 have arrived" in late.said


def test_a_checkpoint_s_loss_is_what_lies_between_the_save_and_the_crash():
    assert "2 steps are done twice" in repr(drawing("checkpoint", interval=5, crash=17))
    assert "0 steps are done twice" in repr(drawing("checkpoint", interval=5, crash=15))
    assert "holds 0 steps" in repr(drawing("checkpoint", interval=20, crash=17))


def test_who_asks_for_what_cannot_be_drawn_is_told_what_can():
    with pytest.raises(UnknownName, match="ring"):
        drawing("rings")
    with pytest.raises(UnknownName, match="buckets"):
        steps("sampler")
    with pytest.raises(UsageError, match="it takes ranks"):
        drawing("ring", workers=3)
    for wrong in (1, 9, 2.5, True, "4"):
        with pytest.raises(UsageError, match="ranks is a whole number"):
            drawing("ring", ranks=wrong)


def test_sketches_stand_beside_each_other_with_text_below():
    one = drawing("loss-scale").sketch
    both = beside([one, one], ["what it says"])
    assert both.width == 2 * one.width and both.height > one.height and "what it says" in words_of(both)
    assert moved(one.shapes[0], 5, 0) in beside([one]).shapes or moved(one.shapes[0], 0, 0) in both.shapes
