"""Trainings that come back wrongly from some crash, each refused; right ones accepted, ten times on a busy machine."""

import dataclasses
import random

import numpy as np
import pytest
import torch
from answers import each, named

import labkit
from labkit.labs.crash_recovery.exercise import PLACES, drawn_tries
from labkit.labs.crash_recovery.training import Training
from labkit.workloads.resumable import random_state, set_random_state

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(400)]
LAB = labkit.lab("crash-recovery")
NAMES = ("model", "optimizer", "scheduler", "scaler")


class Solved(Training):
    def state_dict(self):
        state = {name: getattr(self, name).state_dict() for name in NAMES}
        return {**state, "place": self.sampler.state_dict()}

    def load_state_dict(self, state):
        for name in NAMES:
            getattr(self, name).load_state_dict(state[name])
        self.sampler.load_state_dict(state["place"])

    def rank_state(self):
        return random_state()

    def load_rank_state(self, state):
        set_random_state(state)


class WithoutNames(Solved):
    """The same in another form: one list, random numbers by hand."""

    def state_dict(self):
        parts = [getattr(self, name).state_dict() for name in NAMES]
        return {"parts": parts, "at": [self.sampler.epoch, self.sampler.consumed]}

    def load_state_dict(self, state):
        for name, part in zip(NAMES, state["parts"], strict=True):
            getattr(self, name).load_state_dict(part)
        self.sampler.epoch, self.sampler.consumed = state["at"]

    def rank_state(self):
        return {"p": random.getstate(), "n": np.random.get_state(), "t": torch.get_rng_state()}

    def load_rank_state(self, state):
        random.setstate(state["p"])
        np.random.set_state(state["n"])
        torch.set_rng_state(state["t"])


def at_an_edge(place) -> bool:
    return place["consumed"] == place["num_samples"]


class BeginsTheNextEpochTooEarly(Solved):
    def load_state_dict(self, state):
        place = state["place"]
        if at_an_edge(place):
            place = {**place, "epoch": place["epoch"] + 1, "consumed": 0}
        super().load_state_dict({**state, "place": place})


class DoesTheEpochAgain(Solved):
    def load_state_dict(self, state):
        place = state["place"]
        super().load_state_dict({**state, "place": {**place, "consumed": 0} if at_an_edge(place) else place})


class NoPlaceAtTheBeginningOfAnEpoch(Solved):
    def load_state_dict(self, state):
        place = state["place"]
        short = place["consumed"] <= self.config.global_batch
        super().load_state_dict({**state, "place": {**place, "consumed": 0} if short else place})


class LateRandomNumbersAlone(Solved):
    def load_rank_state(self, state):
        if self.step >= 8:
            super().load_rank_state(state)


class EarlyOptimizerAlone(Solved):
    def load_state_dict(self, state):
        early = state["place"]["epoch"] == 0
        super().load_state_dict(state if early else {**state, "optimizer": self.optimizer.state_dict()})


class LateScaleAlone(Solved):
    def load_state_dict(self, state):
        late = state["place"]["epoch"] > 0
        super().load_state_dict(state if late else {**state, "scaler": self.scaler.state_dict()})


class LastEpochWithoutSchedule(Solved):
    def load_state_dict(self, state):
        last = state["place"]["epoch"] == self.config.epochs - 1
        super().load_state_dict({**state, "scheduler": self.scheduler.state_dict()} if last else state)


class RightOnRankZero(Solved):
    def load_rank_state(self, state):
        if self.context.rank == 0:
            super().load_rank_state(state)


class SeededByTheStep(Solved):
    def load_rank_state(self, state):
        random.seed(self.step)
        np.random.seed(self.step)
        torch.manual_seed(self.step)


class WithoutDropoutAndNoise(Solved):
    """Where nothing is random nothing random has to come back."""

    def __init__(self, context, config):
        super().__init__(context, dataclasses.replace(config, dropout=0.0, augment=False))

    def rank_state(self):
        return {}

    def load_rank_state(self, state):
        pass


class WithoutMomentum(Solved):
    def __init__(self, context, config):
        super().__init__(context, dataclasses.replace(config, momentum=0.0))


class SeedsEachStep(Solved):
    """Random numbers by the step's number: each step is repeatable, and no longer what the lab trains."""

    def _train_step(self, distributed, images, labels):
        torch.manual_seed(self.step)
        super()._train_step(distributed, images, labels)


class RoundedWeights(Solved):
    def load_state_dict(self, state):
        model = {name: value.bfloat16().float() for name, value in state["model"].items()}
        super().load_state_dict({**state, "model": model})


def without(*left_out):
    """All state but some."""

    class Without(Solved):
        def load_state_dict(self, state):
            kept = {"place": self.sampler.state_dict()} | {name: getattr(self, name).state_dict() for name in NAMES}
            super().load_state_dict({**state, **{name: kept[name] for name in left_out if name in kept}})

        def load_rank_state(self, state):
            set_random_state({name: value for name, value in state.items() if name not in left_out})

    return Without


class LoadsNothing(Solved):
    def load_state_dict(self, state):
        pass


class AnotherKey(Solved):
    def load_state_dict(self, state):
        self.model.load_state_dict(state["weights"])


WRONG = {
    **named(BeginsTheNextEpochTooEarly, LateRandomNumbersAlone),
    "without the optimizer": without("optimizer"),
    **named(DoesTheEpochAgain, NoPlaceAtTheBeginningOfAnEpoch, EarlyOptimizerAlone, LateScaleAlone),
    "without the scaler": without("scaler"),
    **named(LastEpochWithoutSchedule, RightOnRankZero, SeededByTheStep, WithoutDropoutAndNoise, WithoutMomentum),
    "without the weights": without("model"),
    **named(SeedsEachStep, RoundedWeights, LoadsNothing, AnotherKey),
    "without the schedule": without("scheduler"),
    "without the place": without("place"),
    "without python's numbers": without("python"),
    "without numpy's numbers": without("numpy"),
    "without torch's numbers": without("torch"),
}


@each(WRONG, quick_every=4)
def test_a_wrong_training_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


def test_a_right_training_is_accepted_on_a_busy_machine(busy):
    assert str(LAB.check(WithoutNames)) == "Solved: every check passed."


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("answer", [Solved, WithoutNames])
def test_a_right_training_is_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10


def test_every_place_is_tried_and_each_crash_comes_after_a_save():
    for seed in range(300):
        tries = drawn_tries(random.Random(seed))
        assert {one.where for one in tries} == {where for where, *_ in PLACES}
        for one in tries:
            how = one.settings
            an_epoch = -(-how["num_samples"] // how["global_batch"])
            saved = one.kill_step // how["interval"] * how["interval"]
            assert 0 < saved <= one.kill_step < an_epoch * how["epochs"] and one.kill_rank < how["ranks"]
            assert (saved % an_epoch == 0) == (one.where == "between two epochs") or one.where in ("early", "late")
