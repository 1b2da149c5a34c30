"""Bytes of activations that a transformer keeps for its backward pass. Arithmetic only.

Korthikanti, Casper, Lym, McAfee, Andersch, Shoeybi, Catanzaro, "Reducing Activation Recomputation in Large Transformer
Models", 2022 (arXiv:2205.05198), section 4, without tensor parallelism: s·b·h·(34 + 5·a·s/h) bytes a layer in 16 bits;
34·s·b·h where attention is computed again (selective recomputation, and what fused attention does); 2·s·b·h where each
layer keeps its input alone (full recomputation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..errors import UnknownName, UsageError

Recompute = Literal["nothing", "attention", "whole layers"]
RECOMPUTE: tuple[Recompute, ...] = ("nothing", "attention", "whole layers")

WIDTH_PER_LAYER = 128
"""Hidden units for each layer, and hidden units of a head, of the models that are drawn: 32 layers, 4,096 wide at 7e9."""


@dataclass(frozen=True)
class Proportions:
    """A decoder-only transformer of usual proportions.

    Attributes:
        layers, hidden, heads: L, h, a.
    """

    layers: int
    hidden: int
    heads: int


def usual_proportions(params: float) -> Proportions:
    """The layers, width and heads of a model of Ψ = 12·L·h² weights with h = 128·L and heads of 128.

    >>> usual_proportions(6.5e9)
    Proportions(layers=32, hidden=4096, heads=32)
    """
    if not params > 0:
        raise UsageError(f"params must be more than 0; given {params!r}")
    layers = max(1, round((params / (12 * WIDTH_PER_LAYER**2)) ** (1 / 3)))
    return Proportions(layers, WIDTH_PER_LAYER * layers, layers)


def activation_bytes(
    of: Proportions, *, sequence: int, batch: int, recompute: Recompute = "attention", dropout: bool = True
) -> float:
    """Bytes that one rank keeps in 16 bits for one micro-batch, all layers together; no stage of ZeRO divides them.

    Args:
        of: the model.
        sequence: tokens in a sequence (s).
        batch: sequences in the micro-batch (b).
        recompute: what is computed again in the backward pass, and so not kept.
        dropout: whether the model drops units, as the paper's does. Without it a layer keeps no masks, 2·s·b·h bytes and
            a·s²·b, and the probabilities of attention once and not twice, 2·a·s²·b less.

    >>> gpt3 = Proportions(96, 12288, 96)
    >>> round(activation_bytes(gpt3, sequence=2048, batch=1, recompute="nothing") / 1e9)  # GB
    275
    """
    if recompute not in RECOMPUTE:
        raise UnknownName("recomputation", recompute, RECOMPUTE)
    tokens = sequence * batch * of.hidden
    linear, square = (34, 5) if dropout else (32, 2)
    kept = {"nothing": linear + square * of.heads * sequence / of.hidden, "attention": linear, "whole layers": 2}[recompute]
    return of.layers * tokens * kept
