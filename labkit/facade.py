"""The façade: one lab, from a run to a verdict. The only module of the package that may see everything."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from . import detect, labs
from .arguments import checked
from .detect.runs import names_of
from .detect.verdict import Verdicts
from .errors import UnknownName, UsageError
from .labs.spec import LabSpec
from .ranks.entry import run_for_its_value
from .ranks.faults import Fault
from .ranks.join import Place, attempt, outer_place
from .ranks.launch import DEADLINE_S, MAX_RANKS, Control, launch
from .ranks.links import Links, links
from .record import store
from .record.baseline import reason_to_set_aside, write_baseline
from .record.blame import blamed_on, understood
from .record.own_names import apart
from .record.quantity import Quantity
from .record.schema import Record
from .record.table import Table
from .report import report_of
from .results import CheckResult, Comparison, Diff
from .runner import OnProgress, Request, around, check_survey, execute, help_along, kept_baseline, provenance_of
from .showing import as_html


@checked()
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

    @checked()
    def __init__(self, spec: LabSpec) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        variants = "\n".join(f"  {variant.name:<20}{variant.summary}" for variant in self.spec.variants)
        return f"Lab {self.spec.number:02d} {self.spec.slug}: {self.spec.question}\n{variants}"

    def _repr_html_(self) -> str:
        return as_html(self.spec)

    @checked(but=("ranks", "seed"))
    def run(
        self,
        variant: str | Callable[..., Iterable] | None = None,
        *,
        ranks: int | None = None,
        seed: int = 0,
        device: str | None = None,
        backend: str | None = None,
        record_dir: Path | str | None = None,
        deadline_s: float = DEADLINE_S,
        faults: Iterable[Fault] = (),
        hosts: int | None = None,
        link: str | float | None = None,
        latency_ms: float | None = None,
        emulate_link: bool = False,
        control: Control | None = None,
        on_progress: OnProgress | None = None,
        **settings: Any,
    ) -> Record:
        """Run a variant on real ranks, then the references that its verdict needs, and return the record.

        Started inside torchrun, it joins the ranks that are there; then rank 0 gets the record and the others None.

        Args:
            variant: a variant's name, or the function that the exercise asks for; the lab's first (`broken`) if None.
            ranks: processes; the lab's default if None; under torchrun what it started.
            seed: of everything random.
            device, backend: overrides; chosen from the machine if None.
            record_dir: a new folder for the record; the user's cache if None.
            deadline_s: for each launch, then RankTimeout.
            faults: planned faults, for the run under study.
            hosts: network stacks on this machine to spread the ranks over; the lab's default if None, 1 for none.
            link: rate of each host's link, as in "400mbit" or in bits per second; the lab's default if None.
            latency_ms: added to each packet on its way out of a host, in milliseconds.
            emulate_link: delay collectives instead of making network stacks; what follows from it is `simulated`.
            control: to stop from another thread.
            on_progress: called with the role of the launch and its Progress, on this thread.
            settings: the lab's configuration, by name.

        Raises:
            UsageError: a wrong name or value, before anything starts.
            RankFailed, RankLeftEarly, RankTimeout, OutOfMemory, RunStopped.
        """
        chosen, faults = self.spec.chosen(variant), tuple(faults)
        if faults and not self.spec.variants:
            raise UsageError(f"{self.spec.slug} is a survey, in which nothing is broken on purpose; leave faults out")
        place = outer_place()
        count = _ranks(ranks, place, self.spec.ranks)
        request = Request(
            ranks=count,
            seed=_seed(seed),
            device=device,
            backend=backend,
            deadline_s=deadline_s,
            faults=faults,
            links=_links(self.spec, place, count, hosts, link, latency_ms, emulate_link),
            control=control,
            on_progress=on_progress,
        )
        if self.spec.baseline is not None and place is None:
            check_survey(count)
        config = self.spec.configure(chosen, {name: value for name, value in settings.items() if value is not None})
        if self.spec.baseline is not None and request.links is not None and config.keep == "yes":
            raise UsageError(
                f"{self.spec.slug} keeps what it finds as this machine's baseline, and a link that was set is not the "
                "machine's own; give keep=no (--set keep=no) to see what such a link gives, or leave hosts, link and "
                "latency out"
            )
        plans = self.spec.plan(variant if callable(variant) else chosen.name, config, request.ranks)
        if place is not None and any(plan.faults or plan.max_restarts for plan in plans):
            raise UsageError(
                f"{self.spec.slug} kills its ranks and starts them again, which under torchrun is torchrun's to do; "
                "start it without torchrun"
            )
        placement = request.placement(place)  # refuses what cannot be, before anything is made, as the next line does
        surroundings = around(plans, request, place)
        if place is not None and place.rank != 0:
            help_along(plans, request, place)
            return None  # type: ignore[return-value]
        if record_dir is not None and place is not None and attempt() > 0:
            record_dir = f"{record_dir}.attempt{attempt()}"  # the one before left its files in the folder that was asked for
        folder = store.new_folder(record_dir, f"{self.spec.slug}-{chosen.name}")
        with surroundings as stands:
            runs = execute(plans, request, folder, placement, place, stands)
        head = next(iter(runs.values())).ranks[0].head
        provenance = provenance_of(head, request.seed, stands, runs.values())
        record = Record(self.spec.slug, chosen.name, asdict(config), provenance, runs, folder)
        if self.spec.baseline is not None:
            return self._keep_baseline(record)
        record = msgspec.structs.replace(record, baseline=kept_baseline(head, provenance))
        store.write_record(record)
        return record

    def _keep_baseline(self, record: Record) -> Record:
        """Write a survey's record, and keep what it found for later labs unless the caller said no."""
        assert self.spec.baseline is not None
        baseline, keep = self.spec.baseline(record), record.config.get("keep") == "yes"
        if baseline is not None and keep:
            baseline = msgspec.structs.replace(baseline, set_aside=reason_to_set_aside(baseline))
        record = msgspec.structs.replace(record, baseline=baseline)
        store.write_record(record)
        if baseline is not None and keep and not baseline.set_aside:
            write_baseline(baseline)
        return record

    @checked()
    def judge(self, record: Record) -> Verdicts:
        """Ask each of the lab's questions of a record."""
        return Verdicts(detect.ask(name, record) for name in self.spec.detectors)

    @checked()
    def measures(self, record: Record) -> dict[str, Quantity]:
        """The record's measures, by name."""
        with understood(record):
            return self.spec.measures(apart(record).record)

    @checked()
    def tables(self, record: Record) -> list[Table]:
        """The lab's tables of a record; empty for a lab that has none."""
        with understood(record):
            return [] if self.spec.tables is None else self.spec.tables(apart(record).record)

    @checked()
    def compare(self, *records: Record) -> Comparison:
        """The measures of several records side by side."""
        return Comparison(
            dict(zip(names_of(records), map(self.measures, records), strict=True)),
            list(dict.fromkeys(record.provenance.label() for record in records)),
        )

    def check(self, function: Callable[..., Any], *, seed: int | None = None) -> CheckResult:
        """Check the learner's solution of the exercise, on cases that are drawn anew; says what is still wrong.

        Args:
            function: the learner's own.
            seed: draws the cases; None takes a new one each time. A result says its seed, with which the same cases come
                again.
        """
        if not callable(function):
            raise UsageError(f"check wants the function itself, as in lab.check(my_loader); given {type(function).__name__}")
        from .labs.checking import CannotTell, new_seed

        seed = new_seed() if seed is None else _seed(seed)
        try:
            return CheckResult(self.spec.exercise.check(function, self, seed), seed)
        except CannotTell as doubt:
            return CheckResult([], seed, str(doubt))

    @checked()
    def try_out(self, program: Callable[..., Any], task: Any, *, seed: int = 0, deadline_s: float = 20.0) -> Any:
        """Run a program on one rank, without a group, in a process of its own, and return what it returns.

        For the checks of exercises: code that hangs or crashes there does no harm here.
        """
        with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
            options = {"ranks": 1, "group": False, "seed": seed, "deadline_s": deadline_s}
            return launch(run_for_its_value, (program, task), folder=Path(folder), **options).values[0]

    def recordings(self) -> list[Record]:
        """Records of this lab made on other devices that labkit ships; empty while there are none."""
        from .capture import recordings

        return list(recordings(self.spec.slug))

    @checked()
    def figure(self, name: str, *records: Record, **choices: Any):
        """Draw one of the lab's figures from one record, or from several side by side.

        Args:
            choices: what a figure lets a reader choose, such as `step` of a timeline.

        Raises:
            UnknownName: with the names there are.
        """
        from .view.figures import figure

        if name not in self.spec.figures:
            raise UnknownName(f"figure of {self.spec.slug}", name, self.spec.figures)
        draw = figure(name)
        if unknown := [choice for choice in choices if choice not in inspect.signature(draw).parameters]:
            raise UsageError(f"the figure {name} has no choice {', '.join(unknown)}; leave it out")
        with blamed_on(*records):
            return draw(*(apart(record).record for record in records), **choices)

    @checked()
    def diff(self, before: str = "broken", after: str = "fixed") -> Diff:
        """The difference in source between two variants: all that the fix is."""
        for name in (before, after):
            self.spec.variant(name)  # refuses unknown names
        return Diff(before, after, self.spec.source(before), self.spec.source(after))

    def panel(self, **settings: Any):
        """The panel: controls, Run and Stop, live progress, figure, verdict, cost. For a notebook."""
        if not self.spec.variants:
            raise UsageError(f"{self.spec.slug} is a survey: without variants there is nothing for a panel to switch")
        from .view.widgets import Panel

        return Panel(self, **settings)

    @checked()
    def report(self, record: Record) -> dict[str, Any]:
        """The record's measures and verdicts as plain data, as `--json` writes them."""
        return report_of(record, record.lab or self.spec.slug, self.measures(record), self.judge(record))

    @checked()
    def invariants(self, *records: Record) -> str:
        """What must come out equal on every machine: statuses, exact counts, equality of hashes. No timing, no hash."""
        return "\n".join(line for record in records for line in self._invariants(record))

    def _invariants(self, record: Record) -> list[str]:
        if self.spec.invariants is not None:
            return [f"{record.lab} / {record.variant} on {record.run.ranks_said}", *self.spec.invariants(record)]
        found = self.measures(record)
        exact = [*self.spec.exact_measures, *(["weights_equal_single"] if record.variant in self.spec.same_bits else [])]
        lines = [f"{record.lab} / {record.variant} on {record.run.ranks_said}"]
        judged = [verdict for verdict in self.judge(record) if verdict.detector not in self.spec.timed_detectors]
        lines += [f"  {verdict.detector}: {verdict.status}" for verdict in judged]
        lines += [f"  {name} = {found[name].value}" for name in exact if name in found]
        return lines


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
        raise UsageError(f"seed must be a whole number from 0 to {2**31 - 1}; given {seed!r}")
    return seed


