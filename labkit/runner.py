"""From plans to a record: each launch that it needs, one after the other, here or among the ranks of torchrun."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from . import __version__
from .errors import RecordError, UsageError
from .labs.spec import LabSpec, RunPlan
from .ranks.backend import Placement, threads_per_rank, usable_cores
from .ranks.data_store import Testbed, bring_up
from .ranks.join import Place, attempt, run_joined
from .ranks.launch import Launched, launch
from .record import store
from .record.baseline import Baseline, read_baseline, reason_to_set_aside, write_baseline
from .record.load import heaviest
from .record.roles import Role
from .record.schema import Head, Provenance, Record, Run
from .request import OnProgress, Request, check_plans


def run_lab(
    spec: LabSpec,
    variant: str | Callable[..., Any] | None,
    settings: Mapping[str, Any],
    request: Request,
    place: Place | None,
    record_dir: Path | str | None,
) -> Record | None:
    """Run what a variant's verdict needs, write the record and return it; None on the ranks but 0 under torchrun.

    Args:
        variant: a name, the learner's function, or None for the lab's first.
        settings: the lab's configuration, by name; None stands for one that was not given.
        record_dir: a new folder; the user's cache if None.

    Raises:
        UsageError: a wrong name or value, before anything starts.
        RankFailed, RankLeftEarly, RankTimeout, OutOfMemory, RunStopped.
    """
    chosen = spec.chosen(variant)
    config = spec.configure(chosen, {name: value for name, value in settings.items() if value is not None})
    plans = spec.plan(variant if callable(variant) else chosen.name, config, request.ranks)
    check_plans(spec, config, plans, request, place)
    placement = request.placement(place)  # refuses what cannot be, before anything is made, as the next line does
    surroundings = testbed_for(plans, request, place)
    if place is not None and place.rank != 0:
        take_part(plans, request, place)
        return None
    if record_dir is not None and place is not None and attempt() > 0:
        record_dir = f"{record_dir}.attempt{attempt()}"  # the one before left its files in the folder that was asked for
    folder = store.new_folder(record_dir, f"{spec.slug}-{chosen.name}")
    with surroundings as up:
        runs = execute(plans, request, folder, placement, place, up)
    head = next(iter(runs.values())).ranks[0].head
    provenance = provenance_of(head, request.seed, up, runs.values())
    record = Record(spec.slug, chosen.name, asdict(config), provenance, runs, folder)
    if spec.baseline is not None:
        return _keep_baseline(spec.baseline, record)
    record = msgspec.structs.replace(record, baseline=kept_baseline(head, provenance))
    store.write_record(record)
    return record


def _keep_baseline(found_by: Callable[[Record], Baseline | None], record: Record) -> Record:
    """Write a survey's record, and keep what it found for later labs unless the caller said no."""
    baseline, keep = found_by(record), record.config.get("keep") == "yes"
    if baseline is not None and keep:
        baseline = msgspec.structs.replace(baseline, set_aside=reason_to_set_aside(baseline))
    record = msgspec.structs.replace(record, baseline=baseline)
    store.write_record(record)
    if baseline is not None and keep and not baseline.set_aside:
        write_baseline(baseline)
    return record


def testbed_for(plans: list[RunPlan], request: Request, place: Place | None) -> AbstractContextManager[Testbed]:
    """Hosts, links and data store of these plans, up while the context lasts. Hosts are not made that no plan wants.

    Raises:
        UsageError: a data store under torchrun, whose ranks may be on several machines.
    """
    stores = [plan.data_store for plan in plans if plan.data_store is not None]
    links = request.links if any(plan.group and plan.network for plan in plans) else None
    if not stores:
        return bring_up(links)
    if place is not None:
        raise UsageError(
            "this variant reads from a store on a host that labkit makes on this machine, but torchrun started the ranks "
            "where they are; run it without torchrun"
        )
    return bring_up(links, stores[0])


def execute(
    plans: list[RunPlan],
    request: Request,
    folder: Path,
    placement: Placement,
    place: Place | None,
    up: Testbed,
) -> dict[str, Run]:
    """Run every plan, each in a folder of its role. *Called on* the parent, or on rank 0 under torchrun.

    Args:
        up: hosts that are up, for the plans that want a network, and a data store, for those that read it.
    """
    runs: dict[str, Run] = {}
    for number, plan in enumerate(plans, start=1):
        role = str(plan.role)
        where = folder / role
        where.mkdir()
        if place is not None and plan.group:
            launched = _joined(plan, request, place, where)
            assert launched is not None  # rank 0
        else:
            tell = _telling(request.on_progress, role, number, len(plans), sum(run.wall_s for run in runs.values()))
            launched = _launched(plan, replace(request, on_progress=tell), placement, where, up)
        run = store.read_run(where, role, launched.wall_s, launched.attempts)
        runs[role] = msgspec.structs.replace(run, load=launched.load)
    return runs


def take_part(plans: list[RunPlan], request: Request, place: Place) -> None:
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


def _telling(tell: OnProgress | None, role: str, launch: int, launches: int, before_s: float) -> OnProgress | None:
    """The callback of one launch among several."""
    if tell is None:
        return None
    return lambda _role, progress: tell(role, replace(progress, launch=launch, launches=launches, before_s=before_s))


def _launched(plan: RunPlan, request: Request, placement: Placement, folder: Path, up: Testbed) -> Launched:
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
        seats=up.seats_for(plan.ranks, group=plan.group and plan.network, reads_data_store=plan.data_store is not None),
        data_store=up.data_store if plan.data_store else None,
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


def provenance_of(head: Head, seed: int, up: Testbed, runs: Iterable[Run]) -> Provenance:
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
        network=up.network,
        storage=up.storage,
        load=heaviest([run.load for run in runs]),
    )
