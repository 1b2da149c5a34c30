"""The façade: one lab, from a run to a verdict. The only module of the package that may see everything."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from . import __version__, detect, labs
from .detect.verdict import Verdicts
from .errors import UnknownName, UsageError
from .labs.spec import LabSpec, RunPlan, Variant
from .ranks.backend import Placement, choose, threads_per_rank, visible_gpus
from .ranks.faults import Fault
from .ranks.join import outer_place, run_joined
from .ranks.launch import DEADLINE_S, Control, Launched, Progress, launch
from .record import measures, store
from .record.measures import Quantity
from .record.schema import Provenance, Record

OnProgress = Callable[[str, Progress], None]


def lab(slug: str) -> Lab:
    """Open a lab by its slug; the warm server for its ranks starts in the background meanwhile.

    Raises:
        UnknownName: with the valid slugs and the nearest spelling.
    """
    from .ranks.forkserver import warm

    opened = Lab(labs.spec(slug))
    if outer_place() is None:
        warm()
    return opened


def labs_table() -> list[LabSpec]:
    """The specs of all labs, in order."""
    return labs.specs()


class Lab:
    """One pitfall, ready to run.

    Attributes:
        spec: what the lab is: question, variants, configuration, detectors.
    """

    def __init__(self, spec: LabSpec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        variants = "\n".join(f"  {variant.name:<20}{variant.summary}" for variant in self.spec.variants)
        return f"Lab {self.spec.number:02d} {self.spec.slug}: {self.spec.question}\n{variants}"

    def _repr_html_(self) -> str:
        from .view.cards import lab_card

        return lab_card(self.spec)

    def run(
        self,
        variant: str | Callable[..., Iterable] = "broken",
        *,
        ranks: int | None = None,
        seed: int = 0,
        device: str | None = None,
        backend: str | None = None,
        record_dir: Path | str | None = None,
        deadline_s: float = DEADLINE_S,
        faults: Iterable[Fault] = (),
        control: Control | None = None,
        on_progress: OnProgress | None = None,
        **settings: Any,
    ) -> Record:
        """Run a variant on real ranks, then the references that its verdict needs, and return the record.

        Started inside torchrun, it joins the ranks that are there; then rank 0 gets the record and the others None.

        Args:
            variant: a variant's name, or the function that the exercise asks for.
            ranks: processes; the lab's default if None; under torchrun what it started.
            seed: of everything random.
            device, backend: overrides; chosen from the machine if None.
            record_dir: a new folder for the record; the user's cache if None.
            deadline_s: for each launch, then RankTimeout.
            faults: planned faults, for the run under study.
            control: to stop from another thread.
            on_progress: called with the role of the launch and its Progress, on this thread.
            settings: the lab's configuration, by name.

        Raises:
            UsageError: a wrong name or value, before anything starts.
            RankFailed, RankLeftEarly, RankTimeout, RunStopped.
        """
        chosen = self._variant(variant)
        place = outer_place()
        if place is not None and ranks not in (None, place.world_size):
            raise UsageError(
                f"ranks is {ranks}, but torchrun started {place.world_size} (WORLD_SIZE); leave ranks out, or start as many"
            )
        count = place.world_size if place else self.spec.ranks if ranks is None else ranks
        config = self.spec.configure(chosen, {name: value for name, value in settings.items() if value is not None})
        seed = _seed(seed)
        placement = choose(place.local_world_size if place else count, visible_gpus(), device, backend)
        plans = self.spec.plan(variant, config, count, seed)
        if place is not None and place.rank != 0:
            run_joined(place, plans[0].program, plans[0].task, folder=None, seed=seed, device=device,
                       backend=backend, deadline_s=deadline_s, faults=tuple(faults))  # fmt: skip
            return None  # type: ignore[return-value]
        folder = store.new_folder(record_dir, f"{self.spec.slug}-{chosen.name}")
        runs = {}
        for plan in plans:
            where = folder / plan.role
            where.mkdir()
            options = {"seed": seed, "deadline_s": deadline_s}
            if place is not None and plan.group:
                launched = run_joined(place, plan.program, plan.task, folder=where, device=device, backend=backend,
                                      faults=tuple(faults), **options)  # fmt: skip
                assert launched is not None
            else:
                launched = self._launch(plan, where, placement, count, tuple(faults), control, on_progress, options)
            runs[plan.role] = store.read_run(where, plan.role, launched.wall_s, launched.attempts)
        record = Record(
            lab=self.spec.slug,
            variant=chosen.name,
            config=asdict(config),
            provenance=_provenance(runs["variant"].ranks[0].head, seed),
            runs=runs,
            folder=folder,
        )
        store.write_record(record)
        return record

    def _launch(
        self,
        plan: RunPlan,
        where: Path,
        placement: Placement,
        count: int,
        faults: tuple[Fault, ...],
        control: Control | None,
        on_progress: OnProgress | None,
        options: Mapping[str, Any],
    ) -> Launched:
        return launch(
            plan.program,
            plan.task,
            ranks=plan.ranks,
            folder=where,
            placement=placement,
            # a reference that is to be equal to the bit sums in the same order, so it uses as many threads as a rank
            threads=threads_per_rank(count),
            group=plan.group,
            faults=faults if plan.role == "variant" else (),
            control=control,
            on_progress=None if on_progress is None else lambda progress: on_progress(plan.role, progress),
            **options,
        )

    def _variant(self, variant: str | Callable[..., Iterable]) -> Variant:
        if callable(variant):
            return Variant(name=getattr(variant, "__name__", "yours").replace("_", "-"), summary="the learner's own")
        return self.spec.variant(variant)

    def judge(self, record: Record) -> Verdicts:
        """Ask each of the lab's questions of a record."""
        return Verdicts(detect.detector(name)(record) for name in self.spec.detectors)

    def measures(self, record: Record) -> dict[str, Quantity]:
        """The record's measures, by name."""
        return measures.data_measures(record)

    def check(self, function: Callable[..., Any]) -> CheckResult:
        """Check the learner's solution of the exercise; says what is still wrong."""
        if not callable(function):
            raise UsageError(
                f"check wants the function itself, as in lab.check(my_loader); given {type(function).__name__}"
            )
        return CheckResult(self.spec.exercise.check(function, self))

    def try_out(self, program: Callable[..., Any], task: Any, *, seed: int = 0, deadline_s: float = 20.0) -> Any:
        """Run a program on one rank, without a group, in a process of its own, and return what it returns.

        For the checks of exercises: code that hangs or crashes there does no harm here.
        """
        with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
            options = {"ranks": 1, "group": False, "seed": seed, "deadline_s": deadline_s}
            return launch(program, task, folder=Path(folder), **options).values[0]

    def figure(self, name: str, *records: Record):
        """Draw one of the lab's figures from one record, or from several side by side.

        Raises:
            UnknownName: with the names there are.
        """
        from .view import figures

        if name not in figures.FIGURES:
            raise UnknownName("figure", name, figures.FIGURES)
        return figures.FIGURES[name](*records)

    def diff(self, before: str = "broken", after: str = "fixed") -> Diff:
        """The difference in source between two variants: all that the fix is."""
        from .labs.duplicate_data.programs import source

        self.spec.variant(before), self.spec.variant(after)
        return Diff(before, after, source(before), source(after))

    def panel(self, **settings: Any):
        """The panel: controls, Run and Stop, live progress, figure, verdict, cost. For a notebook."""
        from .view.widgets import Panel

        return Panel(self, **settings)

    def report(self, record: Record) -> dict[str, Any]:
        """The record's measures and verdicts as plain data, as `--json` writes them."""
        verdicts = self.judge(record)
        provenance = {k: v for k, v in msgspec.to_builtins(record.provenance).items() if v != ""}
        return {
            "lab": record.lab,
            "variant": record.variant,
            "config": dict(record.config),
            "provenance": provenance,
            "measures": {name: _plain(quantity) for name, quantity in self.measures(record).items()},
            "verdicts": [
                {
                    "detector": verdict.detector,
                    "status": verdict.status,
                    "evidence": {name: _plain(quantity) for name, quantity in verdict.evidence.items()},
                    "cause": verdict.cause,
                    "fix": verdict.fix,
                    "where": verdict.where,
                    "waste": verdict.waste,
                }
                for verdict in verdicts
            ],
            "record": str(record.folder),
        }

    def invariants(self, *records: Record) -> str:
        """What must come out equal on every machine: statuses, exact counts, equality of hashes. No timing, no hash."""
        return "\n".join(line for record in records for line in self._invariants(record))

    def _invariants(self, record: Record) -> list[str]:
        found = self.measures(record)
        exact = ("samples_per_epoch", "unique_samples", "copies_max", "padding", "order_repeats", "weights_equal_single")
        lines = [f"{record.lab} / {record.variant} on {record.run.world_size} ranks"]
        lines += [f"  {verdict.detector}: {verdict.status}" for verdict in self.judge(record)]
        lines += [f"  {name} = {found[name].value}" for name in exact if name in found]
        return lines


