"""A learner's loop beside the right one, step by step: each step of the right one begins where the learner's began.

In one process the learner's loop runs, and what it does is written down: the state before each batch, the gradients that
the optimizer gets, the state at the end. In another process the right step is taken from each of these states, and compared.
So a difference does not grow: the step that is named is the one that is wrong, however late it comes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...ranks.context import RankContext
from .loops import fixed
from .programs import build_model, build_optimizer, loader_of

if TYPE_CHECKING:
    from . import Config

SAME_GRADIENTS, SAME_UPDATE = 0.02, 0.05
"""Relative differences that rounding in another order may make."""


@dataclass(frozen=True)
class State:
    """What a step begins with."""

    model: dict[str, torch.Tensor]
    optimizer: dict[str, Any]
    scaler: dict[str, Any]

    @property
    def weights(self) -> torch.Tensor:
        return torch.cat([value.reshape(-1) for value in self.model.values()])

    @property
    def scale(self) -> float:
        return float(self.scaler["scale"])


@dataclass
class Step:
    """What a loop did with one batch.

    Attributes:
        batch: its number; -1 for an input that is no batch's.
        taken: batches that the loop had taken by then.
        before: the state in which its forward pass began.
        logits: precision of each forward pass.
        gradients: as the optimizer got them, one entry an update.
    """

    batch: int
    taken: int
    before: State
    logits: list[str] = field(default_factory=list)
    gradients: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Course:
    """What a whole loop did.

    Attributes:
        taken: batches that it took.
        returned: the type of what the function returned; empty for nothing.
    """

    config: Config
    seed: int
    num_batches: int
    steps: list[Step]
    end: State
    taken: int
    returned: str


@dataclass(frozen=True)
class Drive:
    """A loop to run, and on what."""

    loop: Callable[..., Any]
    config: Config
    seed: int
    num_batches: int


def batches_of(config: Config, seed: int, number: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """(inputs, targets) of so many batches, over as many epochs as it takes."""
    epoch = 0
    while True:
        for inputs, targets, _ in loader_of(config, seed, epoch):
            if number == 0:
                return
            number -= 1
            yield inputs, targets
        epoch += 1


def follow(context: RankContext) -> Course:
    """Run a learner's loop and write down what it does. *Called on* one rank, without a group."""
    torch.set_num_threads(1)
    drive: Drive = context.task
    model = build_model(drive.config, drive.seed).to(context.device)
    optimizer, scaler = build_optimizer(model, drive.config), _scaler(drive.config, context.device.type)
    given: list[torch.Tensor] = []
    steps: list[Step] = []

    def batches() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for inputs, targets in batches_of(drive.config, drive.seed, drive.num_batches):
            given.append(inputs.clone())
            yield inputs.to(context.device), targets.to(context.device)

    def about_to_forward(_model, inputs) -> None:
        if torch.is_grad_enabled():
            now = steps[-1].batch if steps else -1
            which = _which(inputs[0], given, now)
            if not steps or which != now:
                steps.append(Step(which, len(given), _state(model, optimizer, scaler)))

    def forwarded(_model, _inputs, logits) -> None:
        if torch.is_grad_enabled():
            steps[-1].logits.append(str(logits.dtype).removeprefix("torch."))

    def about_to_update(*_) -> None:
        if steps:
            steps[-1].gradients.append(_gradients(model))

    model.register_forward_pre_hook(about_to_forward)
    model.register_forward_hook(forwarded)
    optimizer.register_step_pre_hook(about_to_update)
    returned = drive.loop(model, optimizer, scaler, batches(), context.device.type, drive.config)
    said = "" if returned is None else type(returned).__name__
    end = _state(model, optimizer, scaler)
    return Course(drive.config, drive.seed, drive.num_batches, steps, end, len(given), said)


def _scaler(config: Config, device: str) -> torch.amp.GradScaler:  # pyright: ignore[reportPrivateImportUsage]
    how = {"init_scale": config.init_scale, "growth_interval": config.growth_interval}
    return torch.amp.GradScaler(device, **how)  # pyright: ignore[reportPrivateImportUsage]


def _which(inputs: torch.Tensor, given: list[torch.Tensor], now: int) -> int:
    """The number of the batch that an input is: the one at work, or a later one that was given."""
    seen = inputs.detach().cpu().float()
    candidates = range(max(now, 0), len(given))
    return next((number for number in candidates if torch.equal(seen, given[number])), -1)


