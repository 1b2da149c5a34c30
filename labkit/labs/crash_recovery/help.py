"""Where to begin in the exercise on the state of a training, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
from labkit.labs.crash_recovery.training import Training


class MyTraining(Training):
    def state_dict(self):  # what all ranks share
        return {"model": self.model.state_dict(), "place": self.sampler.state_dict()}

    def load_state_dict(self, state):  # before the loader starts
        self.model.load_state_dict(state["model"])
        self.sampler.load_state_dict(state["place"])

    def rank_state(self):  # what is a rank's own
        return {}

    def load_rank_state(self, state):  # after the loader has started
        pass


lab.check(MyTraining)
""",
    hints=(
        "Make a list of everything that changes while a step runs, beside the weights. The check names what "
        "did not come back.",
        "Optimizer, schedule and scaler have state_dict() and load_state_dict(), as the model has. All ranks "
        "share them, and the place in the data.",
        "Random numbers are a rank's own: random_state() into rank_state, set_random_state(state) in "
        "load_rank_state. That one comes last, for a loader that starts draws from them.",
    ),
    solution="""\
from labkit.labs.crash_recovery.training import Training
from labkit.workloads.resumable import random_state, set_random_state

NAMES = ("model", "optimizer", "scheduler", "scaler")


class MyTraining(Training):
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
""",
    note="What happens if you put the random generators into state_dict? Try it: the Checkpointer refuses what "
    "ranks call shared and hold differently.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
