"""Check a learner's loader: first alone, over sizes, ranks and epochs that are drawn; then on real ranks.

What one rank reads may depend on what the function is given, and on nothing else. So the ranks are asked in two
processes, in any order, and every call finds global random generators in another state: a loader whose ranks agree by an
accident of its process agrees here no more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...workloads.digits import Digits
from ..checking import first_of, log_uniform, with_the_case
from ..opened import OpenedLab
from ..reading import Sizes, judge_epochs, read_by_epoch, same_order

SURELY_ANOTHER_ORDER = 10
"""From so many samples on, two epochs in one order are no chance (1 in 10!)."""

DEADLINE_S = 90.0

Call = tuple[int, int, int]
"""(case, epoch, rank)."""

_Answer = list[list[int]] | str
"""The ids that a call gave, by batch; or what keeps them from being judged."""


@dataclass(frozen=True)
class _Case:
    sizes: Sizes
    seed: int
    epochs: tuple[int, ...]


@dataclass(frozen=True)
class _Calls:
    """What one process is asked to do."""

    loader: Callable[..., Iterable]
    cases: list[_Case]
    calls: list[Call] = field(default_factory=list)


def drawn_sizes(draw: random.Random) -> list[Sizes]:
    """Sizes with and without a remainder, fewer samples than ranks, a batch larger than the data, one rank, and any."""
    several = [2, 3, draw.randint(4, 8), draw.randint(9, 24)]
    draw.shuffle(several)
    whole, uneven, few, large = several
    return [
        Sizes(whole * draw.randint(5, 40), whole, draw.randint(2, 12)),
        Sizes(uneven * draw.randint(5, 40) + draw.randint(1, uneven - 1), uneven, draw.randint(2, 12)),
        Sizes(draw.randint(2, max(2, few - 1)), max(few, 3), draw.randint(1, 9)),
        Sizes(draw.randint(20, 99), large, draw.randint(100, 300)),
        Sizes(draw.randint(11, 200), 1, draw.randint(1, 16)),
        *(Sizes(draw.randint(12, 400), draw.randint(2, 12), draw.randint(1, 40)) for _ in range(4)),
    ]


def drawn_epochs(draw: random.Random) -> tuple[int, ...]:
    """The first ones, and late ones, two in a row."""
    late = round(log_uniform(draw, 4, 2000))
    return (0, 1, 2, draw.randint(3, 9), 10 + late, 11 + late)


def check(loader: Callable[..., Iterable], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with `loader`, in sentences; an empty list when nothing is.

    The loader runs in processes of its own, so that one that hangs or crashes does no harm here.
    """
    draw = random.Random(seed)
    cases = [_Case(sizes, draw.randrange(2**31), drawn_epochs(draw)) for sizes in drawn_sizes(draw)]
    try:
        of_cases = _read_all(loader, cases, lab, draw)
    except LabkitError as error:
        return [f"the loader did not finish: {error}"]
    for case, read in zip(cases, of_cases, strict=True):
        label = f"with {case.sizes.said}, seed={case.seed}"
        if isinstance(read, str):
            return [f"{label}: {read}"]
        found = _judge(read, case.sizes)
        if found:
            return first_of([f"{label}: {text}" for text in found])
    return _check_on_ranks(loader, lab, draw)


def _read_all(
    loader: Callable[..., Iterable], cases: list[_Case], lab: OpenedLab, draw: random.Random
) -> list[dict[int, list[list[list[int]]]] | str]:
    """By case: what was read, by epoch, by rank, by batch; or a sentence about what cannot be judged."""
    parts = [_Calls(loader, cases), _Calls(loader, cases)]
    for number, case in enumerate(cases):
        for epoch in case.epochs:
            ranks = draw.sample(range(case.sizes.world_size), case.sizes.world_size)
            for place, rank in enumerate(ranks):  # every second rank in the other process
                parts[place % 2].calls.append((number, epoch, rank))
    found: dict[Call, _Answer] = {}
    for part in parts:
        draw.shuffle(part.calls)
        found |= zip(part.calls, lab.try_out(read, part, deadline_s=DEADLINE_S), strict=True)
    return [_of_case(number, case, found) for number, case in enumerate(cases)]


