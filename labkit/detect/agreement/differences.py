"""Why ranks hold different weights of one model. Pure.

Gradients are looked at as an optimizer takes its step, weights when whatever follows the step is done. What is equal on all
ranks, and since when, tells where the difference comes from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ...record.schema import Run
from ..runs import looked_at
from .measures import Held, Made, made, names
from .own_models import FEW, own_models
from .own_parts import own_parts


@dataclass(frozen=True)
class Difference:
    """One model whose weights differ between ranks.

    Attributes:
        run: of it.
        looks: at this model, in order.
        compared: looks at all models.
    """

    run: Run
    looks: list[Held]
    compared: list[Held]

    @cached_property
    def first(self) -> Held:
        """The first look at which weights differ."""
        return next(one for one in self.looks if one.apart)

    @cached_property
    def only_at_start(self) -> bool:
        """Whether they differ before the first pass alone, and are equal in two looks or more afterwards."""
        later = [one for one in self.looks if not one.start]
        return len(later) > 1 and not any(one.apart for one in later)

    @cached_property
    def meets_again(self) -> bool:
        """Whether they are equal at a later look."""
        at = self.looks.index(self.first)
        return any(not one.apart for one in self.looks[at + 1 :])

    @cached_property
    def from_the_start(self) -> bool:
        """Whether they differ before the first update, and ever since."""
        return self.looks[0].start and all(one.apart for one in self.looks)

    @cached_property
    def names(self) -> str:
        """Of the parameters that differ."""
        return names(self.run, self.first.model, self.first.apart or [])

    @cached_property
    def is_part(self) -> bool:
        """Whether some of the model's parameters differ and others stay equal at every look."""
        each = str(self.looks[-1].of_rank[0].get("each", "")).split()
        return bool(each) and 0 < len(self.looks[-1].apart or []) < len(each)

    @cached_property
    def updates(self) -> list[Made]:
        """Those that were looked at on all ranks, of optimizers that hold the same on all."""
        return [one for one in made(self.run) if one.comparable]

    @cached_property
    def gradients_equal(self) -> bool:
        """Whether all ranks applied the same gradients in two updates or more, and in no other ones different ones."""
        known = [one.gradients_apart for one in self.updates if one.gradients_apart is not None]
        return len(known) > 1 and not any(known)

    @cached_property
    def gradients_apart(self) -> bool:
        """Whether ranks applied different gradients in two updates or more."""
        return sum(bool(one.gradients_apart) for one in self.updates) > 1

    @cached_property
    def some_reduced(self) -> bool:
        """Whether some gradients of one optimizer were equal on all ranks in each of two looks or more, and others not."""
        return sum(one.some_equal for one in self.updates) > 1 and all(one.some_equal for one in self.updates)

    @cached_property
    def settings(self) -> str:
        """The settings of the optimizers as two ranks have them, where they differ; else empty."""
        for one in self.updates:
            if not one.alike("settings"):
                said = list(dict.fromkeys(str(fields.get("settings")) for fields in one.of_rank))
                common = set.intersection(*(set(text.split(", ")) for text in said))
                return " and ".join(", ".join(part for part in text.split(", ") if part not in common) for text in said)
        return ""

    @cached_property
    def own_settings(self) -> bool:
        """Whether ranks train with settings, or a learning rate, of their own from the first update on, as a search does."""
        rates = {next((s.scalar("lr_used") for s in log.steps if "lr_used" in s.scalars), None) for log in self.run.ranks}
        return len(rates) > 1 or bool(self.settings)

    @cached_property
    def state_apart(self) -> bool:
        """Whether the optimizers' states differ between ranks, although all applied the same gradients."""
        return self.gradients_equal and any(
            not one.alike("state") and all(fields.get("state") for fields in one.of_rank) for one in self.updates
        )

    @cached_property
    def updates_apart(self) -> bool:
        """Whether ranks made different numbers of updates out of as many backward passes."""
        updates = {sum(step.counts.get("updates", 0) for step in log.steps) for log in self.run.ranks}
        passes = {sum(step.counts.get("backward_calls", 0) for step in log.steps) for log in self.run.ranks}
        return len(updates) > 1 and len(passes) == 1

    # What ranks exchange

    @cached_property
    def own_hook(self) -> bool:
        """Whether the script gave DDP a communication hook of its own, or a group of some ranks alone."""
        group = self.run.fact("ddp_world_size", self.run.world_size)
        if isinstance(group, int) and group < self.run.world_size:
            return True
        return any(event.name == "ddp_comm_hook" for log in self.run.ranks for event in log.events) or str(
            self.run.fact("ddp_buckets_seen", "yes")
        ).startswith("no")

    @cached_property
    def reduced(self) -> bool:
        """Whether DDP reduced gradients in every update that was recorded, on every rank."""
        updates = [step for log in self.run.ranks for step in looked_at(log.steps) if step.counts.get("updates")]
        return bool(updates) and all(step.counts.get("reductions", 0) for step in updates)

    @cached_property
    def reduced_at_times(self) -> bool:
        """Whether DDP reduced gradients in any step."""
        return any(step.counts.get("reductions", 0) for log in self.run.ranks for step in log.steps)

    @cached_property
    def exchanged(self) -> bool:
        """Whether the script itself exchanged as many numbers in a step as a model has weights, or it is not known how
        many."""
        steps = [step for log in self.run.ranks for step in log.steps]
        known = any("exchanged_elements" in step.counts for step in steps)
        if not known:
            return any(step.counts.get("script_collectives", 0) and not step.counts.get("barriers", 0) for step in steps)
        model = min([FEW, *(int(one.of_rank[0].get("elements", FEW)) for one in self.updates)])
        return max(step.counts.get("exchanged_elements", 0) for step in steps) >= model

    @cached_property
    def exchanged_in_forward(self) -> bool:
        """Whether the script exchanged numbers within a forward pass, as parts of one model do."""
        return any(step.counts.get("exchanged_in_forward", 0) for log in self.run.ranks for step in log.steps)

    @cached_property
    def others_are_kept_equal(self) -> bool:
        """Whether another model is trained beside this one that is wrapped, or is equal on all ranks at every look."""
        others = [one for one in self.compared if one.model != self.first.model]
        return bool(others) and (any(one.wrapped for one in others) or not any(one.apart for one in others))


