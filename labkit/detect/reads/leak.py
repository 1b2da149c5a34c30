"""What of the validation data was trained on, and from when on. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...record.columns import DIGEST, ID, Samples, as_array, samples_of
from ...record.once import once
from ...record.schema import RankLog, Run, Seen
from .batches import Batches, distinct, find, grouped, starts_of

Key = Literal["id", "digest"]


@dataclass(frozen=True)
class Leak:
    """Validation samples, and how many of them some rank trained on.

    Attributes:
        validation: different validation samples over all ranks.
        leaked: of these, trained on by any rank in any epoch.
        key: how samples are told apart.
        own: of the leaked, trained on by a rank that holds them out itself.
        begins: the first epoch whose score a leak spoils: what it validates on was trained on by its end.
        epochs: of how many epochs with a validation the score is spoilt, and of how many there is one.
        same_content: of the leaked by id, the share that has the content it was trained with; 1 by contents.
    """

    validation: int
    leaked: int
    key: Key
    own: int = 0
    begins: int | None = None
    epochs: tuple[int, int] = (0, 0)
    same_content: float = 1.0

    @property
    def share(self) -> float:
        return self.leaked / self.validation


def held_out(log: RankLog, name: str = "validation") -> list[Seen]:
    """What a rank validated on: as `probe.seen` wrote it down, and as `probe.batches` did under this name."""
    steps = [step for step in log.steps if name in step.digests]
    through_batches = [Seen(name, step.epoch, step.digests[name], step.ids.get(name, [])) for step in steps]
    return [*(seen for seen in log.seen if seen.name == name), *through_batches]


def validation_leak(run: Run, name: str = "validation", train_name: str = "train") -> Leak | None:
    """What of the validation data was trained on; None where no validation was recorded."""
    passes = [held_out(log, name) for log in run.ranks]
    trained = [once(log, f"samples {train_name}", lambda log=log: samples_of(log.steps, train_name)) for log in run.ranks]
    if not any(passes) or not any(map(len, trained)):
        return None
    every_pass = [seen for own in passes for seen in own]
    by_id = all(len(seen.ids) == len(seen.digests) for seen in every_pass) and all(
        np.array_equal(of_rank.starts, of_rank.id_starts) for of_rank in trained
    )
    key: Key = "id" if by_id else "digest"
    held = _Held([[_keys(seen, key) for seen in own] for own in passes], key)
    contents = _Contents(held, [as_array(seen.digests, DIGEST) for seen in every_pass]) if by_id else None
    own_leaked = []
    for rank, of_rank in enumerate(trained):
        places = held.see(of_rank, contents)
        own_leaked.append(np.intersect1d(places, held.of_rank(rank)))
    scored = {seen.epoch for seen in every_pass}
    spoilt = sorted(held.spoilt([seen.epoch for seen in every_pass]))
    leaked = int((held.first < _NEVER).sum())
    return Leak(
        len(held.keys),
        leaked,
        key,
        len(distinct(np.concatenate(own_leaked))),
        spoilt[0] if spoilt else None,
        (len(spoilt), len(scored)),
        contents.same / leaked if contents is not None and leaked else 1.0,
    )


_NEVER = np.iinfo(np.int64).max


def _keys(seen: Seen, key: Key) -> np.ndarray:
    return as_array(seen.ids, ID) if key == "id" else as_array(seen.digests, DIGEST)


class _Held:
    """What is held out, and when each sample of it was first trained on.

    Attributes:
        keys: the different ones, over all ranks, sorted.
        first: by key: the first epoch in which any rank trained on it, _NEVER if none did.
    """

    def __init__(self, passes: Sequence[Sequence[np.ndarray]], key: Key) -> None:
        every = [keys for own in passes for keys in own]
        self.keys = distinct(np.concatenate(every))
        self.first = np.full(len(self.keys), _NEVER, np.int64)
        self.places = [np.searchsorted(self.keys, keys) for keys in every]
        self._begins = starts_of(np.array([len(own) for own in passes]))
        self._key = key

    def of_rank(self, rank: int) -> np.ndarray:
        """The places in `keys` of what a rank holds out."""
        return distinct(np.concatenate([_NONE, *self.places[self._begins[rank] : self._begins[rank + 1]]]))

    def see(self, trained: Samples, contents: _Contents | None) -> np.ndarray:
        """Look through what a rank trained on, epoch by epoch; the places in `keys` of what of it is held out."""
        keys, starts = (trained.ids, trained.id_starts) if self._key == "id" else (trained.digests, trained.starts)
        read, digests, seen = Batches(keys, starts), Batches(trained.digests, trained.starts), [_NONE]
        for (epoch,), steps in grouped(trained.epoch):
            places, hit = find(read.taken(steps).keys, self.keys)
            self.first[places] = np.minimum(self.first[places], epoch)
            if contents is not None:
                contents.compare(places, digests.taken(steps).keys[hit])
            seen.append(distinct(places))
        return distinct(np.concatenate(seen))

    def spoilt(self, epochs: Sequence[int]) -> set[int]:
        """Of the epochs of the passes, those with a sample that was trained on by then."""
        return {
            epoch
            for epoch, places in zip(epochs, self.places, strict=True)
            if len(places) and int(self.first[places].min()) <= epoch
        }


class _Contents:
    """Whether what is held out under an id is trained on under it with the same content at least once."""

    def __init__(self, held: _Held, digests: Sequence[np.ndarray]) -> None:
        contents = np.concatenate(digests)
        self._contents = distinct(contents)
        places = np.concatenate(held.places)
        self._pairs = distinct(places * len(self._contents) + np.searchsorted(self._contents, contents))
        self._same = np.zeros(len(held.keys), bool)

    def compare(self, places: np.ndarray, digests: np.ndarray) -> None:
        """Take in what was trained on: the places of the ids among those held out, and the contents."""
        what, known = find(digests, self._contents)
        pairs = places[known] * len(self._contents) + what
        self._same[places[known][find(pairs, self._pairs)[1]]] = True

    @property
    def same(self) -> int:
        """How many ids have a content in common."""
        return int(self._same.sum())


_NONE = np.empty(0, np.int64)
