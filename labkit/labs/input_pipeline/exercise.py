"""Check a learner's loader: first what it reads, over sizes that are drawn; then on real ranks, how long they wait for it.

How long ranks wait is measured, and a busy machine makes every loader wait. So a loader that seems to wait too long runs
again, beside one that is known to be right, and with batches that cost more, which noise is a smaller share of. It is called
wrong where the known one is quick in the same conditions, and where neither is, the check says that it cannot tell.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from ...detect.input.measures import ENOUGH, Waits, counted, data_s, step_s, waits
from ...detect.runs import train_steps
from ...errors import LabkitError, shown
from ...ranks.context import RankContext
from ...record.schema import RankLog, Record
from ...workloads.digits import Digits
from ...workloads.scans import Scans
from ..checking import CannotTell, first_of, with_the_case
from ..opened import OpenedLab
from ..reading import Sizes, judge_epochs, read_by_epoch
from .programs import workers as known_to_be_right

LIMIT = 0.10
FAR = 0.20
"""A share beyond which a loader is wrong, where the known one keeps within the limit: one worker too few gives a third."""

TRIES = tuple({"prep_ms": 1.5 * compute_ms, "compute_ms": compute_ms} for compute_ms in (60.0, 160.0, 400.0))
"""By waiting: two workers are enough, one is not, and a cache is. What costs more is less disturbed by other programs."""

DEADLINE_S = 90.0
RANKS = 2
BATCH = 16
STEPS_AN_EPOCH = 8


@dataclass(frozen=True)
class _Case:
    loader: Callable[..., Iterable]
    sizes: Sizes
    seed: int
    epochs: tuple[int, ...]


def drawn_cases(loader: Callable[..., Iterable], draw: random.Random) -> list[_Case]:
    """Sizes with and without a remainder, on one rank and several, a batch larger than the data; three epochs or more."""
    several, batch = draw.randint(2, 5), draw.randint(3, 9)
    sizes = (
        Sizes(several * draw.randint(8, 20), several, draw.randint(3, 9)),
        # whole batches and one or two samples more: a rank without padding takes a step that the others do not
        Sizes(3 * batch * draw.randint(2, 5) + draw.randint(1, 2), 3, batch),
        Sizes(draw.randint(15, 60), 1, draw.randint(2, 12)),
        Sizes(draw.randint(10, 40), draw.randint(2, 4), draw.randint(41, 64)),
    )
    late = draw.randint(20, 2000)
    # an epoch after the other, as training goes, from a late one too, as after a restart
    return [
        _Case(loader, each, draw.randrange(2**31), tuple(range(first, first + draw.randint(4, 6))))
        for each, first in zip(sizes, (0, 0, late, 0), strict=True)
    ]


def check(loader: Callable[..., Iterable], lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with `loader`, in sentences; an empty list when nothing is.

    The loader runs in processes of its own, so that one that hangs or crashes does no harm here.

    Raises:
        CannotTell: this machine is so busy that a loader known to be right waits as well.
    """
    draw = random.Random(seed)
    for case in drawn_cases(loader, draw):
        label = f"with {case.sizes.said}, seed={case.seed}"
        try:
            found = lab.try_out(read_all_ranks, case, deadline_s=DEADLINE_S)
        except LabkitError as error:
            return [f"{label}: the loader did not finish: {error}"]
        if found:
            return first_of([f"{label}: {text}" for text in found])
    return _check_on_ranks(loader, lab, draw)


def read_all_ranks(context: RankContext) -> list[str]:
    """What is wrong with what the loader of each rank gives, epoch by epoch. *Called on* one rank, without a group."""
    case: _Case = context.task
    digits = Digits(case.sizes.num_samples)
    read: dict[int, list[list[list[int]]]] = {epoch: [] for epoch in case.epochs}
    with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
        for rank in range(case.sizes.world_size):
            data = Scans(digits, local=Path(folder))
            try:
                loader = case.loader(data, rank, case.sizes.world_size, case.sizes.batch, case.seed)
                if not isinstance(loader, Iterable):
                    return [f"the function returned {shown(loader)}; return a DataLoader, or another iterable of batches"]
                for epoch in case.epochs:
                    hear_of = getattr(getattr(loader, "sampler", None), "set_epoch", None)
                    if hear_of is not None:
                        hear_of(epoch)
                    of_epoch = _ids(loader, digits, case, f"rank {rank}, epoch {epoch}")
                    if isinstance(of_epoch, str):
                        return [of_epoch]
                    read[epoch].append(of_epoch)
            except Exception as error:
                raise with_the_case(error, f"rank {rank}") from error
    return judge_epochs(read, case.sizes)


def _ids(loader: Iterable, digits: Digits, case: _Case, who: str) -> list[list[int]] | str:
    """The ids of one epoch, by batch; or what keeps it from being judged."""
    found: list[list[int]] = []
    for batch in loader:
        if not isinstance(batch, (list, tuple)) or len(batch) != 3:
            return f"{who}: a batch must be (images, labels, ids), as DataLoader(data, ...) gives it"
        images, labels, ids = batch[0], batch[1], [int(i) for i in batch[2]]
        inside = all(0 <= i < len(digits) for i in ids)
        if not inside or not (
            torch.equal(torch.as_tensor(images), digits.images[ids])
            and torch.equal(torch.as_tensor(labels), digits.labels[ids])
        ):
            return f"{who}: images or labels are not those of their ids: is a sample kept under the number of another?"
        found.append(ids)
        if len(found) > case.sizes.num_samples + 1:
            return f"{who} gets more batches than there are samples: does an epoch end?"
    if not found and case.epochs:
        return f"{who} gives no batches: the function is called once, and an epoch is one pass over what it returns"
    return found


