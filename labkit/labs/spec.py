"""The nouns of a lab: its spec, its variants, what a run needs, its exercise. No torch here, so that listing is quick."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..errors import UnknownName, UsageError
from .settings import configure
from .settings import setting as setting

if TYPE_CHECKING:
    from ..ranks.context import RankContext
    from ..ranks.faults import Fault
    from ..record.baseline import Baseline
    from ..record.quantity import Quantity
    from ..record.schema import Record
    from ..record.table import Table
    from ..theory.panel import Panel
    from .help import Help
    from .opened import OpenedLab


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A program of a lab.

    Attributes:
        name: `broken` and `fixed` always exist; others are named for what they do.
        summary: one line.
        defaults: configuration values that differ from the lab's own.
    """

    name: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DataStore:
    """What a launch reads over the network from one server: the same for all launches of a record.

    Attributes:
        rate_bits_per_s: of the server's link, all readers together.
        items: makes all that the server holds, item after item.
        item_bytes: size of each.
        emulate: let the server pace itself on loopback, as where no network stacks can be made.
    """

    rate_bits_per_s: float
    items: Callable[[], bytes]
    item_bytes: int
    emulate: bool = False


ConfigT = TypeVar("ConfigT")


@dataclass(frozen=True)
class TaskFor(Generic[ConfigT]):
    """What the ranks of one launch do: the base of a lab's `Task`, which adds what its launches differ in.

    Attributes:
        config: of the run.
    """

    config: ConfigT


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """One launch that a record needs.

    Attributes:
        role: what the run is there for; `Role.VARIANT` is the one under study. A lab's own word where no `Role` fits.
        program: importable, or a function that travels by value.
        task: handed to each rank as `context.task`.
        ranks: how many.
        group: whether the ranks form a process group.
        network: whether it runs on the hosts and links that the run was given; a launch of one rank never does.
        threads: intra-op threads of each rank; None gives it those of a rank under study, so that sums are equal.
        data_store: what the ranks find at `context.data_store`; None for nothing.
        faults: planned faults of this launch, before those that the caller of `Lab.run` adds to the run under study.
        max_restarts: how often the elastic agent may start the ranks again.
    """

    role: str
    program: Callable[[RankContext], object]
    task: Any
    ranks: int
    group: bool = True
    network: bool = True
    threads: int | None = None
    data_store: DataStore | None = None
    faults: tuple[Fault, ...] = ()
    max_restarts: int = 0


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """What the learner writes.

    Attributes:
        task: what to write, as the notebook says it.
        signature: the first line of the function.
        check: (function, lab, seed) -> findings, an empty list when it is right; what each finding says is still wrong.
            The seed draws the cases. It raises `checking.CannotTell` where this machine's noise leaves it open.
        name: of an exercise beside the lab's first; empty for the first.
        help: -> where to begin, hints, a solution; None where there is none.
    """

    task: str
    signature: str
    check: Callable[[Callable[..., Any], OpenedLab, int], list[str]]
    name: str = ""
    help: Callable[[], Help] | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A program whose record may be shown without its label, for somebody to diagnose.

    Attributes:
        fault: the detector that finds what is wrong with it; empty where nothing is. With `asks` a word of its own.
        variant: which; None for a survey.
        settings: values for each setting, of which one is drawn.
        asks: what stands beside the answer where no detector does; then the answer is right by how the record was made.
        evidence: measures that tell where no detector does, or where other programs keep the detector from an answer. Of a
            fault with a detector they are named only where its settings lift them far above what a busy machine does.
    """

    fault: str
    variant: str | None = None
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    asks: str = ""
    evidence: tuple[str, ...] = ()


def cases(settings: Mapping[str, tuple[Any, ...]], *programs: tuple[str, str]) -> tuple[Case, ...]:
    """Cases that share what their settings are drawn from.

    Args:
        programs: (the detector that finds the fault, the variant); an empty detector for a healthy one.
    """
    return tuple(Case(fault=fault, variant=variant, settings=settings) for fault, variant in programs)


@dataclass(frozen=True, kw_only=True)
class Capture:
    """One run that `labkit capture` keeps.

    Attributes:
        name: of the recording's folder.
        variant: which.
        settings: configuration values, on any device.
        on_gpu: values that take their place where there is a GPU.
    """

    name: str
    variant: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    on_gpu: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Symptom:
    """What a person sees, a row of the README's first table.

    Attributes:
        seen: as they would say it.
        cause: what it may be.
        variants: those that show it; none for the lab as a whole.
    """

    seen: str
    cause: str
    variants: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LabSpec:
    """One pitfall.

    Attributes:
        number, slug, title: number orders the labs and names the notebook.
        question: the one question that the lab answers.
        symptom: what a person would see, in one sentence.
        minutes: for a learner.
        ranks: the default number.
        hosts, link: the default number of hosts on one machine, and the rate of each host's link.
        config: a frozen dataclass whose fields carry `help`, and `low`, `high` or `choices`, as metadata.
        variants: the first is the default.
        detectors: which questions are asked of a record, the lab's own first.
        plan: (variant name or the learner's function, config, ranks) -> the launches that the record needs.
        exercise: what the learner writes.
        builds: further exercises, each with a name: a mechanism to be built from its parts.
        mysteries: the programs among which an unlabelled record is drawn.
        measures: from a record to its measures, by name.
        source: from a variant's name to the source that a lesson shows of it.
        tables: from a record to tables that say more than its measures, or None.
        figures: names of the figures that suit it, the first is the panel's.
        figures_that_name: those of them that say what ran, so that a record without a label has them after its diagnosis.
        controls: configuration values that the panel lets a reader set, beside variant, ranks and seed.
        main_measures: measures that a person reads first, in this order; the others are shown on request. All if empty.
        exact_measures: measures that come out equal on every machine.
        same_bits: variants whose final weights must equal their reference's to the bit.
        timed_detectors: of the detectors, those that judge speed: each machine has its own answer, so no invariant.
        baseline: of a survey: from its record to what later labs compare with, or None.
        invariants: from a record to the lines that hold on every machine, in place of the statuses and exact measures.
        captures: what `labkit capture` runs of it; every variant at its defaults if empty.
        needs_gpu: what of the lab only a GPU can show, a phrase each.
        symptoms: what people see who have this pitfall, for the README.
        simulated: what of it comes from a model and not from a run, a phrase each.
        theory: from a record, or None, to the panel of the formula behind the lab, the record's point on it; or None.
    """

    number: int
    slug: str
    title: str
    question: str
    symptom: str
    minutes: int
    ranks: int
    config: type
    variants: tuple[Variant, ...]
    detectors: tuple[str, ...]
    plan: Callable[[Any, Any, int], list[RunPlan]]
    exercise: Exercise
    measures: Callable[[Record], dict[str, Quantity]]
    source: Callable[[str], str]
    figures: tuple[str, ...]
    figures_that_name: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    main_measures: tuple[str, ...] = ()
    exact_measures: tuple[str, ...] = ()
    same_bits: tuple[str, ...] = ()
    timed_detectors: tuple[str, ...] = ()
    baseline: Callable[[Record], Baseline | None] | None = None
    invariants: Callable[[Record], list[str]] | None = None
    captures: tuple[Capture, ...] = ()
    tables: Callable[[Record], list[Table]] | None = None
    hosts: int = 1
    link: str = ""
    needs_gpu: tuple[str, ...] = ()
    symptoms: tuple[Symptom, ...] = ()
    simulated: tuple[str, ...] = ()
    theory: Callable[[Record | None], Panel] | None = None
    builds: tuple[Exercise, ...] = ()
    mysteries: tuple[Case, ...] = ()

    def named_exercise(self, name: str | None) -> Exercise:
        """The lab's first exercise, or one of `builds`.

        Raises:
            UnknownName: with the names there are.
        """
        if not name:
            return self.exercise
        found = {build.name: build for build in self.builds}
        if name not in found:
            raise UnknownName(f"exercise of {self.slug}, beside its first one", name, found)
        return found[name]

    def variant(self, name: str) -> Variant:
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise UnknownName(f"variant of {self.slug}", name, [variant.name for variant in self.variants])

    def chosen(self, variant: str | Callable[..., Any] | None) -> Variant:
        """The variant that is meant: by name, the learner's own function, or the lab's first if None.

        A survey has no variants; what it runs is called "survey".
        """
        if callable(variant):
            name = re.sub(r"[^a-z0-9]+", "-", getattr(variant, "__name__", "").lower()).strip("-")
            return Variant(name=name[:60].strip("-") or "yours", summary="the learner's own")
        if not self.variants:
            if variant is not None:
                raise UsageError(f"{self.slug} is a survey and has no variants; given {variant!r}; leave it out")
            return Variant(name="survey", summary=self.question)
        return self.variants[0] if variant is None else self.variant(variant)

    def configure(self, variant: Variant, settings: Mapping[str, Any]) -> Any:
        """The configuration of one run: the lab's defaults, the variant's, then what the caller set, all checked."""
        return configure(self.config, {**variant.defaults, **settings})

    def chosen_settings(self, variant: str, config: Mapping[str, Any]) -> dict[str, Any]:
        """Of a run's settings those that differ from what its variant has by itself; of a variant of one's own the lab's."""
        known = next((each for each in self.variants if each.name == variant), None)
        usual = {each.name: each.default for each in dataclasses.fields(self.config)}
        usual |= known.defaults if known else {}
        return {name: value for name, value in config.items() if name in usual and value != usual[name]}


def lazy(where: str, package: str) -> Callable[..., Any]:
    """The function that `where` names ("...record.measures:data_measures"), its module loaded at the first call.

    So a lab is listed without what it needs to run.

    Args:
        where: a module, with the dots of an import from `package`, a colon, and the function's name.
        package: the lab's `__name__`.
    """

    def call(*arguments: Any) -> Any:
        return _named(where, package)(*arguments)

    return call


def source_of(where: str, package: str) -> Callable[[str], str]:
    """A lab's `source`: what a table holds under a variant's name, as it is written.

    Args:
        where: as for `lazy`, of a mapping from variants to functions, classes, modules or text; several in a tuple.
        package: the lab's `__name__`.
    """

    def source(variant: str) -> str:
        held = _named(where, package)[variant]
        parts = held if isinstance(held, tuple) else (held,)
        return "\n\n".join(part if isinstance(part, str) else inspect.getsource(part) for part in parts)

    return source


def _named(where: str, package: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(importlib.import_module(module, package), name)
