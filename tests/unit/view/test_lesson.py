import pytest

import labkit
from labkit import labs
from labkit.errors import UnknownName, UsageError
from labkit.facade import Lab
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