@dataclass(frozen=True)
class _Seen:
    """One run on ranks: what is wrong with what was read, and the rank that waits longest.

    Attributes:
        share: of a step that data take: of all later epochs, or of one of them where that is far more.
        epoch: the one, or None.
    """

    findings: list[str]
    record: Record | None = None
    worst: Waits | None = None
    share: float = 0.0
    epoch: int | None = None


def _check_on_ranks(loader: Callable[..., Iterable], lab: OpenedLab, draw: random.Random) -> list[str]:
    """Run for real. What waits too long runs again at other costs, beside a loader that is known to be right."""
    sizes = Sizes(RANKS * BATCH * STEPS_AN_EPOCH - draw.randint(0, BATCH), RANKS, BATCH)
    how = {"num_samples": sizes.num_samples, "epochs": draw.randint(4, 6), "seed": draw.randrange(2**31)}
    known_shares = []
    for number, costs in enumerate(TRIES):
        seen = _run(loader, lab, sizes, {**how, **costs})
        if seen.findings or seen.share <= LIMIT:
            return seen.findings
        known = _run(known_to_be_right, lab, sizes, {**how, **costs, "workers": 3})
        known_shares.append(known.share)
        # quick enough a machine that the known loader hardly waits: the wait is the loader's own
        quiet = not known.findings and known.share <= LIMIT / 2
        if quiet and seen.share > FAR:
            seen = _run(loader, lab, sizes, {**how, **costs})  # not a moment's load that hit this run and not the other
            if seen.findings or seen.share <= LIMIT:
                return seen.findings
            if seen.share > FAR:
                return [_still_wrong(seen, costs, known)]
        elif quiet and number == len(TRIES) - 1:
            return [_still_wrong(seen, costs, known)]
    raise CannotTell(
        f"data take {seen.share:.0%} of a step, and with a loader that is known to be right they took "
        f"{min(known_shares):.0%} to {max(known_shares):.0%}: other programs use the cores. Check again when they are done"
    )


def _run(loader: Callable[..., Iterable], lab: OpenedLab, sizes: Sizes, how: dict[str, float]) -> _Seen:
    fixed = {"ranks": RANKS, "batch": BATCH, "compare": "nothing", "source": "local", "scan": 1, "prep": "wait"}
    label = f"on {RANKS} real ranks, N={sizes.num_samples}, batch={sizes.batch}"
    try:
        record = lab.run(loader, deadline_s=DEADLINE_S, **fixed, **how)
    except LabkitError as error:
        return _Seen([f"{label}: the run failed: {error}"])
    found = judge_epochs(read_by_epoch(record.run), sizes)
    if found:
        return _Seen([f"{label}: {text}" for text in found])
    if counted(record.run, "prepared") < sizes.num_samples:
        return _Seen(
            ["most samples were never prepared: data.digits is what the scans were drawn from, the answer and not data"]
        )
    known = [(found, log) for log in record.run.ranks if (found := waits(log)) is not None]
    if not known:
        return _Seen([f"{label}: the run was too short to judge: are all samples read in each epoch?"])
    worst, log = max(known, key=lambda pair: pair[0].share)
    epoch, share = max(_by_epoch(log).items(), key=lambda pair: pair[1])
    if share > FAR >= worst.share:  # one epoch is far slower than the others
        return _Seen([], record, worst, share, epoch)
    return _Seen([], record, worst, worst.share)


def _by_epoch(log: RankLog) -> dict[int, float]:
    """Of each later epoch: the share of its steps that data take, without the first one, which waits for workers."""
    steps = train_steps(log)
    found = {}
    for epoch in sorted({step.epoch for step in steps})[1:]:
        own = [step for step in steps if step.epoch == epoch][1:]
        if len(own) >= ENOUGH:
            found[epoch] = float(data_s(own).sum() / step_s(own).sum())
    return found or {0: 0.0}


def _still_wrong(seen: _Seen, costs: dict[str, float], known: _Seen) -> str:
    record, worst = seen.record, seen.worst
    assert record is not None and worst is not None
    run = record.run
    workers, again = int(run.fact("workers", 0)), counted(run, "prepared", later=True)  # pyright: ignore[reportArgumentType]
    when = "" if seen.epoch is None else f" of epoch {seen.epoch}"
    data, compute = costs["prep_ms"], costs["compute_ms"]
    said = (
        f"on {RANKS} real ranks, where a batch takes {data:g} ms to prepare and a step computes {compute:g}, data take "
        f"{seen.share:.0%} of a step{when}, and with a loader that is right {known.share:.0%}: "
    )
    if workers == 0 and again:
        return said + "nothing is prepared ahead, and every sample is prepared again in each epoch"
    if workers == 0:
        return said + "no sample is prepared twice, and yet the step waits: does the loader do more than it must?"
    return said + (
        f"{workers} worker{'s give' if workers > 1 else ' gives'} a batch each {data / workers:.3g} ms, where the device "
        f"wants one each {compute:g} ms, and handing it over takes time too; give it more workers, or prepare less"
    )
