"""Measures of a training step's arithmetic: three numerators, two denominators, busy beside useful."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...record.quantity import Quantity, share
from ...record.roles import Role
from ...record.schema import Record, Run, Step
from ...theory.flops import CAUSAL_ATTENTION, FULL_ATTENTION, NO_ATTENTION, flops_per_token, mfu
from ..runs import lane_shares


def timed_steps(run: Run) -> list[Step]:
    """The steps after those that warm up."""
    return list(run.ranks[0].steps[int(run.fact("warm_up", 0)) :])  # pyright: ignore[reportArgumentType]


def step_seconds(run: Run) -> np.ndarray:
    """Wall seconds of each timed step, fetching included."""
    return np.array([(step.end_ns - step.start_ns) / 1e9 for step in timed_steps(run)])


def period_s(run: Run) -> float:
    """Seconds from one timed step's end to the next one's, the median: what a step costs in all, waiting included."""
    ends = np.array([step.end_ns for step in run.ranks[0].steps[max(0, int(run.fact("warm_up", 0)) - 1) :]])  # pyright: ignore[reportArgumentType]
    return float(np.median(np.diff(ends)) / 1e9) if len(ends) > 1 else float("nan")


@dataclass(frozen=True)
class Ceiling:
    """The best that a device was seen to do.

    Attributes:
        flops_per_s: rate of the best matrix product in the run's precision.
        said: which measurement that is.
        doubts: why it may be too low.
    """

    flops_per_s: float
    said: str
    doubts: tuple[str, ...] = ()


def ceiling(record: Record) -> Ceiling | None:
    """What a run's arithmetic is held against: the products measured in this record; else the machine's baseline, as lab 00
    kept it, which ranks that share the cores share too; None where there is neither.
    """
    run = record.runs.get(Role.CEILING)
    if run is not None:
        flops_per_step = float(run.fact("flops_per_step", 0.0))  # pyright: ignore[reportArgumentType]
        best = min(step_seconds(run), default=0.0)
        return Ceiling(flops_per_step / float(best), "best matrix product") if flops_per_step > 0 and best > 0 else None
    kept, precision = record.baseline, str(record.run.fact("precision", ""))
    if kept is None or precision not in kept.matmul_flops_per_s:
        return None
    sharing = record.run.world_size if kept.device_kind == "cpu" else 1
    said = f"best matrix product of the baseline of {kept.date[:10]}" + (
        f", of which a rank has 1/{sharing}" * (sharing > 1)
    )
    said += "".join(f"; {doubt}" for doubt in kept.doubts)
    return Ceiling(kept.matmul_flops_per_s[precision] / sharing, said, tuple(kept.doubts))


def trains_nothing(run: Run) -> bool:
    """Whether updates of weights were watched for, on rank 0, and none was made in any step.

    A program whose updates nobody watched (no fact `watches_updates`, no count `updates`) is not said to train nothing.
    """
    steps = run.ranks[0].steps
    watched = bool(run.fact("watches_updates", False)) or any("updates" in step.counts for step in steps)
    return watched and bool(steps) and not any(step.counts.get("updates", 0) for step in steps)


def tokens_per_second(run: Run) -> float | None:
    """Tokens trained a second, over the timed steps; None for a program that trains nothing, or does not tell tokens."""
    steps = timed_steps(run)
    if not steps or "tokens" not in steps[0].scalars or trains_nothing(run):
        return None
    return steps[0].scalar("tokens") / period_s(run)


def busy_share(run: Run) -> float | None:
    """Processor time of the rank / (wall time x its threads), over the timed steps: what `top` would show as busy.

    For a GPU this is the host's share, not the device's. None where a step does not tell its processor time (`cpu_s`).
    """
    return _share_of_cores(run, "cpu_s")


def queued_share(run: Run) -> float | None:
    """The like for the time in which a thread of the rank could have run and other programs had the core (`queued_s`)."""
    return _share_of_cores(run, "queued_s")


def _share_of_cores(run: Run, scalar: str) -> float | None:
    steps, cores = timed_steps(run), run.ranks[0].head.threads
    if not steps or not all(scalar in step.scalars for step in steps):
        return None
    wall = (steps[-1].end_ns - run.ranks[0].steps[max(0, int(run.fact("warm_up", 0)) - 1)].end_ns) / 1e9  # pyright: ignore[reportArgumentType]
    return sum(step.scalar(scalar) for step in steps) / (wall * cores) if wall > 0 and cores > 0 else None


def flops_by_convention(run: Run) -> dict[str, float]:
    """FLOPs of one trained token: by formula in three conventions, and as torch's counter saw the real step."""
    matmul, layers, hidden, seq = (int(run.fact(name, 0)) for name in ("matmul_params", "layers", "hidden", "seq"))  # pyright: ignore[reportArgumentType]
    dimensions = {"layers": layers, "hidden": hidden, "seq": seq}
    return {
        "6n": flops_per_token(matmul, convention=NO_ATTENTION),
        "attention": flops_per_token(matmul, convention=FULL_ATTENTION, **dimensions),
        "causal": flops_per_token(matmul, convention=CAUSAL_ATTENTION, **dimensions),
        "counted": float(run.fact("counted_flops_per_token", 0.0)),  # pyright: ignore[reportArgumentType]
        "executed": float(run.fact("executed_flops_per_token", 0.0)),  # pyright: ignore[reportArgumentType]
    }


