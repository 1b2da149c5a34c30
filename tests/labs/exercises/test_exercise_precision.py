"""Loops in fp16 that are wrong from some step on, or in some state, each refused; right ones accepted, also when busy."""

import pytest
import torch
from answers import each

import labkit
from labkit.labs.precision.loops import loss_of

pytestmark = pytest.mark.ranks
LAB = labkit.lab("precision")
BEFORE = 7
"""Batches for which a loop of these is right, where it is right at first."""


def a_step(model, optimizer, scaler, inputs, targets, device, config, *, leave_out=(), clip_norm=None, dtype=torch.float16):
    """A right step, without some of its parts."""
    with torch.autocast(device, dtype or torch.float16, enabled=dtype is not None):
        loss = loss_of(model(inputs), targets, config)
    if "zero_grad" not in leave_out:
        optimizer.zero_grad()
    (loss if "scale" in leave_out else scaler.scale(loss)).backward()
    if "unscale" not in leave_out:
        scaler.unscale_(optimizer)
    if "clip" not in leave_out:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip_norm or config.clip_norm)
    if "step" not in leave_out:
        scaler.step(optimizer)
    if "update" not in leave_out:
        scaler.update()


def loop(**how):
    """A loop whose steps are all of one kind; `after` so many batches only, the steps before are right."""
    after, every = how.pop("after", 0), how.pop("every", 1)

    def my_loop(model, optimizer, scaler, batches, device, config):
        for number, (inputs, targets) in enumerate(batches):
            wrong = number >= after and number % every == 0
            a_step(model, optimizer, scaler, inputs, targets, device, config, **(how if wrong else {}))

    return my_loop


right = loop()


def in_one_context(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16, cache_enabled=False):
        for inputs, targets in batches:
            optimizer.zero_grad(set_to_none=False)
            scaler.scale(config.loss_weight * torch.nn.functional.cross_entropy(model(inputs), targets)).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            scaler.step(optimizer)
            scaler.update()


def casts_are_kept_for_ever(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16):
        for inputs, targets in batches:
            loss = loss_of(model(inputs), targets, config)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            scaler.step(optimizer)
            scaler.update()


def past_the_scaler(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        a_step(model, optimizer, scaler, inputs, targets, device, config, leave_out=("step",))
        optimizer.step()


def two_steps_a_batch(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        a_step(model, optimizer, scaler, inputs, targets, device, config)
        optimizer.step()


def with_a_scaler_of_its_own(model, optimizer, scaler, batches, device, config):
    own = torch.amp.GradScaler(device, init_scale=2.0**16)
    right(model, optimizer, own, batches, device, config)


def drops_every_second_batch(model, optimizer, scaler, batches, device, config):
    for number, (inputs, targets) in enumerate(batches):
        if number < BEFORE or number % 2:
            a_step(model, optimizer, scaler, inputs, targets, device, config)


def stops_early(model, optimizer, scaler, batches, device, config):
    for number, (inputs, targets) in enumerate(batches):
        if number == 40:
            return
        a_step(model, optimizer, scaler, inputs, targets, device, config)


def one_batch_for_ever(model, optimizer, scaler, batches, device, config):
    first = None
    for inputs, targets in batches:
        first = first or (inputs, targets)
        a_step(model, optimizer, scaler, *first, device, config)


def shrinks_weights_late(model, optimizer, scaler, batches, device, config):
    for number, (inputs, targets) in enumerate(batches):
        a_step(model, optimizer, scaler, inputs, targets, device, config)
        if number == 30:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(0.99)


def lowers_the_learning_rate(model, optimizer, scaler, batches, device, config):
    for number, (inputs, targets) in enumerate(batches):
        a_step(model, optimizer, scaler, inputs, targets, device, config)
        if number == BEFORE:
            optimizer.param_groups[0]["lr"] *= 0.2


WRONG = {
    "no update": loop(leave_out=("step",)),
    "no zero_grad": loop(leave_out=("zero_grad",)),
    "clips to nearly nothing": loop(clip_norm=1e-12),
    "fp32 after some steps": loop(after=BEFORE, dtype=None),
    "half of the updates left out after some": loop(after=BEFORE, every=2, leave_out=("step",)),
    "clips nothing": loop(leave_out=("clip",)),
    "clips nothing after some": loop(after=BEFORE, leave_out=("clip",)),
    "clips to nearly nothing after some": loop(after=BEFORE, clip_norm=1e-12),
    "clips to ten times as much": loop(clip_norm=2e-5),
    "no zero_grad after some": loop(after=BEFORE, leave_out=("zero_grad",)),
    "clips before unscaling": loop(leave_out=("unscale",)),
    "clips before unscaling after some": loop(after=BEFORE, leave_out=("unscale",)),
    "no scale": loop(leave_out=("scale",)),
    "no scale after some": loop(after=BEFORE, leave_out=("scale",)),
    "no scaler.update after some": loop(after=BEFORE, leave_out=("update",)),
    "fp32": loop(dtype=None),
    "bf16": loop(dtype=torch.bfloat16),
    "bf16 in one step": loop(after=50, every=50, dtype=torch.bfloat16),
    "casts are kept for ever": casts_are_kept_for_ever,
    "past the scaler": past_the_scaler,
    "two steps a batch": two_steps_a_batch,
    "a scaler of its own": with_a_scaler_of_its_own,
    "drops every second batch": drops_every_second_batch,
    "stops early": stops_early,
    "one batch for ever": one_batch_for_ever,
    "shrinks the weights once": shrinks_weights_late,
    "lowers the learning rate": lowers_the_learning_rate,
}


@each(WRONG, quick_every=5)
def test_a_wrong_loop_is_refused(wrong):
    result = LAB.check(wrong)
    assert result.findings and not result.doubt


@pytest.mark.parametrize("answer", [right, in_one_context])
def test_a_right_loop_is_accepted_on_a_busy_machine(answer, busy):
    assert str(LAB.check(answer)) == "Solved: every check passed."


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("answer", [right, in_one_context])
def test_a_right_loop_is_accepted_ten_times_on_a_busy_machine(answer, busy):
    assert [str(LAB.check(answer)) for _ in range(10)] == ["Solved: every check passed."] * 10
