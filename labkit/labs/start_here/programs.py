"""The launches of a survey, and the programs that need a group: the link, and ranks that do nothing."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from ...ranks.backend import usable_cores
from ...ranks.context import RankContext
from ...record.roles import Role
from ...theory.ceilings import MIN_SIZES
from ..spec import RunPlan
from . import Config
from .compute import measure_compute
from .storage import measure_storage

LINK_SHARE = 0.35
"""Of the budget; the rest is for products, copies and storage."""

SMALLEST_BYTES = 1024
STEP = 4
"""From one message size to the next."""

REPEATS, FEWEST = 7, 3
"""Of each size: as a rule, and where the time is over."""

PATIENCE, PATIENCE_S = 3.0, 10.0
"""As many times as long as planned the link may take, and so many seconds in any case."""

WARM_UP = 2


def plan(_survey: str, config: Config, ranks: int) -> list[RunPlan]:
    """The launches, those of a group first: under an outer launcher all ranks take part in these, then rank 0 goes on alone.

    The first launch may have to wait for the warm server; so those that are timed come after it.
    """
    plans = [RunPlan(role=Role.LINK, program=measure_link, task=config, ranks=ranks)]
    if config.parts == "link":
        return plans
    plans += [
        RunPlan(role=Role.LAUNCH.numbered(number), program=do_nothing, task=config, ranks=ranks)
        for number in range(1, config.launches + 1)
    ]
    cores = usable_cores()
    plans.append(RunPlan(role=Role.COMPUTE, program=measure_compute, task=config, ranks=1, group=False, threads=cores))
    plans.append(RunPlan(role=Role.STORAGE, program=measure_storage, task=config, ranks=1, group=False, threads=cores))
    return plans


def do_nothing(context: RankContext) -> None:
    """Join, and leave: what remains is the time that a launch takes. *Called on* every rank.

    Ranks that torchrun had started before were not launched here, and their time says nothing.
    """
    context.probe.declare(launched_here=multiprocessing.parent_process() is not None)


def measure_link(context: RankContext) -> None:
    """Time all-reduces of growing messages. *Called on* every rank; a single one sends nothing and measures nothing.

    Each repeat is a row of all-reduces, one after another without a barrier: a rank cannot be ahead of the others by more
    than one, and the cost of setting out together is shared by the row. Rounds over all sizes spread a disturbance.

    Collectives: for each size two warm-ups, a pilot and all-reduces of its time; then the repeats, a barrier before each,
    and from the fourth round on an all-reduce of the time that is gone.
    """
    config: Config = context.task
    gpus = torch.cuda.device_count() if context.device.type == "cuda" else 0
    context.probe.declare(cores=usable_cores(), num_gpus=gpus)
    if context.world_size < 2:
        return
    sizes, started = message_sizes(config.max_message_mib * 2**20), time.monotonic()
    budget_s = config.budget_s * LINK_SHARE
    messages, rows = {}, {}
    for size in sizes:
        messages[size] = torch.zeros(size // 4, device=context.device)
        rows[size] = _row_length(messages[size], budget_s / len(sizes) / REPEATS, context)
        if len(rows) >= MIN_SIZES and _longest(time.monotonic() - started, context) > max(budget_s, PATIENCE_S):
            break  # a slow link, or many ranks to a core: fewer sizes, rather than no end
    context.expect_steps(REPEATS * len(rows))
    for repeat in range(REPEATS):
        if repeat >= FEWEST and _longest(time.monotonic() - started, context) > max(PATIENCE * budget_s, PATIENCE_S):
            break
        for size, message in messages.items():
            _repeat(context, message, rows[size])


def message_sizes(largest_bytes: int) -> list[int]:
    """1 KiB, 4 KiB, … up to `largest_bytes`."""
    sizes = [SMALLEST_BYTES]
    while sizes[-1] * STEP <= largest_bytes:
        sizes.append(sizes[-1] * STEP)
    return sizes


def _row_length(message: torch.Tensor, budget_s: float, context: RankContext) -> int:
    """How many all-reduces fill a repeat's share of the budget, the same on every rank."""
    for _ in range(WARM_UP):
        dist.all_reduce(message)
    pilot_s = _longest(_seconds(lambda: dist.all_reduce(message), context.device), context)
    return int(max(1, min(100, budget_s / max(pilot_s, 1e-6))))


def _longest(seconds: float, context: RankContext) -> float:
    """The longest of all ranks' times, the same number on each, so that all decide alike. Collectives: one all-reduce."""
    longest = torch.tensor([seconds], device=context.device)
    dist.all_reduce(longest, op=dist.ReduceOp.MAX)
    return float(longest.item())


def _repeat(context: RankContext, message: torch.Tensor, row: int) -> None:
    def all_reduces() -> None:
        for _ in range(row):
            dist.all_reduce(message)

    probe = context.probe
    dist.barrier()
    probe.begin_step()
    with probe.span("all_reduce", "comm"):
        seconds = _seconds(all_reduces, context.device)
    probe.scalar("seconds", seconds / row)
    probe.count("bytes", message.numel() * message.element_size())
    probe.count("operations", row)
    probe.end_step()


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """How long the work takes, to its end: a collective on a GPU returns before it is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


SHOWN = {"survey": sys.modules[__name__]}
"""All of this file: a survey has no variants."""
