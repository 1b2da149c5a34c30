"""Which launches a record of this lab needs, and what of it this machine cannot run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import UnknownName, UsageError
from ...record.roles import Role
from ...theory.strategies import STRATEGIES, cheapest_fitting, expected_peak
from ...workloads.gpt import GPTShape
from ..spec import RunPlan
from . import Config, deepspeed, strategies, traps, ways
from .programs import Task, time_strategies, train

ROOM = 1.03
"""The default room: what stage 2 needs by formula, and so much more."""


def sizes(config: Config) -> tuple[int, int]:
    """(parameters, those of the largest wrapped module)."""
    try:
        shape = GPTShape(layers=config.layers, hidden=config.hidden, heads=config.heads, seq=config.seq, vocab=config.vocab)
    except ValueError as error:
        raise UsageError(str(error)) from error
    block = 12 * shape.hidden**2 + 4 * shape.hidden
    rest = 2 * shape.hidden * shape.vocab + shape.seq * shape.hidden + 2 * shape.hidden
    return config.layers * block + rest, max(block, rest)


def element_bytes(config: Config) -> int:
    return 8 if config.dtype == "float64" else 4


def room_bytes(config: Config, ranks: int) -> int:
    """Memory of a device: as set, else what stage 2 needs and a little more."""
    params, largest = sizes(config)
    if config.room:
        return round(config.room * params)
    return round(ROOM * expected_peak("fsdp2-no-reshard", params, largest, ranks, element_bytes(config)))


def choice(config: Config, ranks: int) -> str:
    """The cheapest of torch's strategies that fits by formula; stage 3, which keeps least, where none does."""
    params, largest = sizes(config)
    size = element_bytes(config)
    peaks = {
        name: expected_peak(name, params, largest, ranks, size)
        for name in ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")
    }
    return cheapest_fitting(peaks, room_bytes(config, ranks), "gloo") or "fsdp2-reshard"


def misfit(strategy: str, config: Config, ranks: int) -> str:
    """Why a strategy cannot run here; empty if it can."""
    if strategy == "hsdp" and (ranks % config.replicas or config.replicas < 2 or ranks < 2 * config.replicas):
        return (
            f"hsdp needs two groups or more of two ranks or more; given {ranks} ranks and {config.replicas} replicas; "
            "try --ranks 4 --set replicas=2"
        )
    if strategy in strategies.DEEPSPEED:
        if config.dtype == "float64":
            return "DeepSpeed takes no float64; leave dtype at float32"
        return deepspeed.missing()
    return ""


def task(strategy: str, config: Config, ranks: int, **others: Any) -> Task:
    known = STRATEGIES.get(strategy)
    return Task(
        config=config,
        strategy=strategy,
        stage=known.stage if known else -1,
        replicas=config.replicas if strategy == "hsdp" else 1,
        room_bytes=room_bytes(config, ranks),
        settings=_settings(strategy, config),
        **others,
    )


def _settings(strategy: str, config: Config) -> tuple[tuple[str, Any], ...]:
    if strategy == "deepspeed-3":
        kept = config.live_parameters
        return (("persistence_threshold", min(kept, 100_000)), ("max_live_parameters", kept))
    return ()


def plan(variant: str | Callable[..., Any], config: Config, ranks: int) -> list[RunPlan]:
    """The launches of a record: the strategy, the cheapest that fits, one process; a trap alone; or all strategies."""
    sizes(config)  # refuses what cannot be
    if callable(variant):
        raise UsageError("this lab runs its variants by name; the exercise's function goes to lab.check")
    if variant in traps.PROGRAMS:
        return traps.plan(variant, task("fsdp2-reshard", config, ranks), ranks)
    if variant in ways.WAYS:
        return ways.plan(variant, task("fsdp2-reshard", config, ranks), ranks)
    if variant == "compare":
        return _compare(config, ranks)
    cheap = choice(config, ranks)
    strategy = {"broken": "fsdp2-reshard", "fixed": cheap, "deepspeed-defaults": "deepspeed-3"}.get(variant, variant)
    if why := misfit(strategy, config, ranks):
        raise UsageError(why)
    plans = [_launch(Role.VARIANT, task(strategy, config, ranks), ranks)]
    if cheap != strategy and ranks > 1:
        plans.append(_launch(cheap, task(cheap, config, ranks), ranks))
    return [*plans, _single(config, ranks)]


def _launch(role: str, what: Task, ranks: int) -> RunPlan:
    return RunPlan(role=role, program=train, task=what, ranks=ranks)


def _single(config: Config, ranks: int) -> RunPlan:
    return RunPlan(role=Role.SINGLE, program=train, task=task("alone", config, ranks, stand_for=ranks), ranks=1, group=False)


def _compare(config: Config, ranks: int) -> list[RunPlan]:
    wanted = [name.strip() for name in config.only.split(",") if name.strip()] or list(STRATEGIES)
    for name in wanted:
        if name not in STRATEGIES:
            raise UnknownName("strategy", name, STRATEGIES)
    why = {name: misfit(name, config, ranks) for name in STRATEGIES if name in wanted}
    left_out = "; ".join(f"{name}: {reason}" for name, reason in why.items() if reason)
    tasks = [task(name, config, ranks, left_out=left_out) for name, reason in why.items() if not reason]
    if not tasks:
        raise UsageError(f"none of these can run here: {left_out}")
    fast = RunPlan(role=Role.FAST, program=time_strategies, task=tuple(tasks), ranks=ranks, network=False)
    return [*(_launch(what.strategy, what, ranks) for what in tasks), fast, _single(config, ranks)]


def source(variant: str) -> str:
    """The source of a variant, as the lesson shows it."""
    if variant in traps.PROGRAMS:
        return traps.source(variant)
    if variant in ways.WAYS:
        return ways.source(variant)
    shown = {"broken": "fsdp2-reshard", "fixed": "fsdp2-no-reshard", "compare": "fsdp2-reshard"}.get(variant, variant)
    return strategies.source("deepspeed-3" if shown == "deepspeed-defaults" else shown)
