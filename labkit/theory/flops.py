"""How many floating-point operations a token costs, by which convention, and the utilisation that follows.

Pure arithmetic, one token at a time, for a decoder-only transformer. Letters of the formulas:

    N  weights that take part in a matrix product, the output head included (Ψ elsewhere)
    L  layers      h  hidden size      s  tokens in a sequence      V  vocabulary

A weight costs 2 FLOPs a token forward (multiply, add) and 4 backward (one product for the input's gradient, one for the
weight's): 6N. The two products of attention cost 4·h·s a layer forward, 12·h·s with the backward pass: 12·L·h·s. A causal
mask needs half of that. Sources of the terms: Kaplan et al. 2020, section 2.1 (https://arxiv.org/abs/2001.08361);
Chowdhery et al. 2022, appendix B (https://arxiv.org/abs/2204.02311); Narayanan et al. 2021, appendix
(https://arxiv.org/abs/2104.04473).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..errors import UnknownName, UsageError


@dataclass(frozen=True)
class Convention:
    """What a published figure counts. Two figures compare only when their conventions are the same.

    Attributes:
        name: as in the column `convention` of data/published/training.csv.
        formula: for people.
        attention: FLOPs a token, layer, hidden unit and position: 12 for every pair of positions, 6 for the causal half,
            0 where attention is left out.
        layer_passes: 3 passes (forward, two backward products), 4 where a recomputed forward pass counts as work.
        counts_embedding: the input embedding counts as if it were multiplied. It is only looked up.
        counts_positions: so does the table of learned positions.
    """

    name: str
    formula: str
    attention: Literal[0, 6, 12]
    layer_passes: Literal[3, 4] = 3
    counts_embedding: bool = False
    counts_positions: bool = False

    @property
    def is_hfu(self) -> bool:
        """Recomputation is inside the figure: it measures what the hardware did, not what the model needed."""
        return self.layer_passes == 4


FULL_ATTENTION = Convention("6n_12lhs", "6N + 12·L·h·s", 12)
"""Every pair of positions, as if there were no mask. Megatron-LM, nanotron, NeMo 24.12, MaxText until July 2025."""

POSITIONS_COUNTED = Convention("6n_12lhs_positions_counted", "6(N + s·h) + 12·L·h·s", 12, counts_positions=True)
"""llm-foundry: all parameters of a model with tied embeddings, so the table of learned positions is among them."""

CAUSAL_ATTENTION = Convention("6n_6lhs_causal", "6N + 6·L·h·s", 6)
"""Only the half that a causal mask keeps. Megatron-Bridge and NeMo Automodel."""

NO_ATTENTION = Convention("6n", "6N", 0)
"""Weights only: the rule of thumb, and NeMo's fine-tuning pages. At 8k tokens it misses 13 % of a 70 B model's work."""

EMBEDDING_COUNTED = Convention("6n_12lhs_embedding_counted", "6(N + V·h) + 12·L·h·s", 12, counts_embedding=True)
"""All parameters of a model whose embeddings are not tied. torchtitan in 2024, nanoGPT's formula as fms-fsdp used it."""

WITH_RECOMPUTATION = Convention("with_recomputation", "8(N − V·h) + 16·L·h·s + 6·V·h", 12, layer_passes=4)
"""Each layer's forward pass twice, the head's once. Megatron-LM in 2021, BLOOM, InternEvo with checkpointing: it is HFU."""

CONVENTIONS = {
    one.name: one
    for one in (
        FULL_ATTENTION,
        POSITIONS_COUNTED,
        CAUSAL_ATTENTION,
        NO_ATTENTION,
        EMBEDDING_COUNTED,
        WITH_RECOMPUTATION,
    )
}


def convention(name: str) -> Convention:
    """Find a convention by its name. Raises UnknownName with the list."""
    if name not in CONVENTIONS:
        raise UnknownName("convention", name, CONVENTIONS)
    return CONVENTIONS[name]