class CheckResult:
    """What a check of an exercise found. Attribute `findings`: what is still wrong, empty when it is right."""

    def __init__(self, findings: list[str]) -> None:
        self.findings = findings

    @property
    def passed(self) -> bool:
        return not self.findings

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        if self.passed:
            return "Solved: every check passed."
        return "\n".join([f"Not yet: {len(self.findings)} still wrong.", *(f"  - {text}" for text in self.findings)])

    def _repr_html_(self) -> str:
        from .view.cards import check_card

        return check_card(self.findings)


class Diff:
    """Two sources and their difference."""

    def __init__(self, before_name: str, after_name: str, before: str, after: str) -> None:
        self.before_name, self.after_name = before_name, after_name
        self.before, self.after = before, after

    def __repr__(self) -> str:
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), self.before_name, self.after_name, lineterm="", n=20
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from .view.cards import diff_card

        return diff_card(self.before_name, self.after_name, self.before, self.after)


def _plain(quantity: Quantity) -> dict[str, Any]:
    plain = {"value": quantity.value, "unit": quantity.unit}
    return plain | ({"source": quantity.source} if quantity.source else {})


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise UsageError(f"seed must be a whole number from 0 to {2**31 - 1}; given {seed!r}")
    return seed


def _provenance(head: Any, seed: int) -> Provenance:
    import platform

    import torch

    from .hardware.machine import device_name, system_name

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
    )
