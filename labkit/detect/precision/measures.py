"""Arrays and numbers out of records about precision: gradients, updates, scale, speed. Pure; no torch, no I/O.

All of it is of the first rank: ranks that train one model hold equal weights and gradients when the optimizer steps.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from ...record.columns import NOT_HASHED
from ...record.schema import Run, Step
from ...record.vocabulary import LOWEST_EXPONENT
from ...theory.formats import NumberFormat
from ..loss import SMOOTHED
from ..runs import train_steps

_MEMORY = {"weights_bytes": "parameters", "gradients_bytes": "gradients", "optimizer_bytes": "optimizer_state"}
"""Measure -> category of what a rank keeps."""

LAST = SMOOTHED
"""Steps whose mean is called the final loss: the end of the line that is drawn."""


def steps_of(run: Run) -> tuple[Step, ...]:
    """The steps of the first rank."""
    return train_steps(run.ranks[0]) if run.ranks else ()


def updates_of(run: Run) -> list[Step]:
    """Steps in which the optimizer took a step and what it took was recorded."""
    return [step for step in steps_of(run) if step.counts.get("updates") and step.counts.get("gradient_elements")]


def zero_shares(run: Run) -> np.ndarray:
    """By update, of those with finite gradients only: share of gradient elements that are exactly 0."""
    finite = [step.counts for step in updates_of(run) if not step.counts.get("gradient_nonfinite")]
    return np.array([counts.get("gradient_zeros", 0) / counts["gradient_elements"] for counts in finite])


def lost_shares(run: Run) -> np.ndarray:
    """By update: of the weights whose gradient is not 0, the share that the update leaves as they are."""
    shares = []
    for step in updates_of(run):
        counts = step.counts
        moving = counts["gradient_elements"] - counts.get("gradient_zeros", 0)
        if moving and "updates_lost" in counts and not counts.get("weights_nonfinite"):
            shares.append(counts["updates_lost"] / moving)
    return np.array(shares)


def never_moved(run: Run) -> float | None:
    """Of the weights that had a gradient other than 0, the share that still held its first value after the last update.

    Updates that round away one by one may still come through in the end, if something keeps what rounding took.
    """
    told = [step for step in updates_of(run) if step.counts.get("weights_with_gradient")]
    if not told:
        return None
    counts = told[-1].counts
    return counts.get("weights_as_first", 0) / counts["weights_with_gradient"]


@dataclass(frozen=True)
class Excess:
    """A share beyond the reference's, of what the reference leaves.

    Attributes:
        share: of what is not in the reference's share anyway.
        low, high: three standard errors of the two means below and above.
        own, reference: the two means.
        updates: how many were compared, of the shorter run.
    """

    share: float
    low: float
    high: float
    own: float
    reference: float
    updates: int


def excess(own: np.ndarray, reference: np.ndarray) -> Excess | None:
    """How far shares exceed a reference's; None where either is empty."""
    if not len(own) or not len(reference):
        return None
    room = max(1e-12, 1 - float(reference.mean()))
    share = (float(own.mean()) - float(reference.mean())) / room
    error = 3 * float(np.sqrt(own.var() / len(own) + reference.var() / len(reference))) / room
    count = min(len(own), len(reference))
    return Excess(share, share - error, share + error, float(own.mean()), float(reference.mean()), count)


@dataclass(frozen=True)
class Scaling:
    """What a gradient scaler did, by step in which it was asked.

    Attributes:
        step: the step's number.
        scale: with which it was asked.
        skipped: whether it took no step.
        asked: how often it was: a script whose every step is skipped never comes to the next step of its record.
    """

    step: np.ndarray
    scale: np.ndarray
    skipped: np.ndarray
    asked: np.ndarray


def scaling(run: Run) -> Scaling | None:
    """What the scaler did; None where none was asked."""
    asked = [step for step in steps_of(run) if step.counts.get("scaler_steps") and "scale" in step.scalars]
    if not asked:
        return None
    return Scaling(
        np.array([step.step for step in asked]),
        np.array([step.scalar("scale") for step in asked]),
        np.array([not step.counts.get("updates") for step in asked]),
        np.array([step.counts["scaler_steps"] for step in asked]),
    )


def losses(run: Run) -> np.ndarray:
    """By step of the first rank: the loss, NaN where none was recorded."""
    return np.array([step.scalar("loss_local") if "loss_local" in step.scalars else np.nan for step in steps_of(run)])


def final_loss(run: Run) -> float | None:
    """Mean loss of the last steps; None where none was recorded."""
    recorded = [step.scalar("loss_local") for step in steps_of(run) if "loss_local" in step.scalars]
    return float(np.mean(recorded[-LAST:])) if recorded else None


@dataclass(frozen=True)
class NonFinite:
    """The first step with a value that is no number or infinite.

    Attributes:
        step: its number.
        what: "loss", "gradients" or "weights", whichever came first within the step.
        ranks: on which it is so in that step, the first that saw it at their head.
    """

    step: int
    what: str
    ranks: tuple[int, ...] = (0,)


