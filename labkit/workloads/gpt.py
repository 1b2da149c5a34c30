"""A byte-level GPT, small enough for a laptop: pre-norm blocks, learned positions, an untied head.

Shape suffixes: B batch, S sequence, D hidden, H heads, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from .text import VOCAB

ATTENTION = ("naive", "sdpa")


@dataclass(frozen=True, kw_only=True)
class GPTShape:
    """The dimensions that decide how many FLOPs a token costs."""

    layers: int = 2
    hidden: int = 128
    heads: int = 4
    seq: int = 256
    vocab: int = VOCAB

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"hidden must be a multiple of heads; given {self.hidden} and {self.heads}")

    @property
    def matmul_params(self) -> int:
        """Weights that multiply activations: 12·L·D² and the head's D·V; no embeddings, positions, norms or biases."""
        return 12 * self.layers * self.hidden**2 + self.hidden * self.vocab


class Attention(nn.Module):
    """Causal self-attention, written out (`naive`: the S×S matrix is made) or fused (`sdpa`)."""

    def __init__(self, shape: GPTShape, attention: str) -> None:
        super().__init__()
        self.heads, self.attention = shape.heads, attention
        self.qkv = nn.Linear(shape.hidden, 3 * shape.hidden, bias=False)
        self.out = nn.Linear(shape.hidden, shape.hidden, bias=False)

    def forward(self, x_BSD: torch.Tensor) -> torch.Tensor:
        batch, seq, hidden = x_BSD.shape
        q, k, v = (
            part.view(batch, seq, self.heads, hidden // self.heads).transpose(1, 2)
            for part in self.qkv(x_BSD).split(hidden, dim=-1)
        )
        if self.attention == "sdpa":
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores_BHSS = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            future = torch.ones(seq, seq, dtype=torch.bool, device=x_BSD.device).triu(1)
            mixed = scores_BHSS.masked_fill(future, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, seq, hidden))


class Block(nn.Module):
    """Attention and a plain MLP of four times the width, each behind a norm and beside a shortcut."""

    def __init__(self, shape: GPTShape, attention: str) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(shape.hidden), nn.LayerNorm(shape.hidden)
        self.mix = Attention(shape, attention)
        self.mlp = nn.Sequential(
            nn.Linear(shape.hidden, 4 * shape.hidden, bias=False),
            nn.GELU(),
            nn.Linear(4 * shape.hidden, shape.hidden, bias=False),
        )

    def forward(self, x_BSD: torch.Tensor) -> torch.Tensor:
        x_BSD = x_BSD + self.mix(self.norm_attention(x_BSD))
        return x_BSD + self.mlp(self.norm_mlp(x_BSD))


class GPT(nn.Module):
    """tokens [B, S] -> logits [B, S, V].

    Args:
        shape: the dimensions.
        attention: "naive" or "sdpa".
        recompute: keep only each block's input for the backward pass, and compute the rest again there.
    """

    def __init__(self, shape: GPTShape, *, attention: str = "sdpa", recompute: bool = False) -> None:
        super().__init__()
        if attention not in ATTENTION:
            raise ValueError(f"no attention {attention!r}; there are: {', '.join(ATTENTION)}")
        self.shape, self.recompute = shape, recompute
        self.embed = nn.Embedding(shape.vocab, shape.hidden)
        self.position = nn.Embedding(shape.seq, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape, attention) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocab, bias=False)

    def forward(self, tokens_BS: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens_BS.shape[1], device=tokens_BS.device)
        x_BSD = self.embed(tokens_BS) + self.position(places)
        for block in self.blocks:
            if self.recompute:
                x_BSD = checkpoint(block, x_BSD, use_reentrant=False)
            else:
                x_BSD = block(x_BSD)
        return self.head(self.norm(x_BSD))


def token_loss(logits_BSV: torch.Tensor, targets_BS: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over all tokens."""
    return functional.cross_entropy(logits_BSV.flatten(0, 1), targets_BS.flatten())


def build_gpt(shape: GPTShape, *, seed: int, attention: str, recompute: bool) -> GPT:
    """A GPT whose initial weights depend on the seed alone; the caller's RNG is untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT(shape, attention=attention, recompute=recompute)
