"""What each state of a training is for: at which step its absence first shows in the loss. Plain arithmetic; no torch.

A run that goes on after `resumed_at` steps computes, at that step, a loss of restored weights on the next batch, then an
update. What changes batch or weights shows at once. What changes the update shows one step later. What changes a later
update shows one step after that.
"""

from __future__ import annotations

from typing import Protocol

STATES = {
    "model": "weights",
    "optimizer": "momentum, and the learning rate that the optimizer holds",
    "scheduler": "how far the schedule of the learning rate is",
    "scaler": "the scale of the loss, under fp16",
    "place": "epoch, and samples of it that are done",
    "epoch": "the epoch alone",
    "consumed": "samples done in this epoch alone",
    "rng": "all random generators of each rank",
    "rng-python": "python's generator",
    "rng-numpy": "numpy's generator",
    "rng-torch": "torch's generator",
    "rng-per-rank": "one rank's generators, stored for all of them",
    "rng-after-iter": "restored, but before iter(loader), which draws a number",
    "bucket-order": "the order of sums: DDP lays its buckets out anew after the first step of a start",
}
"""What can be left out, and what it is."""


class Settings(Protocol):
    """What of a configuration decides when a state takes effect; as in the lab crash-recovery."""

    num_samples: int
    global_batch: int
    decay_every: int
    momentum: float
    dropout: float
    augment: bool
    precision: str


def departs_at(state: str, resumed_at: int, config: Settings, world_size: int, total_steps: int) -> int | None:
    """The first step at which the loss of the resumed run differs; None if it never does within the run.

    Args:
        state: a key of STATES, or "nothing".
        resumed_at: steps that the checkpoint held, at least 1.
        config: the lab's configuration.
        world_size: ranks.
        total_steps: of the whole run.
    """
    step = _departs_at(state, resumed_at, config, world_size)
    return step if step is not None and step < total_steps else None


def _departs_at(state: str, resumed_at: int, config: Settings, world_size: int) -> int | None:
    at_once, after_an_update = resumed_at, resumed_at + 1
    steps_per_epoch = -(-config.num_samples // config.global_batch)
    draws = {
        "rng-python": config.augment,
        "rng-numpy": config.augment,
        "rng-torch": config.dropout > 0,
        "rng-after-iter": config.dropout > 0,
        "rng": config.augment or config.dropout > 0,
        "rng-per-rank": world_size > 1 and (config.augment or config.dropout > 0),
    }
    if state in draws:
        return at_once if draws[state] else None
    match state:
        case "model" | "place" | "consumed":
            return at_once
        case "epoch":  # after the last step of epoch 0, the place is still in epoch 0
            return at_once if (resumed_at - 1) // steps_per_epoch > 0 else None
        case "optimizer":
            return after_an_update if config.momentum > 0 or resumed_at >= config.decay_every else None
        case "scheduler":
            into_period = resumed_at % config.decay_every
            return after_an_update + config.decay_every - into_period if into_period else None
        case "scaler":
            return after_an_update if config.precision == "fp16" else None
    return None  # "bucket-order" changes the last bits of weights, which a loss may round away
