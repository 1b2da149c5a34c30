"""A trace of torch.profiler as a picture: what is drawn is what the profiler saw."""

import pytest
import torch
from torch.profiler import profile

from labkit.errors import UnknownName, UsageError
from labkit.view import lesson


def profiled(do):
    with profile() as seen:
        do()
    return seen


def test_each_operation_is_a_bar_from_its_start_to_its_end_and_what_it_calls_is_part_of_it():
    a = torch.rand(64, 64)
    both = profiled(lambda: (a @ a).softmax(-1))
    drawn = lesson.trace({"both": both, "product": profiled(lambda: a @ a)})
    assert "both, to " in repr(drawn) and "measured" in repr(drawn) and "simulated" not in repr(drawn)
    of_both, product = repr(drawn).split("; ")
    assert "matmul" in of_both and "softmax" in of_both and "softmax" not in product
    assert "aten::mm" in {event.name for event in both.events() or []} and ", mm " not in of_both
    assert "<svg" in drawn.svg and "reads and writes memory" in drawn.svg


def test_an_empty_profile_and_no_profile_are_refused():
    with pytest.raises(UsageError, match="'mine' saw no operation"):
        lesson.trace({"mine": profiled(lambda: None)})
    with pytest.raises(UsageError, match="no profile to draw"):
        lesson.trace({})


def test_a_panel_of_the_theory_is_asked_for_by_name():
    assert lesson.theory("tiles", rows=2305).numbers["waves"] == 2
    with pytest.raises(UnknownName, match="Did you mean 'tiles'"):
        lesson.theory("tile")
