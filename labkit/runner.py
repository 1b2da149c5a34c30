"""From plans to runs: each launch that a record needs, one after the other, here or among the ranks of torchrun."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from . import __version__
from .errors import RecordError, UsageError
from .labs.spec import RunPlan
from .ranks.backend import Placement, choose, threads_per_rank, usable_cores, visible_gpus
from .ranks.faults import Fault
from .ranks.join import Place, run_joined
from .ranks.launch import Control, Launched, Progress, launch
from .ranks.links import Links
from .ranks.storage import Standing, standing
from .record import store
from .record.baseline import Baseline, read_baseline
from .record.load import heaviest
from .record.roles import Role
from .record.schema import Head, Provenance, Run
from .words import plural

OnProgress = Callable[[str, Progress], None]


@dataclass(frozen=True, kw_only=True)
class Request:
    """How a reader wants the launches to run.

    Attributes:
        ranks: of the run under study.
        seed, device, backend, deadline_s, faults: as for `Lab.run`.
        links: hosts on this machine, and the links between them; None for the machine itself.
        control: to stop from another thread.
        on_progress: called with the role of a launch and its progress.
    """

    ranks: int
    seed: int
    device: str | None
    backend: str | None
    deadline_s: float
    faults: tuple[Fault, ...] = ()
    links: Links | None = None
    control: Control | None = None
    on_progress: OnProgress | None = None

    def placement(self, place: Place | None) -> Placement:
        """Backend and device of the ranks on this machine; refuses what cannot be."""
        local = place.local_world_size if place else self.ranks
        return choose(local, visible_gpus(), self.device, self.backend)


MOST_RANKS_A_CORE = 8
"""Of a survey: with more of them a link shows how the system takes turns, and each collective takes seconds for it."""


def check_survey(ranks: int) -> None:
    """Refuse to measure the link of more ranks than this machine could say anything about.

    Raises:
        UsageError: naming the cores, and how many ranks may be asked for.
    """
    units = max(usable_cores(), visible_gpus())
    if ranks > MOST_RANKS_A_CORE * units:
        raise UsageError(
            f"{ranks} ranks on {plural(units, 'core')} would measure how they take turns, for minutes; give at most "
            f"{MOST_RANKS_A_CORE * units} (--ranks {units} has one for each)"
        )


def around(plans: list[RunPlan], request: Request, place: Place | None) -> AbstractContextManager[Standing]:
    """What stands around the ranks of these plans, up while the context lasts. Hosts are not made that no plan wants.

    Raises:
        UsageError: a store under torchrun, whose ranks may be on several machines.
    """
    stores = [plan.store for plan in plans if plan.store is not None]
    links = request.links if any(plan.group and plan.network for plan in plans) else None
    if not stores:
        return standing(links)
    if place is not None:
        raise UsageError(
            "this variant reads from a store on a host that labkit makes on this machine, but torchrun started the ranks "
            "where they are; run it without torchrun"
        )
    return standing(links, stores[0])


def execute(
    plans: list[RunPlan],
    request: Request,
    folder: Path,
    placement: Placement,
    place: Place | None,
    stands: Standing,
) -> dict[str, Run]:
    """Run every plan, each in a folder of its role. *Called on* the parent, or on rank 0 under torchrun.

    Args:
        stands: hosts that are up, for the plans that want a network, and a store, for those that read it.
    """
    runs = {}
    for plan in plans:
        role = str(plan.role)
        where = folder / role
        where.mkdir()
        if place is not None and plan.group:
            launched = _joined(plan, request, place, where)
            assert launched is not None  # rank 0
        else:
            launched = _launched(plan, request, placement, where, stands)
        run = store.read_run(where, role, launched.wall_s, launched.attempts)
        runs[role] = msgspec.structs.replace(run, load=launched.load)
    return runs


def help_along(plans: list[RunPlan], request: Request, place: Place) -> None:
    """Take part in the plans that need all ranks. *Called on* every rank but 0, under torchrun."""
    for plan in plans:
        if plan.group:
            _joined(plan, request, place, None)


def _joined(plan: RunPlan, request: Request, place: Place, folder: Path | None) -> Launched | None:
    return run_joined(
        place,
        plan.program,
        plan.task,
        folder=folder,
        seed=request.seed,
        device=request.device,
        backend=request.backend,
        deadline_s=request.deadline_s,
        faults=request.faults if plan.role == Role.VARIANT else (),
    )


def _launched(plan: RunPlan, request: Request, placement: Placement, folder: Path, stands: Standing) -> Launched:
    tell = request.on_progress
    return launch(
        plan.program,
        plan.task,
        ranks=plan.ranks,
        folder=folder,
        seed=request.seed,
        placement=placement,
        # a reference that is to be equal to the bit sums in the same order, so it uses as many threads as a rank
        threads=plan.threads or threads_per_rank(request.ranks),
        deadline_s=request.deadline_s,
        group=plan.group,
        seats=stands.seats_for(plan.ranks, group=plan.group and plan.network, reads_store=plan.store is not None),
        store=stands.store if plan.store else None,
        max_restarts=plan.max_restarts,
        faults=(*plan.faults, *(request.faults if plan.role == Role.VARIANT else ())),
        control=request.control,
        on_progress=None if tell is None else lambda progress: tell(str(plan.role), progress),
    )


def kept_baseline(head: Head, provenance: Provenance) -> Baseline | None:
    """The machine's kept baseline, if it is of this device, system, torch and number of cores, and not too old.

    A run does not fail for the lack of one, nor for a damaged one: `labkit bench` says what is wrong with it.
    """
    with contextlib.suppress(RecordError):
        kept = read_baseline(head.device.split(":")[0])
        misfits = kept.misfits(
            device=provenance.device, system=provenance.system, torch=provenance.torch, cores=usable_cores()
        )
        return None if misfits else kept
    return None


def provenance_of(head: Head, seed: int, stands: Standing, runs: Iterable[Run]) -> Provenance:
    """What was measured here and now, on the device that a rank used."""
    import torch

    from .watch.machine import device_name, system_name

    return Provenance(
        source="measured",
        device=device_name(head.device),
        backend=head.backend,
        world_size=head.world_size,
        torch=str(torch.__version__),
        seed=seed,
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
        labkit=__version__,
        python=platform.python_version(),
        system=system_name(),
        network=stands.network,
        storage=stands.storage,
        load=heaviest([run.load for run in runs]),
    )