def _positive(**values: float) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
            raise UsageError(f"{name} must be a finite number above 0; given {value!r}")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The dimensions of a decoder-only transformer. Biases and norms are left out: under 0.1 % together.

    Attributes:
        layers, hidden, heads: as usual.
        kv_heads: heads of keys and values; equal to `heads` without grouped-query attention.
        ffn: width between the products of the feed-forward part.
        vocab: rows of the head (and of the input embedding).
        gated: three products in the feed-forward part (SwiGLU) instead of two.
        tied: the head and the input embedding are one matrix. It is multiplied once, as the head, tied or not.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    gated: bool
    tied: bool = False

    def __post_init__(self) -> None:
        _positive(**{n: getattr(self, n) for n in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")})
        if self.hidden % self.heads or self.heads % self.kv_heads:
            raise UsageError(
                "hidden must be a multiple of heads, and heads of kv_heads; "
                f"given hidden {self.hidden}, heads {self.heads}, kv_heads {self.kv_heads}"
            )

    @property
    def num_params_layers(self) -> int:
        """Matmul weights of all layers: queries, keys, values, output, feed-forward."""
        kv = self.hidden // self.heads * self.kv_heads
        attention = 2 * self.hidden * self.hidden + 2 * self.hidden * kv
        return self.layers * (attention + (3 if self.gated else 2) * self.hidden * self.ffn)

    @property
    def num_params_head(self) -> int:
        return self.vocab * self.hidden

    @property
    def num_params_matmul(self) -> int:
        """N: the layers and the head. Not the input embedding, not positions."""
        return self.num_params_layers + self.num_params_head

    @property
    def num_params(self) -> int:
        """All weights that are stored: the input embedding once more unless it is tied."""
        return self.num_params_matmul + (0 if self.tied else self.num_params_head)

    def flops_per_token(self, seq: int, convention: Convention = FULL_ATTENTION) -> float:
        """FLOPs of one trained token at this sequence length, by a convention."""
        embedding = 0 if self.tied else self.num_params_head
        return flops_per_token(
            self.num_params_matmul,
            layers=self.layers,
            hidden=self.hidden,
            seq=seq,
            convention=convention,
            num_params_head=self.num_params_head,
            num_params_embedding=embedding,
        )


def flops_per_token(
    num_params_matmul: float,
    *,
    layers: int | None = None,
    hidden: int | None = None,
    seq: int | None = None,
    convention: Convention = FULL_ATTENTION,
    num_params_head: float | None = None,
    num_params_embedding: float | None = None,
) -> float:
    """Count the FLOPs of one trained token.

    Args:
        num_params_matmul: N, weights in matrix products, head included; for a mixture of experts the *active* ones.
        layers, hidden, seq: for the attention term; not needed by NO_ATTENTION.
        convention: what counts.
        num_params_head: V·h; needed by WITH_RECOMPUTATION, which does not recompute the head.
        num_params_embedding: weights of the input embedding beside the head (0 if tied); needed by EMBEDDING_COUNTED.

    Returns:
        FLOPs a token, forward and backward.

    Raises:
        UsageError: something that the convention needs is missing, zero, negative or not finite.

    >>> round(flops_per_token(7e9, convention=NO_ATTENTION) / 1e9)
    42
    >>> round(flops_per_token(7e9, layers=32, hidden=4096, seq=8192) / 1e9, 1)
    54.9
    """

    def need(**values: float | None) -> list[float]:
        missing = [name for name, value in values.items() if value is None]
        if missing:
            raise UsageError(f"the convention {convention.name} ({convention.formula}) needs {', '.join(missing)}")
        given = {name: value for name, value in values.items() if value is not None}
        _positive(**given)
        return list(given.values())

    (num_params,) = need(num_params_matmul=num_params_matmul)
    flops = 2 * convention.layer_passes * num_params
    if convention.layer_passes == 4:
        flops -= 2 * need(num_params_head=num_params_head)[0]
    if convention.counts_embedding and num_params_embedding != 0:
        flops += 6 * need(num_params_embedding=num_params_embedding)[0]
    if convention.counts_positions:
        flops += 6 * math.prod(need(hidden=hidden, seq=seq))
    if convention.attention:
        flops += convention.attention * convention.layer_passes / 3 * math.prod(need(layers=layers, hidden=hidden, seq=seq))
    return flops


def mfu(*, tokens_per_s: float, flops_per_token: float, peak_flops: float, num_devices: int = 1) -> float:
    """Give the share of the peak that did work the model needs: tokens/s × FLOPs a token / (devices × peak).

    With a convention that counts recomputation the result is HFU, which recomputing *raises*; MFU it lowers.

    Args:
        tokens_per_s: of all devices together.
        flops_per_token: by a named convention; the result compares only with others of the same one.
        peak_flops: of one device in FLOP/s, dense, for the type of the products.
        num_devices: that shared the work.

    Returns:
        A fraction, not a percentage. Above 1 something is wrong: the peak, the devices or the convention.

    Raises:
        UsageError: an argument is zero, negative or not finite.

    >>> mfu(tokens_per_s=100_000, flops_per_token=42e9, peak_flops=1e15, num_devices=8)
    0.525
    """
    _positive(tokens_per_s=tokens_per_s, flops_per_token=flops_per_token, peak_flops=peak_flops, num_devices=num_devices)
    return tokens_per_s * flops_per_token / (num_devices * peak_flops)
