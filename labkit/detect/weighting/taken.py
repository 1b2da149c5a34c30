"""What optimizers took beside what the passes of all ranks gave: which combination it is, and times what. Pure.

All that was recorded of a gradient is linear in it. So the mean over ranks of what each gave can be formed here, and the
number found that it was multiplied by; what is left over says how well that describes what was taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...record.schema import Event, Run

FITS, FITS_16_BITS = 0.01, 0.06
"""Share of a gradient that may be left over where it is described: in 32 bits, and where 16 bits round each number."""

ALL_RANKS, OWN_RANK, LAST_OWN, UNEQUAL, NEITHER = "mean over ranks", "own rank", "last pass own", "passes unequal", "neither"


@dataclass(frozen=True)
class Look:
    """One update of one optimizer, on all ranks.

    Attributes:
        optimizer, update: its number, and that of the update, from 1 on.
        step: number of the step that it was in.
        passes: backward passes since the gradients were cleared.
        clipped: whether what is compared is what clipping found.
        formats: number formats of the gradients.
        names: of the first parameter of each group.
        earlier, last, taken: [rank, group, direction].
    """

    optimizer: int
    update: int
    step: int
    passes: int
    clipped: bool
    formats: str
    names: tuple[str, ...]
    earlier: np.ndarray
    last: np.ndarray
    taken: np.ndarray

    @property
    def given(self) -> np.ndarray:
        """What the passes of each rank gave: [rank, group, direction]."""
        return self.earlier + self.last

    @property
    def narrow(self) -> bool:
        """Whether gradients are kept in 16 bits."""
        return "16" in self.formats

    @property
    def fits(self) -> float:
        """Share that may be left over."""
        return FITS_16_BITS if self.narrow else FITS


@dataclass(frozen=True)
class Fit:
    """What the optimizers took.

    Attributes:
        what: ALL_RANKS and the like, for most groups of parameters.
        factor: that it was multiplied by.
        left: share that this leaves over.
        own: groups that every rank took of itself alone, where others are the mean.
    """

    what: str
    factor: float = 1.0
    left: float = 0.0
    own: tuple[int, ...] = ()


def looks(run: Run) -> list[Look]:
    """The looks that all ranks have, in the order of updates."""
    of_ranks = [{_key(event): event for event in log.events if event.name == "gradient"} for log in run.ranks]
    common = set(of_ranks[0]).intersection(*of_ranks[1:]) if of_ranks else set()
    found = [_look([events[key] for events in of_ranks], of_ranks[0]) for key in sorted(common)]
    return [look for look in found if look is not None]


def left_out(run: Run) -> int:
    """Tensors that no look can see, being parts of larger ones."""
    return max((int(event.fields["left_out"]) for event in run.ranks[0].events if event.name == "gradient"), default=0)


def _key(event: Event) -> tuple[int, int]:
    return int(event.fields["optimizer"]), int(event.fields["update"])


def _look(events: list[Event], first: dict[tuple[int, int], Event]) -> Look | None:
    shown = events[0].fields
    groups = len(str(shown["taken"]).split())
    columns = {name: [_numbers(event, name, groups) for event in events] for name in ("earlier", "last", "taken")}
    scales = np.array([float(event.fields["scale"]) or 1.0 for event in events])
    if not groups or groups % 4 or any(len(numbers) != groups for column in columns.values() for numbers in column):
        return None
    earlier, last, taken = (np.array(columns[name]).reshape(len(events), -1, 4) for name in ("earlier", "last", "taken"))
    if not all(np.isfinite(array).all() for array in (earlier, last, taken)) or not np.any(earlier + last):
        return None
    names = first.get((int(shown["optimizer"]), 1))
    return Look(
        optimizer=int(shown["optimizer"]),
        update=int(shown["update"]),
        step=events[0].step,
        passes=int(shown["passes"]),
        clipped=bool(shown.get("clipped", False)),
        formats=str(shown.get("formats", "")),
        names=tuple(str(names.fields.get("names", "")).split(", ")) if names is not None else (),
        earlier=earlier / scales[:, None, None],
        last=last / scales[:, None, None],
        taken=taken,
    )


def _numbers(event: Event, name: str, count: int) -> np.ndarray:
    words = str(event.fields.get(name, "")).split()
    if not words:
        return np.zeros(count)
    try:
        return np.array([float(word) for word in words])
    except ValueError:  # not what labkit writes
        return np.full(len(words), np.nan)


def fit(look: Look) -> Fit:
    """Which combination of what the ranks gave an optimizer took."""
    mean, own = look.given.mean(0), look.given
    of_groups = [_of_group(look, group) for group in range(look.taken.shape[1])]
    known = [kind for kind in of_groups if kind]
    if known and all(kind == ALL_RANKS for kind in known):
        factor, left = _line(look.taken, np.broadcast_to(mean, own.shape))
        if left <= look.fits:
            return Fit(ALL_RANKS, factor, left)
    if known and all(kind == OWN_RANK for kind in known):
        return Fit(OWN_RANK, *_line(look.taken, own))
    if set(known) == {ALL_RANKS, OWN_RANK}:
        kept = [at for at, kind in enumerate(of_groups) if kind == ALL_RANKS]
        factor, left = _line(look.taken[:, kept], np.broadcast_to(mean[kept], own[:, kept].shape))
        return Fit(ALL_RANKS, factor, left, tuple(at for at, kind in enumerate(of_groups) if kind == OWN_RANK))
    return _of_passes(look)


def _of_group(look: Look, group: int) -> str:
    """How one group of parameters was reduced; empty where it has no gradient."""
    own, taken = look.given[:, group], look.taken[:, group]
    if not np.any(own):
        return ""
    if _line(taken, np.broadcast_to(own.mean(0), own.shape))[1] <= look.fits:
        return ALL_RANKS
    return OWN_RANK if _line(taken, own)[1] <= look.fits else NEITHER


def _of_passes(look: Look) -> Fit:
    """Where the passes of an update do not weigh alike."""
    if not np.any(look.earlier):
        return Fit(NEITHER, *_line(look.taken, np.broadcast_to(look.given.mean(0), look.given.shape)))
    shape = look.taken.shape
    earlier, last = (np.broadcast_to(part.mean(0), shape) for part in (look.earlier, look.last))
    (of_earlier, of_last), left = _plane(look.taken, earlier, last)
    if left <= look.fits:
        return Fit(UNEQUAL, of_last / of_earlier if of_earlier else np.inf, left)
    (of_earlier, of_last), left = _plane(look.taken, earlier, look.last)
    if left <= look.fits:
        return Fit(LAST_OWN, of_earlier, left)
    return Fit(NEITHER, *_line(look.taken, np.broadcast_to(look.given.mean(0), shape)))


def _line(taken: np.ndarray, of: np.ndarray) -> tuple[float, float]:
    """(factor, share left over) of `taken` as a multiple of something; nothing can be said of what is 0."""
    norm, size = float(np.sum(of * of)), float(np.sum(taken * taken))
    if norm <= 0 or size <= 0:
        return 0.0, float("inf") if size > 0 else 0.0
    factor = float(np.sum(taken * of)) / norm
    return factor, float(np.sqrt(np.sum((taken - factor * of) ** 2) / size))


def _plane(taken: np.ndarray, one: np.ndarray, other: np.ndarray) -> tuple[tuple[float, float], float]:
    """(factors, share left over) of `taken` as a combination of two things."""
    columns = np.stack([one.ravel(), other.ravel()], axis=1)
    factors, *_ = np.linalg.lstsq(columns, taken.ravel(), rcond=None)
    size = float(np.sum(taken * taken))
    left = float(np.sum((taken.ravel() - columns @ factors) ** 2))
    return (float(factors[0]), float(factors[1])), float(np.sqrt(left / size)) if size > 0 else float("inf")
