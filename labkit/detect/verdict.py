"""The verdict: what a detector says of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..record.quantity import Quantity
from ..showing import as_html
from .catalogue import Said, reason, written

Status = Literal["found", "clear", "inconclusive", "not_applicable"]
STATUSES: tuple[Status, ...] = ("found", "clear", "inconclusive", "not_applicable")


@dataclass(frozen=True, kw_only=True, repr=False)
class Verdict:
    """One answer to one question.

    Attributes:
        detector: its name.
        question: what it asks.
        status: `found` and `clear` are answers; `inconclusive` says what could hide the effect and what to run instead;
            `not_applicable` says what the record lacks.
        reason: the key of what it says; the catalogue holds the texts.
        numbers: what stands in them.
        evidence: the numbers it rests on.
        where: file:line, where known.
        waste: the share of device time that the pitfall costs, where it has one.
        notes: what follows the cause, in order; each text begins with what parts it from the one before.
        in_script: whether what it advises is for a script of one's own, which has no variants and no `--set`.
    """

    detector: str
    question: str
    status: Status
    reason: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Quantity] = field(default_factory=dict)
    where: str | None = None
    waste: float | None = None
    notes: tuple[Said, ...] = ()
    in_script: bool = False

    @property
    def cause(self) -> str:
        """One sentence: what is wrong, or why there is no answer."""
        return written(reason(self.reason).cause, self.numbers) + "".join(map(str, self.notes)) if self.reason else ""

    @property
    def fix(self) -> str:
        """One sentence a person can act on; empty where there is nothing to do."""
        if not self.reason:
            return ""
        told = reason(self.reason)
        return written(told.script if self.in_script and told.script else told.fix, self.numbers)

    def __str__(self) -> str:
        lines = [f"{self.status.upper().replace('_', ' ')}  {self.detector}: {self.question}"]
        lines += [f"  {text}" for text in (self.cause, self.fix and f"Fix: {self.fix}") if text]
        if self.where:
            lines.append(f"  Where: {self.where}")
        if self.waste is not None:
            lines.append(f"  Waste: {self.waste:.0%} of device time")
        lines += [f"  {name.replace('_', ' ')}: {quantity.said}" for name, quantity in self.evidence.items()]
        return "\n".join(lines)

    __repr__ = __str__

    _repr_html_ = as_html


def answering(detector: str, question: str) -> Callable[..., Verdict]:
    """A maker of one detector's verdicts: `answer(status, reason, evidence, where=…, waste=…, notes=…, **numbers)`.

    Args of the maker:
        status: the answer.
        reason: the key of what it says, in a catalogue.
        evidence: the numbers it rests on.
        where: file:line, where known.
        waste: the share of device time that it costs.
        notes: what follows the cause.
        numbers: what stands in the reason's texts, by name.
    """

    def answer(
        status: Status,
        reason: str = "",
        evidence: Mapping[str, Quantity] | None = None,
        *,
        where: str | None = None,
        waste: float | None = None,
        notes: tuple[Said, ...] = (),
        **numbers: Any,
    ) -> Verdict:
        return Verdict(
            detector=detector,
            question=question,
            status=status,
            reason=reason,
            numbers=numbers,
            evidence=evidence or {},
            where=where,
            waste=waste,
            notes=notes,
        )

    return answer


class Verdicts(tuple[Verdict, ...]):
    """The verdicts on one record, in the lab's order.

    Attributes:
        folded: how many of them are not shown one by one: those that do not apply, where every question there is was asked.
    """

    folded: int

    def __new__(cls, verdicts: Iterable[Verdict], *, fold: bool = False) -> Verdicts:
        made = super().__new__(cls, tuple(verdicts))
        made.folded = sum(verdict.status == "not_applicable" for verdict in made) if fold else 0
        return made

    @property
    def shown(self) -> list[Verdict]:
        """Those that are shown one by one."""
        return [verdict for verdict in self if not self.folded or verdict.status != "not_applicable"]

    def closing(self, how: str = "labkit.lab(SLUG).judge(record)") -> str:
        """The line that stands for those that are not shown; `how` says what shows them. Empty where all are."""
        more = "1 more question needs" if self.folded == 1 else f"{self.folded} more questions need"
        return f"{more} what was not recorded: {how} says what" if self.folded else ""

    @property
    def found(self) -> list[Verdict]:
        """Those that found something."""
        return [verdict for verdict in self if verdict.status == "found"]

    @property
    def headline(self) -> Verdict:
        """The one to read first: the first that found something, else the first that could not tell, else the first."""
        for status in ("found", "inconclusive", "clear"):
            for verdict in self:
                if verdict.status == status:
                    return verdict
        return self[0]

    def __getitem__(self, key):  # type: ignore[override]
        """By position, or by the detector's name."""
        if isinstance(key, str):
            for verdict in self:
                if verdict.detector == key:
                    return verdict
            raise KeyError(f"no verdict of {key!r}; there are: {', '.join(v.detector for v in self)}")
        return super().__getitem__(key)

    def __repr__(self) -> str:
        return "\n".join([*(str(verdict) for verdict in self.shown), *filter(None, [self.closing()])])

    _repr_html_ = as_html
