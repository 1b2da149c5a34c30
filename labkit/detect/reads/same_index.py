"""Does an index mean the same sample on every rank?

A sampler shares out indices. Where each rank lists a folder in an order of its own, or numbers classes in the order of a
set, one index is another sample, or one class another number, on each rank: samples are read twice and others never, and
labels contradict each other. Judged by contents: of the samples under their indices, and of the labels under theirs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...record.columns import NOT_HASHED, as_array
from ...record.quantity import Quantity
from ...record.schema import Origin, RankLog, Record
from ..verdict import Verdict, answering

NAME = "same-index"
QUESTION = "Does an index mean the same sample on every rank?"
OF_THE_DOCTOR = True
_answer = answering(NAME, QUESTION)

ENOUGH = 10
"""Indices, or contents, that two ranks must share."""

MOST, SOME = 0.5, 0.1
"""Share of the shared ones that must differ: of the samples, which a permutation moves nearly all; and of the labels."""


def detect(record: Record) -> Verdict:
    """Compare what the first rank read under each index with what each other rank did."""
    run = record.run
    if record.origin is Origin.LAB:
        return _answer("not_applicable", "indices-of-a-lab")
    if run.world_size < 2:
        return _answer("not_applicable", "no-other-rank-to-compare-indices")
    contents = [_by_index(log, "train") for log in run.ranks]
    if not all(contents):
        return _answer("not_applicable", "no-indices-recorded")
    where = str(run.fact("loader_where", "")) or None
    for other in contents[1:]:
        moved, shared = _moved(contents[0], other)
        if shared >= ENOUGH and moved > MOST * shared:
            evidence = {"samples_under_another_index": Quantity(moved, f"of {shared} that both ranks read")}
            return _answer("found", "index-is-another-sample", evidence, where=where, moved=moved, shared=shared)
    labels = [_by_index(log, "targets") for log in run.ranks]
    compared = 0
    for content, other, own, others in zip(contents, contents[1:], labels, labels[1:], strict=False):
        same = [at for at in own.keys() & others.keys() if at in content and content[at] == other.get(at)]
        differ = sum(own[at] != others[at] for at in same)
        compared += len(same)
        if len(same) >= ENOUGH and differ > SOME * len(same):
            evidence = {"labels_that_differ": Quantity(differ, f"of {len(same)} samples that both ranks read")}
            return _answer("found", "label-is-another", evidence, where=where, differ=differ, shared=len(same))
    if not compared and not any(_moved(contents[0], other)[1] for other in contents[1:]):
        return _answer("inconclusive", "no-sample-read-by-two-ranks")
    return _answer("clear", "indices-mean-the-same", {"labels_compared": Quantity(compared)})


def _moved(own: Mapping[int, int], others: Mapping[int, int]) -> tuple[int, int]:
    """(how many contents two ranks read under different indices, how many both read).

    Contents that a rank met under several indices are left out: they are equal samples.
    """
    places, theirs = _places(own), _places(others)
    shared = places.keys() & theirs.keys()
    return sum(places[content] != theirs[content] for content in shared), len(shared)


def _places(contents: Mapping[int, int]) -> dict[int, int]:
    found: dict[int, int] = {}
    several = set()
    for index, content in contents.items():
        if content in found:
            several.add(content)
        found[content] = index
    return {content: index for content, index in found.items() if content not in several}


def _by_index(log: RankLog, name: str) -> dict[int, int]:
    """By index: a hash of what a rank read under it; without those whose content changes from read to read."""
    parts = [(step.ids.get(name, []), step.digests[name]) for step in log.steps if name in step.digests]
    found: dict[int, int] = {}
    change = set()
    for ids, digests in parts:
        if len(ids) != len(digests):
            return {}
        both = zip(as_array(ids, np.dtype(np.int64)).tolist(), as_array(digests, np.dtype(np.uint64)).tolist(), strict=True)
        for index, content in both:
            if content != NOT_HASHED and found.setdefault(index, content) != content:
                change.add(index)
    return {index: content for index, content in found.items() if index not in change}