def _of_case(number: int, case: _Case, found: dict[Call, _Answer]) -> dict[int, list[list[list[int]]]] | str:
    own = {call: of for call, of in found.items() if call[0] == number}
    refused = next((of for of in own.values() if isinstance(of, str)), None)
    if refused is not None:
        return refused
    ids = {call: of for call, of in own.items() if not isinstance(of, str)}
    return {epoch: [ids.get((number, epoch, r), []) for r in range(case.sizes.world_size)] for epoch in case.epochs}


def read(context: RankContext) -> list[_Answer]:
    """The ids that the loader of each call gives, by batch. *Called on* one rank, without a group."""
    part: _Calls = context.task
    data = [Digits(case.sizes.num_samples) for case in part.cases]
    other = random.SystemRandom()
    order = []
    for number, epoch, rank in part.calls:
        case = part.cases[number]
        for seed_it in (random.seed, np.random.seed, torch.manual_seed):
            seed_it(other.randrange(2**32))
        try:
            batches = part.loader(data[number], rank, case.sizes.world_size, case.sizes.batch, case.seed, epoch)
            order.append(_ids(batches, data[number], f"rank {rank}, epoch {epoch}"))
        except Exception as error:
            raise with_the_case(error, f"{case.sizes.said}, seed={case.seed}, rank {rank}, epoch {epoch}") from error
    return order


def _ids(batches: object, data: Digits, who: str) -> _Answer:
    """The ids of a loader's batches; or what keeps them from being judged."""
    if not isinstance(batches, Iterable):
        return f"{who}: the function returned {shown(batches)}; return a DataLoader, or another iterable of batches"
    found: list[list[int]] = []
    for item in batches:
        if not isinstance(item, (list, tuple)) or len(item) != 3:
            return f"{who}: a batch must be (images, labels, ids), as DataLoader(data, ...) gives it"
        images, labels, ids = item[0], item[1], [int(i) for i in item[2]]
        inside = all(0 <= i < len(data) for i in ids)
        if not inside or not _are_those(data, images, labels, ids):
            return f"{who}: images or labels are not those of their ids"
        found.append(ids)
        if len(found) > len(data) + 1:
            return f"{who} gets more batches than there are samples: does the loader end?"
    return found


def _are_those(data: Digits, images: Any, labels: Any, ids: list[int]) -> bool:
    return torch.equal(torch.as_tensor(images), data.images[ids]) and torch.equal(torch.as_tensor(labels), data.labels[ids])


def _judge(read: dict[int, list[list[list[int]]]], sizes: Sizes) -> list[str]:
    findings = judge_epochs(read, sizes)
    again = same_order(read) if sizes.num_samples >= SURELY_ANOTHER_ORDER else None
    return findings or ([f"epoch {again[1]} comes in the order of epoch {again[0]}"] if again else [])


def _check_on_ranks(loader: Callable[..., Iterable], lab: OpenedLab, draw: random.Random) -> list[str]:
    sizes = Sizes(draw.randint(60, 350), draw.randint(3, 5), draw.randint(5, 20))
    label = f"on {sizes.world_size} real ranks, N={sizes.num_samples}, batch={sizes.batch}"
    how = {"ranks": sizes.world_size, "num_samples": sizes.num_samples, "batch": sizes.batch, "epochs": draw.randint(3, 6)}
    try:
        record = lab.run(loader, **how, seed=draw.randrange(2**31), deadline_s=DEADLINE_S)
    except LabkitError as error:
        return [f"{label} the run failed: {error}"]
    found = [f"{verdict.detector}: {verdict.cause}" for verdict in lab.judge(record).found]
    found = found or _judge(read_by_epoch(record.run), sizes)
    return first_of([f"{label}: {text}" for text in found])