def first_nonfinite(run: Run) -> NonFinite | None:
    """Where a run first left the finite numbers, of what the optimizer took, on any rank; None where it never did.

    Gradients that a scaler saw and skipped do not count: that is its work.
    """
    found = [(*of_rank, log.head.rank) for log in run.ranks if (of_rank := _nonfinite(train_steps(log))) is not None]
    if not found:
        return None
    number, what, _ = min(found)
    return NonFinite(number, what, tuple(rank for other, _, rank in found if other == number))


def _nonfinite(steps: tuple[Step, ...]) -> tuple[int, str] | None:
    for step in steps:
        if "loss_local" in step.scalars and not np.isfinite(step.scalar("loss_local")):
            return step.step, "loss"
        for what in ("gradient", "weights"):
            if step.counts.get(f"{what}_nonfinite"):
                return step.step, "gradients" if what == "gradient" else what
    return None


@dataclass(frozen=True)
class Repeated:
    """Steps that read the same batch as the step before them, after an update that moved weights.

    Attributes:
        pairs: how many.
        equal: of these, how often the loss was the very same number.
        seen_to_move: whether the program counted the weights that each update left as they were.
    """

    pairs: int
    equal: int
    seen_to_move: bool


def repeated_batches(run: Run) -> Repeated:
    """How often a loss stood still on a batch that came again, although weights were updated in between."""
    pairs = equal = counted = 0
    steps = steps_of(run)
    for before, after in itertools.pairwise(steps):
        batch = before.digests.get("train")
        counts = before.counts
        if (
            not batch
            or batch[0] == NOT_HASHED
            or batch != after.digests.get("train")
            or not {"loss_local"} <= before.scalars.keys() & after.scalars.keys()
        ):
            continue
        moved = counts.get("updates") and counts.get("weights_unchanged", 0) < counts.get("gradient_elements", 0)
        loss = before.scalar("loss_local")
        if moved and np.isfinite(loss) and loss != 0:
            pairs += 1
            equal += loss == after.scalar("loss_local")
            counted += "weights_unchanged" in counts
    return Repeated(pairs, int(equal), counted == pairs)


@dataclass(frozen=True)
class Speed:
    """Times of a step, measured in turn with fp32's.

    Attributes:
        own_s, fp32_s: by repeat: seconds of a step.
    """

    own_s: np.ndarray
    fp32_s: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """By repeat: own time / fp32's."""
        return self.own_s / self.fp32_s

    @property
    def interval(self) -> tuple[float, float]:
        """Where the ratio lies with some 95 % confidence: all of 6 to 8 repeats, all but the outermost two of 9 or more.

        The chance that the true median lies outside: 2·(1/2)^n, and 2·(1 + n)·(1/2)^n.
        """
        ordered = np.sort(self.ratios)
        cut = 1 if len(ordered) >= 9 else 0
        return float(ordered[cut]), float(ordered[len(ordered) - 1 - cut])


def speed(run: Run) -> Speed | None:
    """The times that a run measured beside fp32; None where it measured none."""
    times: dict[object, dict[object, float]] = {}
    for event in run.ranks[0].events if run.ranks else ():
        if event.name == "timed":
            fields = event.fields
            times.setdefault(fields["repeat"], {})[fields["loop"]] = (
                float(fields["elapsed_ns"]) / 1e9 / float(fields["steps"])
            )
    both = [of for of in times.values() if {"variant", "fp32"} <= of.keys()]
    if not both:
        return None
    return Speed(np.array([of["variant"] for of in both]), np.array([of["fp32"] for of in both]))


def gradient_exponents(run: Run) -> tuple[np.ndarray, np.ndarray] | None:
    """(powers of two, how many gradient elements lay between each and the next), zeros left out; None where not kept."""
    counts = run.arrays.get("gradient_exponents")
    if counts is None or not counts.sum():
        return None
    return np.arange(len(counts)) + LOWEST_EXPONENT, counts


def share_below(run: Run, form: NumberFormat) -> float | None:
    """Share of the gradients other than 0 that lie below half the smallest number of a format, and so become 0 in it."""
    found = gradient_exponents(run)
    if found is None:
        return None
    powers, counts = found
    lowest = round(np.log2(form.smallest_subnormal))
    return float(counts[powers < lowest - 1].sum() / counts.sum())


def memory_of(run: Run) -> dict[str, int] | None:
    """What weights, gradients and optimizer state take at the first update, by the measure's name; None if not recorded."""
    events = run.ranks[0].events if run.ranks else ()
    kept = next((e.fields for e in events if e.name == "memory" and e.fields.get("instant") == "first_update"), None)
    return None if kept is None else {name: int(kept.get(category, 0)) for name, category in _MEMORY.items()}
