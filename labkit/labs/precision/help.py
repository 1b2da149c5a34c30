"""Where to begin in the exercise on the loop in 16 bits, hints, and a solution."""

from __future__ import annotations

from ..help import Help

_FIRST = Help(
    start="""\
from labkit.labs.precision.loops import loss_of


def my_loop(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.float16):
        for inputs, targets in batches:
            loss = loss_of(model(inputs), targets, config)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizer.step()


lab.check(my_loop)
""",
    hints=(
        "What does autocast keep from one forward pass to the next, when one context stands around the whole loop?",
        "In fp16 small gradients become 0 before anybody sees them. A GradScaler multiplies the loss first: "
        "scale(loss).backward(), step(optimizer), update().",
        "Clipping compares a norm with a number. While gradients are still scaled, that norm is the scale "
        "times too large: scaler.unscale_(optimizer) comes before it.",
    ),
    solution="""\
import torch

from labkit.labs.precision.loops import loss_of


def my_loop(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):  # opened anew for each forward pass
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # before clipping
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
        scaler.step(optimizer)
        scaler.update()
""",
    note="torch.autocast(..., cache_enabled=False) around the loop also passes: then no cast is kept.",
)


def first() -> Help:
    """For the lab's exercise."""
    return _FIRST
