"""Settings are converted where nothing is lost, and refused by name where they are wrong."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from labkit import labs
from labkit.errors import UnknownName, UsageError
from labkit.labs.spec import configure, setting


@dataclass(frozen=True, kw_only=True)
class Config:
    batch: int = setting(32, "samples", low=1, high=64)
    epochs: int = setting(2, "passes", low=1)
    lr: float = setting(0.05, "rate", low=0.0, high=1.0)
    model: str = setting("mlp", "what", choices=("mlp", "cnn"))
    eager: bool = setting(False, "whether")
    cap: object = setting(None, "optional")


def refusal(error=UsageError, **settings) -> str:
    with pytest.raises(error) as caught:
        configure(Config, settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("batch", 8, 8),
        ("batch", "8", 8),
        ("batch", 8.0, 8),
        ("batch", "1e1", 10),
        ("batch", np.int64(8), 8),
        ("batch", 1, 1),
        ("batch", 64, 64),
        ("lr", 1, 1.0),
        ("lr", "1e-3", 0.001),
        ("lr", 0, 0.0),
        ("lr", np.float64(0.5), 0.5),
        ("lr", np.float32(0.5), 0.5),
        ("model", "cnn", "cnn"),
        ("eager", True, True),
        ("eager", "true", True),
        ("eager", "False", False),
        ("eager", "1", True),
        ("cap", None, None),
    ],
)
def test_words_and_numbers_become_what_the_setting_is(name, given, value):
    got = getattr(configure(Config, {name: given}), name)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize("given", ["eight", "8.5", 8.5, math.nan, math.inf, True, None, "", [8], "0x8", "1_0", "８", 1e30])
def test_what_is_no_whole_number_is_refused(given):
    assert refusal(batch=given) == f"batch must be a whole number; given {given!r}"


@pytest.mark.parametrize(
    "given", ["fast", math.nan, math.inf, "nan", "inf", "1e999", True, None, [0.1], 1j, "9" * 40 + "e300"]
)
def test_what_is_no_number_is_refused(given):
    assert refusal(lr=given) == f"lr must be a number; given {given!r}"


@pytest.mark.parametrize("given", ["yes", 1, 0, None, 1.0, "2"])
def test_what_is_neither_true_nor_false_is_refused(given):
    assert refusal(eager=given) == f"eager must be true or false; given {given!r}"


@pytest.mark.parametrize("given", [3, None, True, ["mlp"]])
def test_what_is_no_text_is_refused(given):
    assert refusal(model=given) == f"model must be text; given {given!r}"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"batch": 0}, "batch must be from 1 to 64; given 0"),
        ({"batch": "65"}, "batch must be from 1 to 64; given 65"),
        ({"batch": "9" * 40}, f"batch must be from 1 to 64; given {'9' * 40}"),
        ({"batch": 10**5000}, "batch must be from 1 to 64; given a int that cannot be printed"),
        ({"lr": 10**400}, f"lr must be a number; given 1{'0' * 79}…"),
        ({"epochs": -1}, "epochs must be at least 1; given -1"),
        ({"lr": -1e-9}, "lr must be from 0.0 to 1.0; given -1e-09"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(settings, text):
    assert refusal(**settings) == text


def test_names_and_choices_are_refused_with_the_nearest_spelling():
    assert refusal(UnknownName, bacth=8).endswith("Did you mean 'batch'?")
    assert refusal(UnknownName, model="cmn") == "no model 'cmn'; there are: cnn, mlp. Did you mean 'cnn'?"


def test_the_callers_settings_go_before_the_variants_and_those_before_the_labs():
    lab = labs.spec("duplicate-data")
    assert lab.configure(lab.variant("leaky-split"), {}).val_share == 0.2
    assert lab.configure(lab.variant("leaky-split"), {"val_share": 0.4}).val_share == 0.4
    assert lab.configure(lab.variant("fixed"), {}).val_share == 0.0


@pytest.mark.parametrize("slug", [lab.slug for lab in labs.specs() if lab.variants])
def test_every_lab_can_be_run_without_a_setting_and_has_a_broken_and_a_fixed_variant(slug):
    lab = labs.spec(slug)
    names = [variant.name for variant in lab.variants]
    assert names[0] == "broken" and "fixed" in names and len(set(names)) == len(names)
    for variant in lab.variants:
        assert variant.summary
        lab.configure(variant, {})


@pytest.mark.parametrize(
    "settings",
    [{"num_samples": 1}, {"num_samples": 1798}, {"batch": 0}, {"val_share": 0.95}, {"workers": 17}, {"dtype": "float16"}],
)
def test_the_lab_refuses_what_it_cannot_run(settings):
    lab = labs.spec("duplicate-data")
    with pytest.raises(UsageError, match=next(iter(settings))):
        lab.configure(lab.variant("broken"), settings)


def test_a_lab_is_known_by_its_number_too():
    assert labs.spec("03") is labs.spec("3") is labs.spec("dup") is labs.spec("duplicate-data")
    for wrong in ("33", "³", "-3", ""):
        with pytest.raises(UnknownName):
            labs.spec(wrong)


def test_labs_and_variants_are_found_by_name_or_refused():
    assert labs.spec("duplicate-data").number == 3
    with pytest.raises(UnknownName, match="Did you mean 'duplicate-data'"):
        labs.spec("duplicate_data")
    with pytest.raises(UnknownName, match="no variant of duplicate-data 'fxied'.* Did you mean 'fixed'"):
        labs.spec("duplicate-data").variant("fxied")
