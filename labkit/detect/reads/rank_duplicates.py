"""Do ranks read the same data?

Two signs: all ranks read the same batch at the same step, or a sample is read by more ranks than equal steps on all
ranks explain. Equal content is not yet a duplicate read: data may hold equal samples, and with replacement a sample may
come anywhere. What could come of these alone is `inconclusive`.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property

from ...record.quantity import Quantity
from ...record.schema import RankLog, Record, Run
from ..agreement.own_models import own_models
from ..catalogue import said
from ..explanations import (
    COINCIDENCE,
    EQUAL_SAMPLES,
    MEETINGS,
    UNSPLIT,
    allowed_repeats,
    copies_in_data,
    listed_several_times,
    one_filled_batch,
    split_by_count,
    surprise_of_equal_reads,
    surprise_of_some,
    unless_contents_change,
    unless_ids_are_doubtful,
    with_replacement,
)
from ..verdict import Verdict, answering
from .fed import is_split_by_hand, judged
from .measures import (
    Reads,
    dataset_size,
    epochs,
    every_epoch,
    expected_unique_share,
    filling,
    model_parallel_groups,
    ranks_off_their_group,
    sampler_padding,
)
from .over_epochs import Judged, TooShort, judge_each, over_epochs, too_short
from .parts import holds_parts

NAME = "rank-duplicates"
QUESTION = "Do the ranks read the same data?"
_answer = answering(NAME, QUESTION)

IDENTICAL = 0.9
"""Share of the steps in which all ranks must read the same to be called identical."""


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study."""
    run = record.run
    verdict = unless_contents_change(_judge(run), run)
    if verdict.status == "found" and holds_parts(run):
        return _answer("inconclusive", "ranks-may-hold-parts", verdict.evidence)
    if verdict.status == "found" and is_split_by_hand(run):
        return _answer("clear", "ranks-take-parts-of-a-batch", verdict.evidence)
    return verdict


def _by_what_is_fed(run: Run) -> Verdict | None:
    """Where no loader gave what is trained on: by what modules are given."""
    found = judged(run)
    if found is None:
        return None
    status, reason, evidence = found
    waste = 1 - 1 / run.world_size if status == "found" else None
    where = str(run.fact("loop_where", "")) or None
    return _answer(status, reason, evidence, where=where if status == "found" else None, waste=waste, ranks=run.world_size)


def _judge(run: Run) -> Verdict:
    if run.world_size == 1:
        return _answer("not_applicable", "no-other-rank-reads")
    read = [epoch.whole for epoch in every_epoch(run)]
    if not any(seen.total for seen in read):
        return _by_what_is_fed(run) or _answer("not_applicable", "no-samples-recorded")
    apart = ranks_off_their_group(run)
    if apart:
        return _off_their_group(run, apart)
    if read[0].world_size == 1:
        return _answer("not_applicable", "all-ranks-share-one-share")
    judged = judge_each(run, _OfRun(run).judge)
    if own_models(run) and any(one.verdict.status == "found" for one in judged):
        return _answer("inconclusive", "each-rank-trains-on-all")
    return _of_later_passes(judged) or _of_many_short(judged) or over_epochs(judged)


