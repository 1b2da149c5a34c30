"""Where a state that is left out first shows, as plain arithmetic has it; real runs are held against it in tests/labs."""

from types import SimpleNamespace

import pytest

from labkit.theory.departures import STATES, departs_at

BASE = {"num_samples": 40, "global_batch": 8, "decay_every": 4, "momentum": 0.9, "dropout": 0.1, "augment": True,
        "precision": "fp32"}  # fmt: skip


def at(state, resumed=7, ranks=2, total=20, **settings):
    return departs_at(state, resumed, SimpleNamespace(**{**BASE, **settings}), ranks, total)


@pytest.mark.parametrize("state", ["model", "place", "consumed", "rng", "rng-python", "rng-numpy", "rng-torch"])
def test_what_changes_batch_or_weights_shows_at_once(state):
    assert at(state) == 7


def test_what_changes_the_update_shows_a_step_later():
    assert at("optimizer") == 8 and at("scaler", precision="fp16") == 8 and at("scaler") is None


@pytest.mark.parametrize(("resumed", "step"), [(5, 9), (6, 9), (7, 9), (9, 13), (11, 13), (8, None), (4, None)])
def test_a_schedule_shows_at_the_next_end_of_its_period_but_for_a_resume_at_one(resumed, step):
    assert at("scheduler", resumed) == step


def test_without_momentum_and_before_the_first_decay_the_optimizer_holds_nothing():
    assert at("optimizer", 3, momentum=0.0) is None and at("optimizer", 5, momentum=0.0) == 6


@pytest.mark.parametrize(("resumed", "step"), [(4, None), (5, None), (6, 6), (10, 10)])
def test_the_epoch_is_missed_after_the_first(resumed, step):
    assert at("epoch", resumed) == step


def test_a_generator_that_nobody_draws_from_is_never_missed():
    assert at("rng-torch", dropout=0) is None and at("rng-numpy", augment=False) is None
    assert at("rng-per-rank", ranks=1) is None and at("rng", dropout=0, augment=False) is None


def test_what_would_show_after_the_end_does_not():
    assert at("optimizer", 19) is None and at("model", 19) == 19


def test_every_state_has_an_answer():
    assert all(at(state) is None or at(state) >= 7 for state in STATES) and at("nothing") is None
