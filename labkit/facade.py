"""The façade: one lab, from a run to a verdict. The only module of the package that may see everything."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import labs
from .arguments import checked
from .classroom.mystery import Mystery, make
from .detect.runs import names_of
from .detect.verdict import Verdicts
from .errors import RankTimeout, UsageError
from .labs.spec import LabSpec
from .ranks.entry import run_for_its_value
from .ranks.faults import Fault
from .ranks.join import outer_place
from .ranks.launch import DEADLINE_S, Control, launch
from .reading import Reading, picture_of, reading_of
from .record.quantity import Quantity
from .record.schema import Record
from .record.table import Table
from .request import OnProgress, checked_seed, request_of
from .results import CheckResult, Comparison, Diagnosed, Diff, Hint, Shown
from .runner import run_lab
from .showing import as_html
from .view.live.run_bar import run_shown

if TYPE_CHECKING:
    from .labs.help import Help
    from .view.widgets import Panel

OTHER_MYSTERIES = 5
"""Programs that are tried in place of one whose fault a busy machine hides."""


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
        self._hints: dict[str, int] = {}

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
    ) -> Reading:
        """Run a variant on real ranks, then the references that its verdict needs, and return what they recorded.

        Started inside torchrun, it joins the ranks that are there; then rank 0 gets the reading and the others None.

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
            on_progress: called with the role of the launch and its Progress, on this thread; if None a bar under the
                notebook's cell says how far it is.
            settings: the lab's configuration, by name.

        Raises:
            UsageError: a wrong name or value, before anything starts.
            RankFailed, RankLeftEarly, RankTimeout, OutOfMemory, RunStopped.
        """
        place = outer_place()
        request = request_of(
            self.spec,
            place,
            ranks=ranks,
            seed=seed,
            device=device,
            backend=backend,
            deadline_s=deadline_s,
            faults=tuple(faults),
            asked_links=(hosts, link, latency_ms, emulate_link),
            control=control,
            on_progress=on_progress,
        )
        if on_progress is not None or place is not None:
            record = run_lab(self.spec, variant, settings, request, place, record_dir)
        else:
            with run_shown(f"{self.spec.slug} / {self.spec.chosen(variant).name}") as shown:
                seen = replace(request, on_progress=shown)
                record = run_lab(self.spec, variant, settings, seen, place, record_dir)
        return None if record is None else reading_of(record, self.spec)  # type: ignore[return-value]

    @checked()
    def judge(self, record: Record) -> Verdicts:
        """Ask each of the lab's questions of a record."""
        return reading_of(record, self.spec).verdicts

    @checked()
    def measures(self, record: Record) -> dict[str, Quantity]:
        """The record's measures, by name.

        Raises:
            RecordError: it does not hold what the lab measures.
        """
        (made,) = reading_of(record, self.spec).measured
        return made.whole()

    @checked()
    def tables(self, record: Record) -> list[Table]:
        """The lab's tables of a record; empty for a lab that has none.

        Raises:
            RecordError: it does not hold what they show.
        """
        (made,) = reading_of(record, self.spec).tabled
        return made.whole()

    @checked()
    def compare(self, *records: Record) -> Comparison:
        """The measures of several records side by side."""
        return Comparison(
            dict(zip(names_of(records), map(self.measures, records), strict=True)),
            list(dict.fromkeys(record.provenance.label() for record in records)),
        )

    @checked(but=("function", "seed"))
    def check(self, function: Callable[..., Any], exercise: str | None = None, *, seed: int | None = None) -> CheckResult:
        """Check the learner's solution of an exercise, on cases that are drawn anew; says what is still wrong.

        Args:
            function: the learner's own.
            exercise: the name of one that builds a mechanism; the lab's first exercise if None.
            seed: draws the cases; None takes a new one each time. A result says its seed, with which the same cases come
                again.
        """
        if not callable(function):
            raise UsageError(f"check wants the function itself, as in lab.check(my_loader); given {type(function).__name__}")
        from .labs.checking import CannotTell, new_seed, unfit

        asked = self.spec.named_exercise(exercise)
        seed = new_seed() if seed is None else checked_seed(seed)
        try:
            wrong = unfit(function, asked.signature)
            return CheckResult([wrong] if wrong else asked.check(function, self, seed), seed)
        except CannotTell as doubt:
            return CheckResult([], seed, str(doubt))

    @checked()
    def hint(self, exercise: str | None = None) -> Hint:
        """The next of three hints for an exercise; after the third, the third again.

        Args:
            exercise: as for `check`.
        """
        help_ = self._help(exercise)
        given = min(self._hints.get(exercise or "", 0) + 1, len(help_.hints))
        self._hints[exercise or ""] = given
        return Hint(given, len(help_.hints), help_.hints[given - 1])

    @checked()
    def solution(self, exercise: str | None = None) -> Shown:
        """One solution of an exercise, folded."""
        help_ = self._help(exercise)
        return Shown("One solution", help_.solution, help_.note, folded=True)

    @checked()
    def reset_exercise(self, exercise: str | None = None) -> Shown:
        """Begin an exercise again: what it starts from, in a new cell where there is a notebook, and the first hint next."""
        help_ = self._help(exercise)
        self._hints.pop(exercise or "", None)
        return Shown("Where to begin", help_.start, fresh_cell=True)

    def _help(self, exercise: str | None) -> Help:
        asked = self.spec.named_exercise(exercise)
        if asked.help is None:
            raise UsageError(f"this exercise of {self.spec.slug} has no hints; lab.check says what is wrong with an answer")
        return asked.help()

    @checked()
    def mystery(self, seed: int | None = None) -> Mystery:
        """Run one of the lab's programs without saying which: a record to diagnose. Another seed, another program.

        Args:
            seed: chooses it, and its settings; None takes a new one, and another where this machine hides what it shows.
                The same seed gives the same program.

        Raises:
            CannotTell: this machine is too busy for the record to show its fault.
        """
        from .labs.checking import CannotTell, new_seed

        if seed is not None:
            return make(self, checked_seed(seed))
        for _ in range(OTHER_MYSTERIES):
            with contextlib.suppress(CannotTell):  # what times show is hidden by noise: another program may show more
                return make(self, new_seed())
        return make(self, new_seed())

    @checked()
    def diagnose(self, mystery: Mystery, answer: str) -> Diagnosed:
        """Say what is wrong with a mystery; the detectors say whether you are right, and what their evidence is.

        Args:
            answer: one of `mystery.choices`: the name of a fault, or "nothing".

        Raises:
            UnknownName: no such choice, with those there are.
        """
        return mystery.diagnose(answer)

    @checked()
    def try_out(self, program: Callable[..., Any], task: Any, *, seed: int = 0, deadline_s: float = 20.0) -> Any:
        """Run a program on one rank, without a group, in a process of its own, and return what it returns.

        For the checks of exercises: code that hangs or crashes there does no harm here.
        """
        return self._values(program, task, ranks=1, group=False, seed=seed, deadline_s=deadline_s)[0]

    @checked()
    def try_on_ranks(
        self, program: Callable[..., Any], task: Any, *, ranks: int, seed: int = 0, deadline_s: float = 60.0
    ) -> list[Any]:
        """Run a program on a group of ranks, and return what each returns. For the checks of exercises."""
        return self._values(program, task, ranks=ranks, group=True, seed=seed, deadline_s=deadline_s)

    def _values(self, program: Callable[..., Any], task: Any, **options: Any) -> list[Any]:
        def once(deadline_s: float) -> list[Any]:
            with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
                how = {**options, "deadline_s": deadline_s}
                return list(launch(run_for_its_value, (program, task), folder=Path(folder), **how).values)

        try:
            return once(options["deadline_s"])
        except RankTimeout as error:
            if all(report.state != "not started" for report in error.ranks.values()):
                raise
            return once(3 * options["deadline_s"])  # the machine was too busy to start it: the function is not to blame

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
        return picture_of(self.spec, name, *records, **choices)

    @checked()
    def diff(self, before: str = "broken", after: str = "fixed") -> Diff:
        """The difference in source between two variants: all that the fix is."""
        for name in (before, after):
            self.spec.variant(name)  # refuses unknown names
        return Diff(before, after, self.spec.source(before), self.spec.source(after))

    def panel(self, **settings: Any) -> Panel:
        """The panel: controls, Run and Stop, live progress, figure, verdict, cost. For a notebook."""
        if not self.spec.variants:
            raise UsageError(f"{self.spec.slug} is a survey: without variants there is nothing for a panel to switch")
        from .view.widgets import Panel

        return Panel(self, **settings)

    @checked()
    def theory(self, record: Record | None = None, **settings: Any):
        """The formula behind the lab, to move: sliders, and curves that follow at once. For a notebook; nothing is run.

        Args:
            record: whose measured point is laid on the curves, the sliders where its run stood; None shows the curves.
            settings: where sliders begin, by name.

        Raises:
            UnknownName: there is no such slider.
            UsageError: a value that it cannot take, or a lab without such a panel.
        """
        if self.spec.theory is None:
            raise UsageError(f"{self.spec.slug} has no panel of its theory")
        from .view.theory import TheoryPanel

        return TheoryPanel(self.spec.theory(record).at(**settings))

    @checked()
    def report(self, record: Record) -> dict[str, Any]:
        """The record's measures and verdicts as plain data, as `--json` writes them."""
        return reading_of(record, self.spec).report()

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
