"""Small real models.

Shapes: images [B, 64] in, logits [B, 10] out.
"""

from __future__ import annotations

import torch
from torch import nn

from .digits import NUM_CLASSES, NUM_PIXELS

MODELS = ("mlp", "cnn")


def build(name: str, *, seed: int, dtype: torch.dtype = torch.float32) -> nn.Module:
    """Build a classifier of digits; equal seeds give equal weights on every rank, and the caller's RNG is untouched.

    Args:
        name: "mlp" (64-128-10) or "cnn" (two convolutions and a linear layer; no BatchNorm, whose statistics would be
            each rank's own).
        seed: of the initial weights.
        dtype: of the weights.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if name == "mlp":
            model = nn.Sequential(nn.Linear(NUM_PIXELS, 128), nn.ReLU(), nn.Linear(128, NUM_CLASSES))
        elif name == "cnn":
            model = nn.Sequential(
                nn.Unflatten(1, (1, 8, 8)),
                nn.Conv2d(1, 16, 3, padding=1),
                nn.ReLU(),
                nn.Conv2d(16, 16, 3, padding=1, stride=2),
                nn.ReLU(),
                nn.Flatten(),
                nn.Linear(16 * 4 * 4, NUM_CLASSES),
            )
        else:
            raise ValueError(f"no model {name!r}; there are: {', '.join(MODELS)}")
    return model.to(dtype)
