"""Check bucketed data parallelism that a learner wrote: beside torch's own, on real ranks, for a module that is drawn.

On two ranks the sum of two numbers is the same in either order and a half is exact, so gradients have to equal those of
DistributedDataParallel to the bit. On more ranks a sum depends on the order in which a backend adds, and that depends on
where a number lies in its bucket: there they have to agree up to rounding.

Shapes: the module that is drawn maps [batch, features] to [batch, outputs]; a bucket is flat, [elements of its parameters].
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ...errors import LabkitError
from ...ranks.context import RankContext
from ...watch.traffic import ALL_REDUCE, watch_collectives
from ...words import plural
from ..opened import OpenedLab

STEPS, WATCHED = 3, 1
"""Steps of a case, and the one in which rank 1 holds the others up."""

ROUNDING = 2e-5
PATIENCE_S = 10.0
"""How long rank 1 waits for rank 0's backward pass, before it goes on."""


@dataclass(frozen=True)
class Case:
    """One module and one cap.

    Attributes:
        ranks: W.
        widths: of the layers, one after the other.
        frozen: the layer that is not trained.
        cap_bytes: at which a bucket is full.
        seed: of weights and data.
    """

    ranks: int
    widths: tuple[int, ...]
    frozen: int
    cap_bytes: int
    seed: int

    @property
    def said(self) -> str:
        return (
            f"on {self.ranks} ranks, {plural(len(self.widths) - 1, 'layer')} of which one is frozen, "
            f"buckets of {self.cap_bytes:,} bytes"
        )


def drawn_cases(draw: random.Random) -> list[Case]:
    """A case for two ranks, where bits decide, and one for three, where a rule made for two shows."""
    return [_drawn(draw, ranks) for ranks in (2, 3)]


def _drawn(draw: random.Random, ranks: int) -> Case:
    widths = tuple(draw.randrange(17, 32, 2) for _ in range(draw.randint(13, 16)))
    sizes = [4 * (rows * columns + rows) for columns, rows in itertools.pairwise(widths)]
    frozen = draw.randrange(1, len(sizes) - 1)
    trained = sum(sizes) - sizes[frozen]
    return Case(ranks, widths, frozen, round(trained / draw.uniform(4.3, 5.7)), draw.randrange(2**31))


@dataclass
class Seen:
    """What one rank saw in one step.

    Attributes:
        gradients: of the trained parameters, flat, as the optimizer would find them.
        sent: (kind, bytes, gradients that were there by then) of each collective.
        by_itself: whether rank 0 came through its backward pass while rank 1 had not begun to reduce.
    """

    gradients: np.ndarray
    sent: list[tuple[str, int, int]]
    by_itself: bool = True


def check(function: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with a learner's `my_ddp`, in sentences; an empty list when nothing is."""
    for case in drawn_cases(random.Random(seed)):
        try:
            values = lab.try_on_ranks(both, (function, case), ranks=case.ranks, seed=case.seed)
        except LabkitError as error:
            return [f"{case.said}: it did not come to its end: {error}"]
        wrong = next((text for value in values if isinstance(value, str) for text in [value]), "") or _judge(case, values)
        if wrong:
            return [f"{case.said}: {wrong}"]
    return []


def _judge(case: Case, values: list[tuple[list[Seen], list[Seen], str]]) -> str:
    """The first thing that is wrong, from the coarse to the fine; empty for nothing."""
    for yours, right, start in values:
        if start:
            return start
        for step, (own, ddp) in enumerate(zip(yours, right, strict=True)):
            wrong = _traffic(case, own, own.gradients.nbytes, step) or _gradients(case, own.gradients, ddp.gradients, step)
            if wrong:
                return wrong
    return ""


def _traffic(case: Case, own: Seen, total: int, step: int) -> str:
    sizes = [size for kind, size, _ in own.sent if kind == ALL_REDUCE]
    if len(sizes) != len(own.sent):
        others = sorted({kind for kind, *_ in own.sent} - {ALL_REDUCE})
        return f"in step {step} there are collectives that reduce nothing: {', '.join(others)}"
    if not sizes:
        return f"in step {step} nothing is reduced"
    if sum(sizes) != total:
        return f"in step {step} {sum(sizes):,} bytes are reduced, and the gradients have {total:,}: send each of them once"
    largest = 4 * max(rows * columns for columns, rows in itertools.pairwise(case.widths))
    fewest, most = -(-total // (case.cap_bytes + largest)), 2 * total // case.cap_bytes + 1
    if not fewest <= len(sizes) <= most:
        why = "put many gradients into one" if len(sizes) > most else "close a bucket when it is full, and begin another"
        return f"in step {step} there are {plural(len(sizes), 'bucket')}, and {fewest} to {most} are to be expected: {why}"
    trained = 2 * (len(case.widths) - 2)
    if own.sent[0][2] >= trained:
        return "the first bucket leaves when all gradients are there: send each bucket from a hook, as soon as it is full"
    if not own.by_itself:
        return "a rank waits inside its backward pass for what it sends: reduce with async_op=True, and wait in finish()"
    return ""


def _gradients(case: Case, own: np.ndarray, ddp: np.ndarray, step: int) -> str:
    if own.shape != ddp.shape or not np.isfinite(own).all():
        return f"in step {step} a gradient is missing, or no number"
    scale = float(np.abs(ddp).max())
    gap = float(np.abs(own - ddp).max())
    if np.array_equal(own, ddp) or (case.ranks > 2 and gap <= ROUNDING * scale):
        return ""
    if np.abs(own - case.ranks * ddp).max() <= ROUNDING * case.ranks * scale:
        return f"in step {step} the gradients are sums over the ranks: divide by their number"
    if gap <= ROUNDING * scale:
        return f"in step {step} the gradients are DDP's up to rounding; on two ranks they can equal them to the bit"
    return (
        f"in step {step} the gradients are not DDP's: they differ by {gap / scale:.2g} of the largest. "
        "Wait for each bucket in finish(), put its sums back where they belong, and begin the next step afresh"
    )


def both(context: RankContext) -> tuple[list[Seen], list[Seen], str] | str:
    """Train with the learner's function, then with torch's, on the same data. *Called on* every rank."""
    function, case = context.task
    module = _module(case, case.seed + context.rank)  # apart on every rank, until somebody makes them equal
    with _not_torchs_own():
        finish = function(module, case.cap_bytes)
    if not callable(finish):
        return f"return a function that is called after each backward pass; it returned {type(finish).__name__}"
    start = _unequal_start(module)
    if start:
        return start
    yours = _train(context, module, module, case, finish)
    twin = _module(case, case.seed + context.rank)
    wrapped = DistributedDataParallel(twin, bucket_cap_mb=case.cap_bytes / 2**20)
    right = _train(context, twin, wrapped, case, None)
    return yours, right, ""


def _module(case: Case, seed: int) -> nn.Sequential:
    """Layers with tanh between them. Shapes: [B, widths[0]] -> [B, widths[-1]]."""
    torch.manual_seed(seed)
    layers = [nn.Linear(columns, rows) for columns, rows in itertools.pairwise(case.widths)]
    layers[case.frozen].requires_grad_(False)
    return nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))


