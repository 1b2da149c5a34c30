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
