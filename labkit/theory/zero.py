"""The arithmetic of ZeRO: bytes of state and elements of traffic by stage, what fits, what is cheapest. No torch.

Formulas: Rajbhandari, Rasley, Ruwase, He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2019
(arXiv:1910.02054): section 3.1 and figure 1 for the state (mixed-precision Adam, K = 12), section 7 for the traffic. In
fp32 a parameter, its gradient and Adam's two moments take 4 + 4 + 8 bytes. Psi is the number of parameters, W of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import UnknownName, UsageError
from ..words import plural

STAGES = (0, 1, 2, 3)
"""0 is plain data parallelism: every rank keeps everything."""

STAGE_NAMES = {0: "DDP", 1: "ZeRO-1", 2: "ZeRO-2", 3: "ZeRO-3"}


@dataclass(frozen=True)
class Recipe:
    """Bytes a parameter that training keeps.

    Attributes:
        parameters, gradients: in the precision of the arithmetic.
        state: of the optimizer, an fp32 copy of the weights included where there is one.
    """

    parameters: float
    gradients: float
    state: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.state


RECIPES = {
    "fp32 Adam": Recipe(4, 4, 8),
    "mixed Adam": Recipe(2, 2, 12),
    "weights only": Recipe(2, 0, 0),
}
"""`weights only` is inference in 16 bits: it is what a claim about "a model that needs 810 GB" counts."""


def recipe(name: str) -> Recipe:
    """A recipe by its name.

    Raises:
        UnknownName: with the valid names.
    """
    if name not in RECIPES:
        raise UnknownName("recipe", name, RECIPES)
    return RECIPES[name]


@dataclass(frozen=True)
class State:
    """Bytes that one rank keeps, by category."""

    parameters: float
    gradients: float
    optimizer_state: float

    @property
    def total(self) -> float:
        return self.parameters + self.gradients + self.optimizer_state


def _check(params: float, ranks: int, stage: int) -> None:
    if stage not in STAGES:
        raise UsageError(f"stage must be one of 0 (plain data parallelism), 1, 2, 3; given {stage!r}")
    if not params > 0:
        raise UsageError(f"params must be more than 0; given {params!r}")
    if isinstance(ranks, bool) or ranks != int(ranks) or ranks < 1:
        raise UsageError(f"ranks must be a whole number from 1 on; given {ranks!r}")


def state(params: float, ranks: int, stage: int, kept: Recipe | str = "fp32 Adam") -> State:
    """Bytes of state of one rank by the paper: 16Ψ, 8Ψ + 8Ψ/W, 4Ψ + 12Ψ/W and 16Ψ/W in fp32.

    In mixed precision 16Ψ, 4Ψ + 12Ψ/W, 2Ψ + 14Ψ/W and 16Ψ/W.

    >>> [round(state(7.5e9, 64, stage, "mixed Adam").total / GB, 1) for stage in STAGES]  # figure 1 of the paper
    [120.0, 31.4, 16.6, 1.9]
    """
    _check(params, ranks, stage)
    kept = recipe(kept) if isinstance(kept, str) else kept
    share = params / ranks
    return State(
        kept.parameters * (share if stage >= 3 else params),
        kept.gradients * (share if stage >= 2 else params),
        kept.state * (share if stage >= 1 else params),
    )


def traffic(params: float, ranks: int, stage: int) -> float:
    """Elements that one rank sends in a step by the paper: 2Ψ(W-1)/W, and 3Ψ(W-1)/W for stage 3.

    >>> traffic(1e9, 4, 2), traffic(1e9, 4, 3)
    (1500000000.0, 2250000000.0)
    """
    _check(params, ranks, stage)
    return (3 if stage == 3 else 2) * params * (ranks - 1) / ranks


@dataclass(frozen=True)
class Offloaded:
    """An optimizer in host memory: what one rank moves there, and what its host holds.

    Attributes:
        host_bytes: the optimizer's state of this rank, in its host's memory.
        moved_bytes: over the rank's bus in a step: gradients down, and weights up.
    """

    host_bytes: float
    moved_bytes: float


def offloaded(params: float, ranks: int, stage: int, kept: Recipe | str = "mixed Adam") -> Offloaded:
    """The optimizer's state in host memory, updated there: Ren et al., "ZeRO-Offload", 2021 (arXiv:2101.06840).

    Each rank moves what it updates: its share from stage 1 on, and everything without a stage.

    >>> offloaded(7e9, 8, 2).moved_bytes / GB, offloaded(7e9, 8, 2).host_bytes / GB
    (3.5, 10.5)
    """
    _check(params, ranks, stage)
    kept = recipe(kept) if isinstance(kept, str) else kept
    own = params / ranks if stage >= 1 else params
    return Offloaded(kept.state * own, (kept.gradients + kept.parameters) * own)


def hsdp_state(params: float, ranks: int, replicas: int, kept: Recipe | str = "fp32 Adam") -> State:
    """Bytes of one rank where `replicas` groups each shard everything among themselves."""
    _divides(ranks, replicas)
    return state(params, ranks // replicas, 3, kept)


def hsdp_traffic(params: float, ranks: int, replicas: int) -> tuple[float, float]:
    """(inside a group, between the groups): elements that one rank sends: 3Ψ(S-1)/S and 2(Ψ/S)(R-1)/R."""
    _divides(ranks, replicas)
    shards = ranks // replicas
    return traffic(params, shards, 3), 2 * params / shards * (replicas - 1) / replicas


def _divides(ranks: int, replicas: int) -> None:
    if replicas < 1 or ranks % replicas:
        raise UsageError(
            f"ranks must be a multiple of the replicas; given {plural(ranks, 'rank')} and {plural(replicas, 'replica')}"
        )


@dataclass(frozen=True)
class Choice:
    """What a stage takes of a device.

    Attributes:
        stage: 0 to 3.
        state_bytes: of one rank, by the paper.
        fits: whether that and what else was asked for is within the memory.
        sent_elements: of one rank in a step, by the paper.
    """

    stage: int
    state_bytes: float
    fits: bool
    sent_elements: float


def choices(
    params: float, ranks: int, memory_bytes: float, *, kept: Recipe | str = "mixed Adam", reserve_bytes: float = 0.0
) -> list[Choice]:
    """All stages. `reserve_bytes`: of activations, buffers and fragments, which no stage shards."""
    found = []
    for stage in STAGES:
        total = state(params, ranks, stage, kept).total
        found.append(Choice(stage, total, total + reserve_bytes <= memory_bytes, traffic(params, ranks, stage)))
    return found


def cheapest(
    params: float, ranks: int, memory_bytes: float, *, kept: Recipe | str = "mixed Adam", reserve_bytes: float = 0.0
) -> Choice | None:
    """The stage that fits and sends the least; of equals the lowest, which is the simplest. None where none fits.

    >>> cheapest(7e9, 8, 80 * GB).stage, cheapest(34e9, 8, 80 * GB).stage, cheapest(72e9, 8, 80 * GB)
    (1, 3, None)
    """
    fitting = [c for c in choices(params, ranks, memory_bytes, kept=kept, reserve_bytes=reserve_bytes) if c.fits]
    return min(fitting, key=lambda choice: (choice.sent_elements, choice.stage), default=None)


def fewest_ranks(
    params: float, memory_bytes: float, stage: int = 3, *, kept: Recipe | str = "mixed Adam", reserve_bytes: float = 0.0
) -> int | None:
    """How many devices it takes at the least; None where no number does.

    >>> fewest_ranks(405e9, 80 * GB, kept="mixed Adam"), fewest_ranks(405e9, 80 * GB, kept="weights only")
    (81, 11)
    """
    room = memory_bytes - reserve_bytes
    parts = state(params, 1, 0, kept)
    whole = state(params, 10**12, stage, kept).total  # what stays, however many share the rest
    sharded = parts.total - whole
    if room <= 0 or (room <= whole and stage < 3):
        return None
    guess = max(1, int(sharded / max(room - whole, 1e-9)))
    for ranks in range(max(1, guess - 2), guess + 4):
        if state(params, ranks, stage, kept).total <= room:
            return ranks
    return None


MODELS = {"7 B": 7e9, "13 B": 13e9, "34 B": 34e9, "72 B": 72e9, "175 B": 175e9, "405 B": 405e9}
DEVICES = (8, 16, 32, 64, 128, 256, 512, 1024)
"""What the table of what-if asks about: common sizes, on devices of 80 GB."""

GB = 1e9

RESERVE_GB = 10.0
"""Memory of a device of 80 GB that is set aside unless told otherwise, for activations, buffers and fragments: the
table of what would fit begins with it."""


def what_if(
    models: Iterable[str] = MODELS,
    devices: Iterable[int] = DEVICES,
    *,
    memory_bytes: float = 80 * GB,
    kept: Recipe | str = "mixed Adam",
    reserve_bytes: float = 0.0,
) -> dict[tuple[str, int], Choice | None]:
    """By model and number of devices: the cheapest stage that fits, or None. By formula: simulated."""
    return {
        (model, ranks): cheapest(MODELS[model], ranks, memory_bytes, kept=kept, reserve_bytes=reserve_bytes)
        for model in models
        for ranks in devices
    }
