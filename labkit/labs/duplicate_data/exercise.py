"""Check a learner's loader: first alone, over many sizes; then on real ranks, with the lab's own detectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...workloads.digits import Digits

SIZES = ((64, 2, 8), (65, 2, 8), (103, 3, 8), (97, 4, 5), (30, 4, 8), (64, 1, 8))
"""(N, W, B): with and without a remainder, and with fewer samples than a global batch."""

EPOCHS = 2


@dataclass(frozen=True)
class _Case:
    loader: Callable[..., Iterable]
    num_samples: int
    world_size: int
    batch: int


def check(loader: Callable[..., Iterable], lab: Any) -> list[str]:
    """What is still wrong with `loader`, in sentences; an empty list when nothing is.

    The loader runs in a process of its own, so that one that hangs or crashes does no harm here.
    """
    for num_samples, world_size, batch in SIZES:
        found = _check_size(_Case(loader, num_samples, world_size, batch), lab)
        if found:
            return found
    return _check_on_ranks(loader, lab)


def _check_size(case: _Case, lab: Any) -> list[str]:
    label = f"with N={case.num_samples}, W={case.world_size}, batch={case.batch}"
    try:
        order = lab.try_out(read_all_ranks, case)
    except LabkitError as error:
        return [f"{label}: the loader did not finish: {error}"]
    if isinstance(order, str):
        return [f"{label}: {order}"]
    return [f"{label}: {text}" for text in _judge(order, case)]


def read_all_ranks(context: RankContext) -> list[list[list[list[int]]]] | str:
    """The ids that each rank's loader gives: by epoch, by rank, by batch. *Called on* one rank, without a group."""
    case: _Case = context.config
    data = Digits(case.num_samples)
    order = []
    for epoch in range(EPOCHS):
        of_epoch = []
        for rank in range(case.world_size):
            batches = []
            loader = case.loader(data, rank, case.world_size, case.batch, context.seed, epoch)
            if not isinstance(loader, Iterable):
                return f"the function returned {shown(loader)}; return a DataLoader, or another iterable of batches"
            for item in loader:
                if not isinstance(item, (list, tuple)) or len(item) != 3:
                    return "a batch must be (images, labels, ids), as DataLoader(data, ...) gives it"
                batches.append([int(i) for i in item[2]])
                if len(batches) > case.num_samples + 1:
                    return f"rank {rank} gets more batches than there are samples: does the loader end?"
            of_epoch.append(batches)
        order.append(of_epoch)
    return order


def _judge(order: list[list[list[list[int]]]], case: _Case) -> list[str]:
    findings = []
    size, world_size = case.num_samples, case.world_size
    first = order[0]
    read = [index for of_rank in first for batch in of_rank for index in batch]
    steps = {len(of_rank) for of_rank in first}
    if len(steps) > 1:
        findings.append(f"the ranks take {sorted(steps)} steps: in the last ones some would wait for ever")
    missing = size - len(set(read))
    if missing:
        findings.append(f"{missing} of {size} samples are never read in an epoch")
    repeated = len(read) - len(set(read))
    if repeated > -size % world_size:
        findings.append(f"{repeated} reads are repeats, where {-size % world_size} suffice to give every rank equally many")
    if any(len(batch) > case.batch for of_rank in first for batch in of_rank):
        findings.append(f"a batch is larger than {case.batch}")
    if order[0] == order[1] and size > 1:
        findings.append("epoch 1 comes in the order of epoch 0")
    return findings


def _check_on_ranks(loader: Callable[..., Iterable], lab: Any) -> list[str]:
    try:
        record = lab.run(loader, ranks=4, num_samples=301, batch=16, deadline_s=60)
    except LabkitError as error:
        return [f"on 4 real ranks the run failed: {error}"]
    return [f"on 4 real ranks, {verdict.detector}: {verdict.cause}" for verdict in lab.judge(record).found]
