"""What losses were taken over and multiplied by, update by update. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ...record.schema import Event, RankLog, Run, Step

MEAN, SUM, SEVERAL = 1, 2, 3
_BILLION = 1e9


@dataclass(frozen=True)
class Part:
    """One micro-batch on one rank.

    Attributes:
        kind: MEAN, SUM or SEVERAL; 0 where its loss is not known.
        share: the weight of all its targets together; 1 for a mean that nothing multiplies.
        targets: that its loss is taken over.
        site: the line on which backward is called.
        inputs: a hash of what the model was given; 0 where not known.
    """

    kind: int
    share: float
    targets: int
    site: int
    inputs: int


@dataclass(frozen=True)
class Window:
    """One update on one rank: its micro-batches, and how many batches were fetched for it."""

    step: int
    parts: tuple[Part, ...]
    fetches: int


def windows(log: RankLog) -> list[Window]:
    """The updates of a rank whose losses were looked at."""
    return [_window(step) for step in log.steps if step.counts.get("updates") and step.series.get("loss_kind")]


def _window(step: Step) -> Window:
    names = ("loss_kind", "loss_share", "loss_targets", "loss_site", "loss_inputs")
    columns = [step.series.get(name, []) for name in names]
    parts = [
        Part(kind, share / _BILLION, targets, site, inputs)
        for kind, share, targets, site, inputs in zip(*columns, strict=True)
    ]
    return Window(step.step, tuple(parts), sum(span.name == "fetch" for span in step.spans))


def micro_batches(of_rank: Sequence[Window]) -> int:
    """Backward passes of the usual update; 0 where there is none."""
    return statistics.mode(len(window.parts) for window in of_rank) if of_rank else 0


def forms(run: Run) -> list[Event]:
    """How the losses of rank 0 were put together, each form once."""
    return [event for event in run.ranks[0].events if event.name == "loss_form"]


def where_of(run: Run, site: int) -> str | None:
    """file:line of a call of backward on this line; else of the loop."""
    for event in forms(run):
        where = str(event.fields["where"])
        if where.endswith(f":{site}"):
            return where
    return str(run.fact("loop_where", "")) or None


def divided_by(run: Run, site: int) -> list[float]:
    """The numbers that the loss at this call is divided by, outermost first, as it was seen first with any."""
    for event in forms(run):
        numbers = [float(word) for word in str(event.fields["divided_by"]).split()]
        if str(event.fields["where"]).endswith(f":{site}") and numbers:
            return numbers
    return []


def divided_in_source(run: Run, site: int) -> list[str]:
    """What the source around this call divides by, as written."""
    found = [str(event.fields["source"]) for event in forms(run) if str(event.fields["where"]).endswith(f":{site}")]
    return next((text.split(", ") for text in found if text), [])
