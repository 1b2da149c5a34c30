"""By what samples are told apart, ids or contents, and whether the two contradict each other. Pure; no torch, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...record.columns import NOT_HASHED, Samples
from .batches import distinct
from .epoch_reads import Key

DENSE = 4
"""Ids up to this many times the number of samples are looked up in a table; others are sorted."""


def told_apart_by(of_ranks: Sequence[Samples]) -> tuple[Key, bool]:
    """By what samples are told apart, and whether ids and contents may contradict each other.

    Ids that number each rank's own part of the data from 0 stand for another sample on each rank: one content on a rank,
    whenever it is read, and another on the next. Where contents change from read to read nothing contradicts the ids.
    """
    if not all(samples.with_ids for samples in of_ranks):
        return "digest", False
    of_ranks = [_hashed(samples) for samples in of_ranks]
    if len(of_ranks) == 1 or _one_content_each(of_ranks):
        return "id", False
    return _of_contradictions(of_ranks)


def _hashed(samples: Samples) -> Samples:
    """Those of a rank's samples whose contents were looked at; all of them at once, and no steps."""
    known = samples.digests != NOT_HASHED
    return (
        samples
        if known.all()
        else replace(samples, ids=np.compress(known, samples.ids), digests=np.compress(known, samples.digests))
    )


def _one_content_each(of_ranks: Sequence[Samples]) -> bool:
    """Whether each id stands for one content, on all ranks; False as well where ids are too far apart to say so cheaply."""
    highest = max(int(samples.ids.max(initial=-1)) for samples in of_ranks)
    lowest = min(int(samples.ids.min(initial=0)) for samples in of_ranks)
    if lowest < 0 or highest >= DENSE * sum(len(samples.ids) for samples in of_ranks):
        return False
    content_of = np.zeros(highest + 1, np.uint64)
    for samples in of_ranks:
        content_of[samples.ids] = samples.digests
    return all(np.array_equal(content_of[samples.ids], samples.digests) for samples in of_ranks)


def _of_contradictions(of_ranks: Sequence[Samples]) -> tuple[Key, bool]:
    ids = np.concatenate([samples.ids for samples in of_ranks])
    contents = np.concatenate([samples.digests for samples in of_ranks])
    known, at = np.unique(ids, return_inverse=True)
    _, what = np.unique(contents, return_inverse=True)
    contents_of = np.bincount(_different(at, what)[0], minlength=len(known))
    if not (contents_of > 1).any():
        return "id", False
    who = np.repeat(np.arange(len(of_ranks)), [len(samples.ids) for samples in of_ranks])
    own = at * len(of_ranks) + who
    of_each = np.bincount(_different(at, who)[0], minlength=len(known))
    num_own = len(distinct(own))
    once_each = len(_different(own, what)[0]) == num_own
    shared = of_each > 1
    if not once_each or (contents_of[shared] > 1).mean() < 0.5:
        return "id", False
    return ("digest", False) if len(ids) >= 1.5 * num_own else ("id", True)


def _different(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of two arrays of whole numbers from 0 on."""
    width = int(other.max(initial=0)) + 1
    pairs = distinct(one.astype(np.int64) * width + other)
    return pairs // width, pairs % width