class _OfRun:
    """What one epoch is judged by: facts of the run, and what its epochs show together."""

    def __init__(self, run: Run) -> None:
        self._size = dataset_size(run)
        self._batch = run.fact("batch_size")
        self._where = str(run.fact("loader_where", "")) or None
        self._ranks = [share[0].head.rank for share in model_parallel_groups(run)]
        self._parts = [part for epoch in every_epoch(run) for part in epoch.parts]

    @cached_property
    def _identical_in_two_orders(self) -> bool:
        """Whether ranks are identical in several epochs, in more than one order: equal samples would be dealt out anew."""
        orders = [seen.of_rank[0].tobytes() for seen in self._parts if seen.identical_steps >= IDENTICAL]
        return len(set(orders)) > 1

    @cached_property
    def _identical_by_no_chance(self) -> bool:
        """Whether ranks that each draw for themselves would not come to read the same."""
        same = [seen for seen in self._parts if seen.identical_steps >= IDENTICAL]
        reads = [int(seen.identical_steps * (seen.total - len(seen.of_rank[0]))) for seen in same]
        surprises = [surprise_of_equal_reads(seen, equal) for seen, equal in zip(same, reads, strict=True)]
        return bool(same) and surprise_of_some(surprises, len(self._parts)) > COINCIDENCE

    def _twins_by_no_chance(self, twins: list[tuple[int, ...]]) -> bool:
        """Whether two ranks that each draw for themselves would not come to read the same, in any epoch that they do."""
        both = [seen for seen in self._parts if set(twins) <= set(seen.twins)]
        surprises = [surprise_of_equal_reads(seen, len(seen.of_rank[twins[0][0]])) for seen in both]
        pairs = len(self._ranks) * (len(self._ranks) - 1) / 2
        return surprise_of_some(surprises, len(self._parts)) - math.log(pairs) > COINCIDENCE

    @cached_property
    def _twins_in_two_orders(self) -> set[tuple[int, ...]]:
        """Groups of ranks that read the same in several epochs, in more than one order."""
        orders: dict[tuple[int, ...], set[bytes]] = {}
        for seen in self._parts:
            for group in seen.twins:
                orders.setdefault(group, set()).add(seen.of_rank[group[0]].tobytes())
        return {group for group, read in orders.items() if len(read) > 1}

    @cached_property
    def _replaced(self) -> bool:
        """Whether drawing with replacement explains all epochs in which ranks meet, taken together."""
        met = [seen.across_ranks > allowed_repeats(seen, self._size) for seen in self._parts]
        at = [number for number, one in enumerate(met) if one]
        if not at:
            return False
        around = self._parts[at[0] : at[-1] + 1]
        return with_replacement([self._parts[number] for number in at], self._size, around)

    def judge(self, seen: Reads) -> Verdict:
        """What an epoch, or a part of one, says for itself."""
        if not seen.total:
            return too_short(_answer("inconclusive", "nothing-read-in-epoch"))
        evidence = _evidence(seen, self._size, self._batch)
        verdict = self._same_in_same_order(seen, evidence) or self._shared_by_ranks(seen, evidence)
        return unless_ids_are_doubtful(verdict, seen)

    def _same_in_same_order(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict | None:
        """Where all ranks, or some, read the same samples step by step; None where none do."""
        if (seen.within_ranks and one_filled_batch(seen, self._size)) or seen.unique <= 1:
            return None
        return self._all_the_same(seen, evidence) or self._some_the_same(seen, evidence)

    def _all_the_same(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict | None:
        if seen.identical_steps < IDENTICAL or not self._identical_by_no_chance:
            return None
        if copies_in_data(seen, self._size) and not self._identical_in_two_orders:
            return _answer("inconclusive", "ranks-read-equal-samples", evidence)
        known = {"where": self._where, "waste": _waste(seen), "ranks": seen.world_size}
        if seen.identical_steps == 1:
            return _answer("found", "ranks-identical", evidence, **known)
        return _answer("found", "ranks-identical-in-most-steps", evidence, **known, share=seen.identical_steps)

    def _some_the_same(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict | None:
        twins = seen.twins
        by_copies = copies_in_data(seen, self._size) and not set(twins) <= self._twins_in_two_orders
        if not twins or by_copies or not self._twins_by_no_chance(twins):
            return None
        groups = [said("these-ranks", ranks=[self._ranks[at] for at in group]) for group in twins]
        return _answer("found", "some-ranks-identical", evidence, where=self._where, waste=_waste(seen), groups=groups)

    def _shared_by_ranks(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict:
        """By how many samples several ranks read."""
        size, allowed = self._size, allowed_repeats(seen, self._size)
        if seen.across_ranks <= allowed:
            if not seen.sure and seen.repeats_of_shared > allowed:
                return _answer("inconclusive", "ranks-read-equal-samples", evidence)
            return _clear_if_it_would_show(seen, size, evidence)
        few_are_equal = not seen.sure and seen.repeats_of_shared <= EQUAL_SAMPLES * seen.total
        if few_are_equal and split_by_count(seen, size):
            return _answer("clear", "shared-out-but-equal-samples", evidence)
        return self._explained(seen, evidence) or self._overlap(seen, evidence)

    def _explained(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict | None:
        """What, other than ranks that read each other's share, could have made what was read; None where nothing could."""
        size = self._size
        if copies_in_data(seen, size) or (not seen.sure and self._shared_out(seen)):
            return _answer("inconclusive", "ranks-read-equal-samples", evidence)
        if one_filled_batch(seen, size):
            return _answer("inconclusive", "one-filled-step", evidence, repeated=seen.across_ranks)
        if self._replaced:
            return _answer("inconclusive", "meetings-as-with-replacement", evidence)
        if listed_several_times(seen, size):
            return _answer("inconclusive", "list-may-repeat-samples", evidence)
        return None

    def _shared_out(self, seen: Reads) -> bool:
        """Whether all ranks' different samples together are no more than the data and a sampler's padding."""
        size = self._size
        if size is None or not seen.complete:
            return False
        return int(seen.ranks_reading.sum()) <= size + sampler_padding(size, seen.world_size)

    def _overlap(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict:
        """Ranks that read each other's samples, and nothing that explains it."""
        size, read_by_ranks = self._size, int(seen.ranks_reading.sum())
        known = {"where": self._where, "waste": _waste(seen)}
        if size is not None and read_by_ranks >= UNSPLIT * size and not seen.stretch:
            times = read_by_ranks / size
            return _answer("found", "each-rank-reads-all", evidence, **known, ranks=seen.world_size, times=times)
        shared = seen.across_ranks
        return _answer("found", "shares-overlap", evidence, **known, shared=shared, share=shared / seen.total)


def _waste(seen: Reads) -> float:
    """The mean over the steps of what of a global batch is read twice."""
    return 1 - float(seen.unique_shares.mean())


def _off_their_group(run: Run, apart: list[tuple[RankLog, int]]) -> Verdict:
    (log, _), begins = apart[0], min(epoch for _, epoch in apart)
    return _answer(
        "found",
        "rank-off-its-group",
        {"ranks_apart": Quantity(len(apart), f"of {run.world_size}"), "begins_in_epoch": Quantity(begins)},
        where=str(run.fact("loader_where", "")) or None,
        notes=(said("from-epoch-on", epoch=begins),) if begins != epochs(run)[0] else (),
        rank=log.head.rank,
        group=log.head.facts["data_rank"],
    )


def _of_later_passes(judged: list[Judged]) -> Verdict | None:
    """Where each epoch's first pass is clear and a later one is not: what is not the training may go by its name."""
    parts = [one for one in judged if one.seen.part is not None and not one.seen.stretch]
    found = [one for one in judged if one.verdict.status == "found"]
    first = {one.seen.epoch for one in parts if one.seen.part == 0 and one.verdict.status == "clear"}
    alone = all(one.seen.part and one.seen.epoch in first for one in found)
    in_turn = not any(a in found and b in found for a, b in itertools.pairwise(judged))
    if not found or not alone or (len(first) == 1 and not in_turn):
        return None
    one = found[0]
    return _answer("inconclusive", "ranks-share-out-first-pass-only", one.verdict.evidence, part=one.seen.label)


def _of_many_short(judged: list[Judged]) -> Verdict | None:
    """Many parts of epochs, each too short to show that ranks meet, show together that they do not."""
    if not all(isinstance(one.verdict, TooShort) for one in judged):
        return None
    due = [one.verdict.evidence.get("meetings_expected_if_unsplit") for one in judged]
    meetings = sum(float(one.value) for one in due if one is not None)
    if len(judged) < 2 or meetings < MEETINGS:
        return None
    evidence = {**judged[0].verdict.evidence, "meetings_expected_if_unsplit": Quantity(meetings, "samples, in all epochs")}
    return _answer("clear", "ranks-never-meet-in-any-epoch", evidence, epochs=len(judged))


def _clear_if_it_would_show(seen: Reads, size: int | None, evidence: dict[str, Quantity]) -> Verdict:
    """No overlap was seen: an answer only if ranks that shuffle for themselves would have met by now."""
    if seen.complete:
        return _answer("clear", "only-filling-shared" if filling(seen, size) else "only-padding-shared", evidence)
    if size is None:
        return too_short(_answer("inconclusive", "cut-short-and-size-unknown", evidence))
    expected_unique = size * (1 - _product(1 - min(1.0, len(keys) / size) for keys in seen.of_rank))
    meetings = seen.total - expected_unique
    evidence |= {"meetings_expected_if_unsplit": Quantity(meetings, "samples")}
    if meetings >= MEETINGS:
        return _answer("clear", "ranks-never-meet", evidence)
    return too_short(_answer("inconclusive", "too-few-reads-to-meet", evidence, read=seen.total, samples=size))


def _evidence(seen: Reads, size: int | None, batch: object) -> dict[str, Quantity]:
    found = {
        "samples_per_epoch": Quantity(seen.total, "samples"),
        "unique_samples": Quantity(seen.unique, "samples"),
        "unique_share_of_global_batch": Quantity(seen.unique_share_of_global_batch, "of its samples"),
        "identical_steps": Quantity(seen.identical_steps, "of the steps"),
        "told_apart_by": Quantity(seen.key),
    }
    if size is not None:
        found["dataset_size"] = Quantity(size, "samples")
        if isinstance(batch, int) and batch <= size:
            share = expected_unique_share(size, batch, seen.world_size)
            found["unique_share_if_each_shuffled_all"] = Quantity(share, "of its samples", "simulated")
    return found


def _product(factors) -> float:
    result = 1.0
    for factor in factors:
        result *= factor
    return result
