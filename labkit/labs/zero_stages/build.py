"""Check a sharded optimizer (ZeRO stage 1) that a learner wrote: bytes kept, bytes sent, and weights, on real ranks.

Gradients are drawn so that their mean over the ranks is exact in whatever order it is formed: each is W times a small
number of a power of two. Adam works number by number, so weights have to equal those of the plain optimizer to the bit.
Where a processor's vector units round otherwise at the end of a tensor than within it, cutting a tensor elsewhere changes
bits: the check sees that by cutting the plain optimizer's tensors, and then asks for equality up to rounding alone.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...errors import LabkitError
from ...ranks.context import RankContext
from ...watch.traffic import watch_collectives
from ...words import plural
from ..opened import OpenedLab

STEPS, LR = 3, 0.01
MOMENTS = 8
"""Bytes of Adam's two moments for each parameter in fp32."""

OWN_COPY = 4
"""Bytes for each parameter of its share that a rank may keep beside them: a copy of its weights."""

SLACK = 256
LET_GO_S = (0.05, 0.2, 0.5)
ROUNDING = 1e-6


@dataclass(frozen=True)
class Case:
    """One model on some ranks.

    Attributes:
        ranks: W.
        shapes: of the parameters; their number Ψ is no multiple of W.
        seed: of weights and gradients.
    """

    ranks: int
    shapes: tuple[tuple[int, ...], ...]
    seed: int

    @property
    def count(self) -> int:
        return sum(map(math.prod, self.shapes))

    @property
    def share(self) -> int:
        """Parameters of one rank's share, rounded up."""
        return -(-self.count // self.ranks)

    @property
    def most_bytes(self) -> int:
        """What a rank may keep beside weights and gradients."""
        return (MOMENTS + OWN_COPY) * self.share + SLACK

    @property
    def said(self) -> str:
        return f"on {self.ranks} ranks, {plural(self.count, 'parameter')} in {plural(len(self.shapes), 'tensor')}"


def drawn_cases(draw: random.Random) -> list[Case]:
    """A case for three ranks and one for two, both with a Ψ that W does not divide."""
    return [_drawn(draw, ranks) for ranks in (3, 2)]


def _drawn(draw: random.Random, ranks: int) -> Case:
    shapes = [(draw.randint(60, 90), draw.randint(30, 60)), (1,)]
    shapes += [(draw.randint(2, 40), draw.randint(2, 40)) for _ in range(draw.randint(3, 6))]
    draw.shuffle(shapes)
    count = sum(map(math.prod, shapes))
    shapes.append((ranks + 1 - count % ranks if count % ranks != 1 else ranks,))  # one more than a multiple of W
    return Case(ranks, tuple(shapes), draw.randrange(2**31))


@dataclass
class Seen:
    """What one rank saw.

    Attributes:
        weights: after each step, flat.
        plain, cut: the same with the plain optimizer: on the tensors, and on W shares of them.
        kept_bytes: beside weights and gradients, at the end.
        sent_bytes: of each step, as a ring sends them.
        ops: the kinds of collectives of the last step.
    """

    weights: list[np.ndarray]
    plain: list[np.ndarray]
    cut: list[np.ndarray]
    kept_bytes: int
    sent_bytes: list[float]
    ops: list[str]


def check(function: Callable[..., Any], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with a learner's `my_optimizer`, in sentences; an empty list when nothing is."""
    for case in drawn_cases(random.Random(seed)):
        try:
            values = lab.try_on_ranks(train, (function, case), ranks=case.ranks, seed=case.seed)
        except LabkitError as error:
            return [f"{case.said}: it did not come to its end: {error}"]
        wrong = next((value for value in values if isinstance(value, str)), "") or _judge(case, values)
        if wrong:
            return [f"{case.said}: {wrong}"]
    return []


def _judge(case: Case, values: list[Seen]) -> str:
    for step in range(STEPS):
        for rank, seen in enumerate(values):
            if not np.array_equal(seen.weights[step], values[0].weights[step], equal_nan=True):
                return f"after step {step} rank {rank} holds other weights than rank 0: gather what each rank updated"
        if wrong := _weights(values[0], step):
            return wrong
    for rank, seen in enumerate(values):
        if wrong := _kept(case, seen.kept_bytes, rank) or _sent(case, seen, rank):
            return wrong
    return ""


def _weights(seen: Seen, step: int) -> str:
    own, plain, cut = seen.weights[step], seen.plain[step], seen.cut[step]
    scale = float(np.abs(plain).max())
    exact = ((own == plain) | (own == cut)).all()
    if exact or (not np.array_equal(plain, cut) and np.abs(own - plain).max() <= ROUNDING * scale):
        return ""
    before = seen.plain[step - 1] if step else None
    still = before is not None and (own == before).mean() > 0.1
    why = "part of them did not move" if still else "take the mean gradient over the ranks, and step once"
    wrong = float((own != plain).mean())
    return f"after step {step} {wrong:.0%} of the weights are not those of the plain optimizer: {why}"


def _kept(case: Case, kept: int, rank: int) -> str:
    if kept <= case.most_bytes:
        return ""
    formula = f"two moments of ⌈Ψ/W⌉ parameters are {MOMENTS * case.share:,}"
    whole = " That is about the state of all parameters." if kept >= 0.9 * MOMENTS * case.count else ""
    return f"rank {rank} keeps {kept:,} bytes beside weights and gradients; {formula}.{whole} Cut the flat parameters evenly"


def _sent(case: Case, seen: Seen, rank: int) -> str:
    around = (case.ranks - 1) / case.ranks
    fair = 2 * around * 4 * case.share * case.ranks
    for step, sent in enumerate(seen.sent_bytes):
        if sent == 0:
            return f"rank {rank} sends nothing in step {step}"
        if sent > 1.05 * fair + SLACK:
            return (
                f"rank {rank} sends {sent / fair:.2g} times the bytes of a reduce-scatter and an all-gather "
                f"({', '.join(sorted(set(seen.ops)))}): a rank needs the sums of its own share alone"
            )
    return ""


def train(context: RankContext) -> Seen | str:
    """Take steps with the learner's optimizer, then with the plain one. *Called on* every rank."""
    function, case = context.task
    parameters = _parameters(case)
    before = _live_bytes()
    with _not_torchs_own():
        optimizer = function(parameters, LR)
        if not callable(getattr(optimizer, "step", None)):
            return f"return an object with a method step(); it returned {type(optimizer).__name__}"
        weights, sent, ops = [], [], []
        for step in range(STEPS):
            for parameter, gradient in zip(parameters, _gradients(case, step, context.rank), strict=True):
                parameter.grad = gradient
            with watch_collectives() as counter:
                optimizer.step()
            sent.append(sum(one.sent_bytes for one in counter.seen))
            ops = [one.kind for one in counter.seen]
            weights.append(_flat(parameters))
    for parameter in parameters:
        parameter.grad = None
    gradient = None
    kept = _bytes_since(before, case)
    del optimizer, gradient
    return Seen(weights, _plain(case, 1), _plain(case, case.ranks), kept, sent, ops)


def _parameters(case: Case) -> list[torch.nn.Parameter]:
    draw = torch.Generator().manual_seed(case.seed)
    return [torch.nn.Parameter(torch.randn(shape, generator=draw)) for shape in case.shapes]


def _gradients(case: Case, step: int, rank: int) -> list[torch.Tensor]:
    """A rank's gradients: W times k/64 for whole k, so that means are exact."""
    draw = torch.Generator().manual_seed(case.seed + 101 * step + rank)
    return [case.ranks * torch.randint(-90, 91, shape, generator=draw) / 64 for shape in case.shapes]


def _plain(case: Case, shares: int) -> list[np.ndarray]:
    """The weights after each step of torch's Adam on mean gradients; with several shares on the flat weights, cut."""
    parameters = _parameters(case)
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    if shares > 1:
        parameters = [torch.nn.Parameter(part.clone()) for part in flat.split(case.share)]
    optimizer = torch.optim.Adam(parameters, lr=LR)
    found = []
    for step in range(STEPS):
        each = [_gradients(case, step, rank) for rank in range(case.ranks)]
        mean = [torch.stack(of_ranks).sum(0) / case.ranks for of_ranks in zip(*each, strict=True)]
        if shares > 1:
            mean = list(torch.cat([part.reshape(-1) for part in mean]).split(case.share))
        for parameter, gradient in zip(parameters, mean, strict=True):
            parameter.grad = gradient
        optimizer.step()
        found.append(_flat(parameters))
    return found


def _flat(parameters: list[torch.nn.Parameter]) -> np.ndarray:
    return torch.cat([parameter.detach().reshape(-1) for parameter in parameters]).numpy().copy()


def _bytes_since(before: int, case: Case) -> int:
    """Bytes that came since and are still held; what is too much is looked at again.

    A thread of the backend lets go of what it sent a moment after the collective is over, later on busy cores.
    """
    kept = _live_bytes() - before
    for pause_s in LET_GO_S:
        if kept <= case.most_bytes:
            break
        time.sleep(pause_s)
        kept = _live_bytes() - before
    return kept


def _live_bytes() -> int:
    """Bytes of all tensors that something in this process still holds, each storage once."""
    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        if isinstance(thing, torch.Tensor) and thing.device.type == "cpu":
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


@contextmanager
def _not_torchs_own():
    """Refuse ZeroRedundancyOptimizer inside: it is what is to be built."""
    from torch.distributed.optim import ZeroRedundancyOptimizer

    original = ZeroRedundancyOptimizer.__init__

    def refuse(*_: Any, **__: Any) -> None:
        raise RuntimeError("build it from collectives and Adam, without ZeroRedundancyOptimizer")

    ZeroRedundancyOptimizer.__init__ = refuse
    try:
        yield
    finally:
        ZeroRedundancyOptimizer.__init__ = original
