"""The ways to divide training state that lab 06 compares: which stage each stands for, what each costs where. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from .zero import traffic


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One implementation of a stage.

    Attributes:
        name: as in a variant's name.
        by: "torch" or "deepspeed".
        stage: of ZeRO that it stands for; 0 is plain data parallelism.
        gathers: passes over all weights that it sends around in a step (all-gathers and broadcasts).
        all_reduces, reduce_scatters: passes over all gradients.
        summary: one line.
    """

    name: str
    by: str
    stage: int
    gathers: int
    all_reduces: int
    reduce_scatters: int
    summary: str

    @property
    def sent_units(self) -> int:
        """What a rank sends by ring algorithms, in units of Ψ(W-1)/W."""
        return self.gathers + 2 * self.all_reduces + self.reduce_scatters

    @property
    def gloo_units(self) -> int:
        """What it sends on gloo, whose reduce-scatter is an all-reduce inside."""
        return self.gathers + 2 * (self.all_reduces + self.reduce_scatters)

    def units(self, backend: str) -> int:
        """What it sends on a backend."""
        return self.gloo_units if backend == "gloo" else self.sent_units

    def paper_units(self, params: float, ranks: int) -> float:
        """What the paper has a rank send at this stage, in elements."""
        return traffic(params, ranks, self.stage)


def _torch(name: str, stage: int, gathers: int, all_reduces: int, reduce_scatters: int, summary: str) -> Strategy:
    return Strategy(
        name=name, by="torch", stage=stage, gathers=gathers, all_reduces=all_reduces, reduce_scatters=reduce_scatters,
        summary=summary,
    )  # fmt: skip


def _deepspeed(stage: int, gathers: int, all_reduces: int, reduce_scatters: int, summary: str) -> Strategy:
    return Strategy(
        name=f"deepspeed-{stage}", by="deepspeed", stage=stage, gathers=gathers, all_reduces=all_reduces,
        reduce_scatters=reduce_scatters, summary=summary,
    )  # fmt: skip


STRATEGIES = {
    strategy.name: strategy
    for strategy in (
        _torch("ddp", 0, 0, 1, 0, "DistributedDataParallel, gradients kept in its buckets: every rank keeps everything"),
        _torch("ddp-default", 0, 0, 1, 0, "DistributedDataParallel as it comes: gradients and buckets, a copy each"),
        _torch("zero1", 1, 1, 1, 0, "ZeroRedundancyOptimizer: optimizer state divided by whole tensors"),
        _torch("fsdp2-no-reshard", 2, 1, 0, 1, "FSDP2, weights stay gathered from forward to backward"),
        _torch("fsdp2-reshard", 3, 2, 0, 1, "FSDP2, weights are given up after use and gathered again"),
        _torch("hsdp", 3, 2, 1, 1, "FSDP2 on a mesh: sharded within a host, replicated between hosts"),
        _deepspeed(1, 1, 1, 0, "DeepSpeed stage 1"),
        _deepspeed(2, 1, 1, 0, "DeepSpeed stage 2"),
        _deepspeed(3, 2, 0, 1, "DeepSpeed stage 3, told to keep nothing gathered"),
    )
}
"""hsdp's passes are over other groups each; its units are not comparable and are never used to rank it."""


def cheapest_fitting(peak_bytes: dict[str, float], room_bytes: float, backend: str) -> str | None:
    """The strategy that sends the least among those whose peak fits; of equals the simplest (the lowest stage).

    >>> peaks = {name: expected_peak(name, 1000, 100, 4) for name in ("ddp", "zero1", "fsdp2-reshard")}
    >>> [cheapest_fitting(peaks, room_bytes, "nccl") for room_bytes in (16_000, 10_000, 6_000, 1_000)]
    ['ddp', 'zero1', 'fsdp2-reshard', None]
    """
    fitting = [STRATEGIES[name] for name, peak in peak_bytes.items() if peak <= room_bytes and name in STRATEGIES]
    best = min(fitting, key=lambda s: (s.units(backend), s.stage), default=None)
    return best.name if best else None


def expected_peak(name: str, params: float, largest_group: float, ranks: int, element_bytes: int = 4) -> float:
    """Bytes that torch's strategies hold at the most, by formula, with `largest_group` weights wrapped together.

    FSDP2's gradients take the place of the weights that it gives up in the backward pass, module by module. With resharding
    it holds the weights of a module, of the next, and what a collective works on.
    """
    share = params / ranks
    elements = {
        "ddp": 4 * params,
        "ddp-default": 5 * params,
        "zero1": 2 * params + 2 * share,
        "fsdp2-no-reshard": 3 * share + params + max(share, largest_group),
        "fsdp2-reshard": 4 * share + 4 * largest_group,
    }[name]
    return elements * element_bytes