Told = tuple[Literal["found", "inconclusive"], str]


def explained(seen: Difference) -> Told:
    """(status, reason) of weights that differ and do not meet again."""
    if seen.exchanged_in_forward:
        return "inconclusive", "weights-differ-and-ranks-talk"
    if seen.first.wrapped:
        return _under_ddp(seen)
    if not seen.first.whole:
        if seen.exchanged:
            return "inconclusive", "weights-differ-and-ranks-talk"
        return "found", "parameters-outside-the-wrapper"
    if seen.from_the_start and seen.gradients_equal:
        return "found", "ranks-start-apart"
    if seen.others_are_kept_equal and seen.reduced and not seen.exchanged:
        # one that each rank begins with by itself may be its own on purpose, as a head for its own data is
        if seen.from_the_start or own_parts(seen.run):
            return "inconclusive", "part-kept-by-each-rank"
        return "found", "model-outside-the-wrapper"
    if seen.settings and seen.gradients_equal:
        return "found", "settings-differ-between-ranks"
    if seen.is_part and seen.some_reduced:
        return "found", "some-gradients-not-reduced"
    if seen.gradients_equal and not seen.from_the_start:
        return "found", "weights-drift-with-equal-gradients"
    if (seen.exchanged or seen.reduced_at_times) and not own_models(seen.run):
        return "inconclusive", "weights-differ-and-ranks-talk"
    return _alone(seen)


def _alone(seen: Difference) -> Told:
    if seen.own_settings or own_models(seen.run):
        return "inconclusive", "ranks-train-models-of-their-own"
    return "found", "ddp-bypassed" if seen.run.fact("ddp_world_size") is not None else "nothing-is-reduced"


_UNDER_DDP: tuple[tuple[Callable[[Difference], object], str], ...] = (
    (lambda seen: seen.settings, "settings-differ-between-ranks"),
    (lambda seen: seen.from_the_start, "changed-after-the-wrap"),
    (lambda seen: seen.updates_apart, "updates-differ-between-ranks"),
    (lambda seen: seen.state_apart, "state-differs-between-ranks"),
    (lambda seen: seen.is_part, "some-weights-drift-under-ddp"),
    (lambda seen: seen.gradients_apart, "gradients-changed-after-ddp"),
    (lambda seen: True, "weights-drift-under-ddp"),
)
"""What weights of a model differ by whose gradients DDP reduces. The first that holds is told."""


def _under_ddp(seen: Difference) -> Told:
    if seen.own_hook or any(fields.get("ignored") for fields in seen.first.of_rank):
        return "inconclusive", "weights-differ-by-choice"
    if seen.reduced:
        return "found", next(reason for holds, reason in _UNDER_DDP if holds(seen))
    if seen.exchanged or seen.reduced_at_times:
        return "inconclusive", "weights-differ-and-ranks-talk"
    return _alone(seen)


def without_updates(run: Run) -> list[int]:
    """Ranks that reduce gradients with the others and make no update, while others make some and send no weights."""
    updates = [sum(step.counts.get("updates", 0) for step in log.steps) for log in run.ranks]
    reductions = [sum(step.counts.get("reductions", 0) for step in log.steps) for log in run.ranks]
    made = [step.counts for log in run.ranks for step in log.steps if step.counts.get("updates")]
    sent = max((counts.get("exchanged_elements", 0) for counts in made), default=0)
    idle = [log.head.rank for log, count in zip(run.ranks, updates, strict=True) if not count]
    if max(updates) < 3 or not idle or sent >= FEW or min(reductions) < 3:
        return []
    return idle