def declares_flops(run: Run) -> bool:
    """Whether it is known what arithmetic of a step a model needs: without that, a ceiling alone says nothing."""
    return all(run.fact(name, 0) for name in ("matmul_params", "layers", "hidden", "seq")) or trains_nothing(run)


def utilisation(record: Record, run: Run | None = None, convention: str = "attention") -> float | None:
    """MFU of a run against the ceiling of its record, attention counted in full; None where it cannot be said.

    Useful is the arithmetic of tokens that weights are updated from: a loop that trains nothing has an MFU of 0.
    """
    run = run or record.run
    best, tokens = ceiling(record), tokens_per_second(run)
    if best is None:
        return None
    if trains_nothing(run):
        return 0.0
    if tokens is None or not declares_flops(run):
        return None
    return mfu(tokens_per_s=tokens, flops_per_token=flops_by_convention(run)[convention], peak_flops=best.flops_per_s)


def utilisation_spread(record: Record) -> tuple[float, float] | None:
    """MFU of the slowest and of the fastest quarter of the steps: what noise leaves open."""
    middle = utilisation(record)
    seconds = step_seconds(record.run)
    if middle is None or len(seconds) < 2:
        return None
    slow, typical, fast = np.quantile(seconds, [0.75, 0.5, 0.25])
    return float(middle * typical / slow), float(middle * typical / fast)


CEILING_TOO_LOW = "not measurable here: the run did more than the best product did, so the ceiling was measured too low"


def _of_ceiling(value: float) -> Quantity:
    return share(value, "of the ceiling", why=CEILING_TOO_LOW)


def mfu_measures(record: Record) -> dict[str, Quantity]:
    """The measures of the lab, by name. Every MFU is a share of a measured ceiling, its own or lab 00's."""
    run, found = record.run, {}
    if not timed_steps(run):
        return {}
    tokens, best = tokens_per_second(run), ceiling(record)
    found["step_time_s"] = Quantity(period_s(run), "s")
    if best is not None:
        found["ceiling"] = Quantity(best.flops_per_s / 1e9, f"GFLOP/s, {best.said}")
    if tokens is not None:
        flops = flops_by_convention(run)
        found["tokens_per_s"] = Quantity(tokens, "tokens/s")
        found["flops_per_token_6n"] = Quantity(flops["6n"] / 1e6, "MFLOP", "quoted formula")
        found["flops_per_token_attention"] = Quantity(flops["attention"] / 1e6, "MFLOP", "quoted formula")
        found["flops_per_token_counted"] = Quantity(flops["counted"] / 1e6, "MFLOP")
        if best is not None:
            for name, convention in (("6n", "6n"), ("attention", "attention"), ("causal", "causal"), ("counted", "counted")):
                if flops[convention] > 0:
                    found[f"mfu_{name}"] = _of_ceiling(utilisation(record, convention=convention) or 0.0)
            if flops["executed"] > 0:
                found["hfu"] = _of_ceiling(utilisation(record, convention="executed") or 0.0)
    elif best is not None and trains_nothing(run):
        found["mfu_attention"] = Quantity(0.0, "of the ceiling")
        arithmetic = float(run.fact("elementwise_flops_per_step", 0.0))  # pyright: ignore[reportArgumentType]
        if arithmetic > 0:
            found["hfu"] = _of_ceiling(arithmetic / period_s(run) / best.flops_per_s)
    busy, queued = busy_share(run), queued_share(run)
    if busy is not None:
        found["busy_share"] = share(busy, "of the cores' time")
    if queued is not None:
        found["queued_share"] = share(queued, "of the cores' time, ready to run while other programs had the core")
    found["data_share"] = Quantity(lane_shares(run.ranks[0]).get("data", 0.0), "of step time")
    if Role.TUNED in record.runs and tokens is not None:
        other = tokens_per_second(record.runs[Role.TUNED])
        found["speed_of_tuned"] = Quantity((other or 0.0) / tokens, "times this run's tokens/s")
    return found