def _ranks(ranks: Any, place: Place | None, default: int) -> int:
    if place is not None and ranks not in (None, place.world_size):
        raise UsageError(
            f"ranks is {ranks}, but torchrun started {place.world_size} (WORLD_SIZE); leave ranks out, or start as many"
        )
    count = place.world_size if place else default if ranks is None else ranks
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_RANKS:
        raise UsageError(f"ranks must be a whole number from 1 to {MAX_RANKS}; given {count!r}")
    return count


def _links(
    spec: LabSpec,
    place: Place | None,
    ranks: int,
    hosts: int | None,
    link: str | float | None,
    latency_ms: float | None,
    emulate: bool,
) -> Links | None:
    """The hosts and links of a run: the caller's, else the lab's where the ranks are enough for them."""
    if place is not None:
        if hosts is not None or link is not None or latency_ms is not None or emulate:
            raise UsageError(
                "hosts and links of one machine were asked for, but torchrun started the ranks where they are; leave hosts, "
                "link and latency out, or run without torchrun"
            )
        return None
    if hosts is None and link is None and latency_ms is None and not emulate and ranks < spec.hosts:
        return None  # a lab of two hosts, run on one rank
    hosts = spec.hosts if hosts is None else hosts
    if link is None and hosts > 1:
        link = spec.link
    return links(ranks, hosts, link, latency_ms, emulate)
