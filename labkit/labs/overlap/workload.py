"""What lab 05 trains: a deep network on digits, with as many bytes of gradients and as much arithmetic as are asked for.

Shapes: images [B, 64], labels [B]; between the blocks [B, W], where W is `width`; logits [B, 10].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...workloads.digits import NUM_CLASSES, NUM_PIXELS, Digits

if TYPE_CHECKING:
    from ...ranks.context import RankContext
    from . import Config

Batches = list[tuple[torch.Tensor, torch.Tensor]]
"""The micro-batches of one step: (images [B, 64], labels [B])."""


class Block(nn.Module):
    """x + relu(linear(x)): deep stacks of it train, and each layer has gradients of the same size."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs + torch.relu(self.linear(inputs))


def build_model(config: Config, seed: int) -> nn.Module:
    """`layers` equal blocks between two small layers; equal seeds give equal weights, and the caller's RNG is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        blocks = [Block(config.width) for _ in range(config.layers)]
        return nn.Sequential(nn.Linear(NUM_PIXELS, config.width), *blocks, nn.Linear(config.width, NUM_CLASSES))


def loss_of(model: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Mean cross-entropy of a micro-batch."""
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def micro_batches(config: Config, context: RankContext | Any, steps: int, batch: int | None = None) -> Iterator[Batches]:
    """For each step its micro-batches, `batch` samples in all, drawn with replacement; each rank draws its own."""
    data = Digits()
    draw = torch.Generator().manual_seed(context.seed * 1009 + context.rank)
    samples = batch or config.batch
    parts = 1 if batch else config.micro_batches
    for _ in range(steps):
        ids = torch.randint(len(data), (samples,), generator=draw)
        images, labels = data.images[ids].to(context.device), data.labels[ids].to(context.device)
        yield [pair for pair in zip(images.chunk(parts), labels.chunk(parts), strict=True)]