def _unequal_start(module: nn.Module) -> str:
    """Whether the ranks hold different weights. Collectives: one all-gather."""
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in module.parameters()])
    found = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(found, flat)
    equal = all(torch.equal(found[0], other) for other in found)
    return "" if equal else "the ranks begin with different weights: make them equal to rank 0's, as DDP does"


@contextmanager
def _not_torchs_own():
    """Refuse DistributedDataParallel inside: it is what is to be built."""
    original = DistributedDataParallel.__init__

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("build it from hooks and all_reduce, without DistributedDataParallel")

    DistributedDataParallel.__init__ = refuse
    try:
        yield
    finally:
        DistributedDataParallel.__init__ = original


def _train(
    context: RankContext, module: nn.Module, model: nn.Module, case: Case, finish: Callable[[], Any] | None
) -> list[Seen]:
    """Some steps of SGD. Collectives: those of the model or of the learner's hooks."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1)
    there: list[int] = []
    step = 0

    def ready(parameter: torch.Tensor) -> None:
        there.append(1)
        if finish is not None and step == WATCHED and context.rank == 1 and len(there) == 1:
            _wait_for_rank_0(context)

    handles = [parameter.register_hook(ready) for parameter in trained]  # before it is added up: ahead of the learner's
    draw = torch.Generator().manual_seed(case.seed + 7 * context.rank)
    found = []
    for step in range(STEPS):
        there.clear()
        inputs = torch.randn(5, case.widths[0], generator=draw)
        known: list[int] = []
        with watch_collectives(lambda _, known=known: known.append(len(there))) as counter:
            (model(inputs) ** 2).mean().backward()
            if finish is not None:
                if step == WATCHED and context.rank == 0:
                    (context.folder / "backward-over").touch()
                finish()
        kinds = [(one.kind, one.num_bytes, by_then) for one, by_then in zip(counter.seen, known, strict=True)]
        flat = torch.cat([_gradient(parameter) for parameter in trained]).numpy().copy()
        found.append(Seen(flat, kinds, not (context.folder / "held-up").exists()))
        optimizer.step()
        optimizer.zero_grad()
    for handle in handles:
        handle.remove()
    return found


def _gradient(parameter: torch.Tensor) -> torch.Tensor:
    missing = torch.full((parameter.numel(),), float("nan"))
    return missing if parameter.grad is None else parameter.grad.reshape(-1)


def _wait_for_rank_0(context: RankContext) -> None:
    """Hold rank 1 up until rank 0 is through its backward pass, and then a little: who does not wait has no sums yet."""
    until = time.monotonic() + PATIENCE_S
    while not (context.folder / "backward-over").exists():
        if time.monotonic() > until:
            (context.folder / "held-up").touch()
            return
        time.sleep(0.01)
    time.sleep(0.3)
