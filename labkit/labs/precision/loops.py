"""The training loops of the variants: what differs between them is what this lab is about, and what its exercise asks.

A loop is given a model in fp32, its optimizer, a `torch.amp.GradScaler` that it may use, batches on the device, the
device's type and the configuration. It trains until the batches end.

Shapes: of digits inputs are [B, 64], targets [B] and logits [B, 10]; of text [B, S], [B, S] and [B, S, 256].
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from . import Config

Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]
Loop = Callable[..., Any]


def broken(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        optimizer.step()


def fixed(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip(model, config)
        scaler.step(optimizer)
        scaler.update()


def fp32(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        optimizer.step()


def tf32(model, optimizer, scaler, batches, device, config):
    with tf32_products():
        fp32(model, optimizer, scaler, batches, device, config)


def bf16_autocast(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.bfloat16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        optimizer.step()


def half_weights(model, optimizer, scaler, batches, device, config):
    model.half()
    for inputs, targets in batches:
        loss = loss_of(model(as_dtype(inputs, torch.float16)), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        optimizer.step()


def bf16_weights(model, optimizer, scaler, batches, device, config):
    model.bfloat16()
    for inputs, targets in batches:
        loss = loss_of(model(as_dtype(inputs, torch.bfloat16)), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        optimizer.step()


def bf16_kahan(model, optimizer, scaler, batches, device, config):
    model.bfloat16()
    rests = [torch.zeros_like(weight) for weight in model.parameters()]
    for inputs, targets in batches:
        loss = loss_of(model(as_dtype(inputs, torch.bfloat16)), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        widen(model)
        for weight, rest in zip(model.parameters(), rests, strict=True):
            weight.data += rest  # what rounding took from it so far
        optimizer.step()
        for weight, rest in zip(model.parameters(), rests, strict=True):
            exact = weight.data
            weight.data = exact.bfloat16()
            rest.copy_(exact - weight.data)


def bf16_stochastic(model, optimizer, scaler, batches, device, config):
    model.bfloat16()
    for inputs, targets in batches:
        loss = loss_of(model(as_dtype(inputs, torch.bfloat16)), targets, config)
        optimizer.zero_grad()
        loss.backward()
        clip(model, config)
        widen(model)
        optimizer.step()
        for weight in model.parameters():
            weight.data = round_at_random(weight.data)


def autocast_whole_loop(model, optimizer, scaler, batches, device, config):
    with torch.autocast(device, torch.bfloat16):
        for inputs, targets in batches:
            loss = loss_of(model(inputs), targets, config)
            optimizer.zero_grad()
            loss.backward()
            clip(model, config)
            optimizer.step()


def clip_before_unscale(model, optimizer, scaler, batches, device, config):
    for inputs, targets in batches:
        with torch.autocast(device, torch.float16):
            loss = loss_of(model(inputs), targets, config)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        clip(model, config)
        scaler.step(optimizer)
        scaler.update()


LOOPS: dict[str, Loop] = {
    "broken": broken,
    "fp32": fp32,
    "tf32": tf32,
    "bf16-autocast": bf16_autocast,
    "half-weights": half_weights,
    "bf16-weights": bf16_weights,
    "bf16-kahan": bf16_kahan,
    "bf16-stochastic": bf16_stochastic,
    "autocast-whole-loop": autocast_whole_loop,
    "clip-before-unscale": clip_before_unscale,
    "fixed": fixed,
}

IN_FP16 = ("broken", "fixed", "half-weights", "clip-before-unscale")
"""Variants that compute in fp16: far too slow for a GPT on a CPU."""


def loss_of(logits: torch.Tensor, targets: torch.Tensor, config: Config) -> torch.Tensor:
    """The loss that is trained: cross-entropy (mean over the batch, and over the tokens of a text) times its weight.

    It is computed in fp32 whatever the logits are, as autocast does.
    """
    return config.loss_weight * cross_entropy(logits, targets)


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in fp32, without the weight: what is drawn."""
    return nn.functional.cross_entropy(logits.float().flatten(0, -2), targets.flatten())


def clip(model: nn.Module, config: Config) -> None:
    """Clip the norm of the gradients, if the configuration says so."""
    if config.clip_norm:
        nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)


def as_dtype(inputs: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Images in another precision; tokens stay what they are."""
    return inputs.to(dtype) if inputs.is_floating_point() else inputs


def widen(model: nn.Module) -> None:
    """Make weights and gradients fp32, so that the optimizer's next step rounds to fp32."""
    for weight in model.parameters():
        gradient, weight.grad = weight.grad, None
        weight.data = weight.data.float()
        weight.grad = gradient.float() if gradient is not None else None


def round_at_random(numbers: torch.Tensor) -> torch.Tensor:
    """fp32 to bf16, up or down by chance: up as often as it lies near the upper neighbour, so that the mean is right.

    bf16 is the upper half of fp32's bits. A random number is added to the lower half, and the half is cut off: it carries
    into the upper one with the probability that the lower half stands for. The sign is a bit of its own, so negative
    numbers round alike. NaN and infinity are not for it.
    """
    bits = numbers.contiguous().view(torch.int32)
    bits = bits + torch.randint(0, 2**16, bits.shape, dtype=torch.int32, device=bits.device)
    return (bits & -(2**16)).view(torch.float32).bfloat16()


@contextlib.contextmanager
def tf32_products() -> Iterator[None]:
    """Let matrix products and convolutions on a GPU round their inputs to tf32; sums stay in fp32."""
    before, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
        torch.backends.cudnn.allow_tf32 = convolutions
