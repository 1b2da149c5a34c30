"""Check a learner's loader: first what it reads, over several sizes; then on real ranks, how long they wait for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...record.measures_input import Waits, counted, waits
from ...workloads.digits import Digits
from ...workloads.scans import Scans

SIZES = ((64, 2, 8), (61, 2, 8), (40, 3, 8), (20, 1, 8))
"""(N, W, B): with and without a remainder, on one rank and several."""

EPOCHS = 2
LIMIT = 0.10
NEAR = 0.25
"""Up to this share a run may have been disturbed, and is repeated."""

TRIES = 3
ON_RANKS = {"ranks": 2, "num_samples": 256, "batch": 16, "epochs": 3, "compare": "nothing", "source": "local", "scan": 1}
COSTS = {"prep": "wait", "prep_ms": 60.0, "compute_ms": 40.0}
"""By waiting, so that a busy machine plays no part: two workers are enough, one is not, and a cache is."""


@dataclass(frozen=True)
class _Case:
    loader: Callable[..., Iterable]
    num_samples: int
    world_size: int
    batch: int

    @property
    def said(self) -> str:
        return f"with N={self.num_samples}, W={self.world_size}, batch={self.batch}"


def check(loader: Callable[..., Iterable], lab: Any) -> list[str]:
    """What is still wrong with `loader`, in sentences; an empty list when nothing is.

    The loader runs in processes of its own, so that one that hangs or crashes does no harm here.
    """
    for case in (_Case(loader, *size) for size in SIZES):
        try:
            found = lab.try_out(read_all_ranks, case)
        except LabkitError as error:
            return [f"{case.said}: the loader did not finish: {error}"]
        if found:
            return [f"{case.said}: {text}" for text in found]
    return _check_on_ranks(loader, lab)


def read_all_ranks(context: RankContext) -> list[str]:
    """What is wrong with what the loader of each rank gives in two epochs. *Called on* one rank, without a group."""
    case: _Case = context.config
    digits = Digits(case.num_samples)
    epochs: list[list[list[int]]] = [[] for _ in range(EPOCHS)]
    steps: list[set[int]] = [set() for _ in range(EPOCHS)]
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
        for rank in range(case.world_size):
            data = Scans(digits, local=Path(folder))
            loader = case.loader(data, rank, case.world_size, case.batch, context.seed)
            if not isinstance(loader, Iterable):
                return [f"the function returned {shown(loader)}; return a DataLoader, or another iterable of batches"]
            for epoch in range(EPOCHS):
                hear_of = getattr(getattr(loader, "sampler", None), "set_epoch", None)
                if hear_of is not None:
                    hear_of(epoch)
                ids: list[int] = []
                count = 0
                for batch in loader:
                    wrong = _wrong_batch(batch, digits, case)
                    if wrong:
                        return [wrong]
                    ids += [int(i) for i in batch[2]]
                    count += 1
                    if count > case.num_samples + 1:
                        return [f"rank {rank} gets more batches than there are samples: does an epoch end?"]
                epochs[epoch].append(ids)
                steps[epoch].add(count)
    return [text for epoch in range(EPOCHS) for text in _judge(epoch, epochs[epoch], steps[epoch], case)]


def _wrong_batch(batch: Any, digits: Digits, case: _Case) -> str:
    if not isinstance(batch, (list, tuple)) or len(batch) != 3:
        return "a batch must be (images, labels, ids), as DataLoader(data, ...) gives it"
    images, labels, ids = batch[0], batch[1], [int(i) for i in batch[2]]
    if len(ids) > case.batch:
        return f"a batch is larger than {case.batch}"
    if not torch.equal(torch.as_tensor(images), digits.images[ids]) or not torch.equal(
        torch.as_tensor(labels), digits.labels[ids]
    ):
        return "images or labels are not those of their ids: is a sample kept under the number of another?"
    return ""


def _judge(epoch: int, of_ranks: list[list[int]], steps: set[int], case: _Case) -> list[str]:
    read = [i for ids in of_ranks for i in ids]
    if not read:
        return [
            f"epoch {epoch} gives no batches: the function is called once, and an epoch is one pass over what it returns"
        ]
    findings = []
    if len(steps) > 1:
        findings.append(f"in epoch {epoch} the ranks take {sorted(steps)} steps: in the last ones some would wait for ever")
    missing = case.num_samples - len(set(read))
    if missing:
        findings.append(f"{missing} of {case.num_samples} samples are not read in epoch {epoch}")
    padding = -case.num_samples % case.world_size
    if len(read) - len(set(read)) > padding:
        findings.append(f"{len(read) - len(set(read))} reads of epoch {epoch} are repeats, where {padding} suffice")
    return findings


def _check_on_ranks(loader: Callable[..., Iterable], lab: Any) -> list[str]:
    """Run for real; what is near the limit may be noise, so it is repeated and the best run counts."""
    for _ in range(TRIES):
        try:
            record = lab.run(loader, deadline_s=60, **ON_RANKS, **COSTS)
        except LabkitError as error:
            return [f"on 2 real ranks the run failed: {error}"]
        if counted(record.run, "prepared") < ON_RANKS["num_samples"]:
            return [
                "most samples were never prepared: data.digits is what the scans were drawn from, the answer and not data"
            ]
        known = [found for log in record.run.ranks if (found := waits(log)) is not None]
        if not known:
            return ["on 2 real ranks the run was too short to judge: are all samples read in each of 3 epochs?"]
        worst = max(known, key=lambda found: found.share)
        if worst.share <= LIMIT:
            return []
        if min(worst.blocks) > NEAR:
            break
    return [_still_wrong(record, worst)]


def _still_wrong(record: Any, worst: Waits) -> str:
    run = record.run
    workers, again = int(run.fact("workers", 0)), counted(run, "prepared", later=True)
    said = (
        f"on 2 real ranks data take {worst.share:.0%} of a step ({worst.seconds * 1e3:.3g} ms, beside "
        f"{worst.compute * 1e3:.3g} ms of compute): "
    )
    if workers == 0 and again:
        return said + "nothing is prepared ahead, and every sample is prepared again in each epoch"
    if workers == 0:
        return said + "no sample is prepared twice, and yet the step waits: does the loader do more than it must?"
    data, compute = COSTS["prep_ms"], COSTS["compute_ms"]
    return said + (
        f"{workers} worker{'s give' if workers > 1 else ' gives'} a batch each {data / workers:.3g} ms, where the device "
        f"wants one each {compute:g} ms, and handing it over takes time too; give it more workers, or prepare less"
    )