def _state(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: Any) -> State:
    weights = {name: value.detach().cpu().float().clone() for name, value in model.state_dict().items()}
    return State(weights, copy.deepcopy(optimizer.state_dict()), scaler.state_dict())


def _gradients(model: nn.Module) -> torch.Tensor:
    parts = [(torch.zeros_like(p) if p.grad is None else p.grad).detach().reshape(-1).float() for p in model.parameters()]
    return torch.cat(parts).cpu().clone()


def compare(context: RankContext) -> str:
    """The first step that is not the right one, in words; empty if all are right. *Called on* one rank, without a group."""
    torch.set_num_threads(1)
    course: Course = context.task
    batches = list(batches_of(course.config, course.seed, course.num_batches))
    ends = [*(step.before for step in course.steps[1:]), course.end]
    for step, end in zip(course.steps, ends, strict=True):
        gradients, right = _right_step(course.config, step.before, batches[step.batch], context.device.type)
        text = _difference(step, end, gradients, right, course.config)
        if text:
            return f"in step {step.batch} of {course.num_batches} {text}"
    return ""


def _right_step(config: Config, before: State, batch: tuple, device: str) -> tuple[list[torch.Tensor], State]:
    """(gradients as the optimizer gets them, none where it is not asked; the state afterwards)."""
    model = build_model(config, 0).to(device)
    model.load_state_dict(before.model)
    optimizer, scaler = build_optimizer(model, config), _scaler(replace(config, init_scale=before.scale), device)
    own_groups = optimizer.state_dict()["param_groups"]  # the configuration's: a loop may not change its learning rate
    optimizer.load_state_dict({**copy.deepcopy(before.optimizer), "param_groups": own_groups})
    scaler.load_state_dict(before.scaler)
    gradients: list[torch.Tensor] = []
    optimizer.register_step_pre_hook(lambda *_: gradients.append(_gradients(model)))
    fixed(model, optimizer, scaler, [tuple(part.to(device) for part in batch)], device, config)
    return gradients, _state(model, optimizer, scaler)


def _difference(step: Step, end: State, gradients: list[torch.Tensor], right: State, config: Config) -> str:
    if len(step.gradients) != len(gradients):
        return _updates(len(step.gradients), len(gradients))
    for own, wanted in zip(step.gradients, gradients, strict=True):
        if not _close(own, wanted, SAME_GRADIENTS):
            return _of_gradients(own, wanted, config)
    moved, wanted = end.weights - step.before.weights, right.weights - step.before.weights
    if not _close(moved, wanted, SAME_UPDATE):
        return (
            f"the weights move by {moved.norm():.3g}, where the optimizer's step moves them by {wanted.norm():.3g}: "
            "something else changes them, or the optimizer"
        )
    if end.scale != right.scale:
        return (
            f"the scale goes from {step.before.scale:g} to {end.scale:g}, where it should be {right.scale:g}: "
            "scaler.update() once for each batch"
        )
    return ""


def _close(own: torch.Tensor, wanted: torch.Tensor, tolerance: float) -> bool:
    return bool((own.double() - wanted.double()).norm() <= tolerance * wanted.double().norm())


def _updates(own: int, wanted: int) -> str:
    if own < wanted:
        return (
            "the optimizer takes no step, and should take one: scaler.step(optimizer) for each batch, and zero_grad, lest "
            "an overflow stays in the gradients"
        )
    if wanted == 0:
        return "gradients overflow, and the optimizer takes a step with them: scaler.step(optimizer) would leave it out"
    return f"the optimizer takes {own} steps, and should take one"


def _of_gradients(own: torch.Tensor, wanted: torch.Tensor, config: Config) -> str:
    norm, right = float(own.double().norm()), float(wanted.double().norm())
    if not norm <= 1.01 * config.clip_norm:
        return f"the gradients are not clipped: their norm is {norm:.3g}, and config.clip_norm is {config.clip_norm:.3g}"
    cosine = float(own.double() @ wanted.double()) / max(norm * right, 1e-300)
    if cosine > 0.99:
        return f"the gradients that the optimizer gets have a norm of {norm:.3g}, and should have one of {right:.3g}"
    return (
        "the gradients that the optimizer gets are not those of this batch: does zero_grad come before each backward pass, "
        "and is the loss that of this batch?"
    )
