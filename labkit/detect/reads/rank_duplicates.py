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
from ...words import plural
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

NAME = "rank-duplicates"
QUESTION = "Do the ranks read the same data?"
_answer = answering(NAME, QUESTION)

IDENTICAL = 0.9
"""Share of the steps in which all ranks must read the same to be called identical."""

IDENTICAL_FIX = (
    "give the DataLoader a DistributedSampler(data, world_size, rank) instead of shuffle=True, and call "
    "sampler.set_epoch(epoch) at the start of each epoch"
)


def detect(record: Record) -> Verdict:
    """Judge each epoch of the run under study."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    if run.world_size == 1:
        return _answer("not_applicable", cause="one rank cannot repeat what another reads", fix="run with 2 ranks or more")
    read = [epoch.whole for epoch in every_epoch(run)]
    if not any(seen.total for seen in read):
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    apart = ranks_off_their_group(run)
    if apart:
        return _of_strangers(run, apart)
    if read[0].world_size == 1:
        return _answer("not_applicable", cause="by data_rank all ranks share one share of the data: nobody else reads any")
    judged = judge_each(run, _OfRun(run).judge)
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
            return too_short(_answer("inconclusive", cause="nothing was read in this epoch", fix="run a whole epoch"))
        evidence = _evidence(seen, self._size, self._batch)
        verdict = self._same_in_same_order(seen, evidence) or self._shared_by_ranks(seen, evidence)
        return unless_ids_are_doubtful(verdict, seen)

    def _same_in_same_order(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict | None:
        """Where all ranks, or some, read the same samples step by step; None where none do."""
        size, waste = self._size, 1 - float(seen.unique_shares.mean())
        if seen.within_ranks and one_filled_batch(seen, size):
            return None
        if seen.identical_steps >= IDENTICAL and seen.unique > 1 and self._identical_by_no_chance:
            if copies_in_data(seen, size) and not self._identical_in_two_orders:
                return _cannot_tell_equal_data(evidence)
            share = "every step" if seen.identical_steps == 1 else f"{seen.identical_steps:.0%} of the steps"
            return _answer(
                "found",
                evidence,
                cause=f"in {share} all {seen.world_size} ranks read the same samples in the same order: they do the work of "
                "one",
                fix=IDENTICAL_FIX,
                where=self._where,
                waste=waste,
            )
        twins = seen.twins
        if not twins or seen.unique <= 1 or (copies_in_data(seen, size) and not set(twins) <= self._twins_in_two_orders):
            return None
        if not self._twins_by_no_chance(twins):
            return None
        said = "; ".join(f"ranks {' and '.join(str(self._ranks[at]) for at in group)}" for group in twins)
        return _answer(
            "found",
            evidence,
            cause=f"{said} read the same samples in the same order, at every step: such a group does the work of one rank",
            fix="give the sampler of each its own rank of all (dist.get_rank(), not the local or the node's rank). Where a "
            "group holds one model together (tensor or pipeline parallelism) this is as it should be: say so with "
            "probe.declare(data_rank=...)",
            where=self._where,
            waste=waste,
        )

    def _shared_by_ranks(self, seen: Reads, evidence: dict[str, Quantity]) -> Verdict:
        """By how many samples several ranks read."""
        size, extra, allowed = self._size, seen.across_ranks, allowed_repeats(seen, self._size)
        if extra <= allowed:
            if not seen.sure and seen.repeats_of_shared > allowed:
                return _cannot_tell_equal_data(evidence)
            return _clear_if_it_would_show(seen, size, evidence)
        if split_by_count(seen, size) and not seen.sure and seen.repeats_of_shared <= EQUAL_SAMPLES * seen.total:
            return _answer("clear", evidence, cause="the ranks share the data out; a few samples are equal")
        read_by_ranks = int(seen.ranks_reading.sum())
        shared_out = size is not None and seen.complete and read_by_ranks <= size + sampler_padding(size, seen.world_size)
        if copies_in_data(seen, size) or (not seen.sure and shared_out):
            return _cannot_tell_equal_data(evidence)
        for explains, cause, fix in (
            (
                one_filled_batch(seen, size),
                f"the epoch is one step with {extra:,} repeated reads: a loader that fills its last batch up from the start "
                "makes them too",
                "use a smaller batch or more data, so that an epoch has several steps",
            ),
            (
                self._replaced,
                "ranks read each other's samples no more often than drawing with replacement would make them",
                "draw without replacement for one epoch, and judge the whole of it",
            ),
            (
                listed_several_times(seen, size),
                "some samples are read several times, by one rank as often as by several: a list that holds them several "
                "times (oversampling), shared out, does that",
                "judge one epoch of the plain list; or give each entry of the list an id of its own",
            ),
        ):
            if explains:
                return _answer("inconclusive", evidence, cause=cause, fix=fix)
        return self._overlap(seen, evidence, read_by_ranks)

    def _overlap(self, seen: Reads, evidence: dict[str, Quantity], read_by_ranks: int) -> Verdict:
        """Ranks that read each other's samples, and nothing that explains it."""
        size = self._size
        if size is not None and read_by_ranks >= UNSPLIT * size and not seen.stretch:
            cause = (
                f"the {seen.world_size} ranks together read {read_by_ranks / size:.1f} times the data set in one epoch: "
                "each goes through all of it in an order of its own"
            )
            fix = IDENTICAL_FIX
        else:
            cause = (
                f"{seen.across_ranks:,} reads are of samples that another rank reads too, "
                f"{seen.across_ranks / seen.total:.0%} of all: the ranks' shares of the data overlap"
            )
            fix = (
                "build the shares from one permutation that is the same on every rank, and take every W-th of it, as "
                "DistributedSampler does"
            )
        waste = 1 - float(seen.unique_shares.mean())
        return _answer("found", evidence, cause=cause, fix=fix, where=self._where, waste=waste)


def _of_strangers(run: Run, apart: list[tuple[RankLog, int]]) -> Verdict:
    (log, _), begins = apart[0], min(epoch for _, epoch in apart)
    numbers = epochs(run)
    from_there = f", from epoch {begins} on" if begins != numbers[0] else ""
    return _answer(
        "found",
        {"ranks_apart": Quantity(len(apart), f"of {run.world_size}"), "begins_in_epoch": Quantity(begins)},
        cause=f"rank {log.head.rank} does not read what the other ranks of data_rank {log.head.facts['data_rank']} read, "
        f"though they hold one model together{from_there}",
        fix="give the sampler the data-parallel rank and size of the mesh, and one seed; the same on all ranks of a group",
        where=str(run.fact("loader_where", "")) or None,
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
    return _answer(
        "inconclusive",
        found[0].verdict.evidence,
        cause=f"the ranks share out what the first loader of an epoch gives, and in {found[0].seen.label} they read the "
        "same: an evaluation of all the data on each rank does that",
        fix='give a pass that is no training a name of its own: probe.batches(loader, name="validation")',
    )


def _of_many_short(judged: list[Judged]) -> Verdict | None:
    """Many parts of epochs, each too short to show that ranks meet, show together that they do not."""
    if not all(isinstance(one.verdict, TooShort) for one in judged):
        return None
    due = [one.verdict.evidence.get("meetings_expected_if_unsplit") for one in judged]
    meetings = sum(float(one.value) for one in due if one is not None)
    if len(judged) < 2 or meetings < MEETINGS:
        return None
    return _answer(
        "clear",
        {**judged[0].verdict.evidence, "meetings_expected_if_unsplit": Quantity(meetings, "samples, in all epochs")},
        cause=f"in none of {len(judged)} epochs that were read in part do two ranks read a sample, where ranks that each "
        "shuffle all data would have met often",
    )


def _clear_if_it_would_show(seen: Reads, size: int | None, evidence: dict[str, Quantity]) -> Verdict:
    """No overlap was seen: an answer only if ranks that shuffle for themselves would have met by now."""
    if seen.complete:
        but = "what fills the last batches up" if filling(seen, size) else "the sampler's padding"
        return _answer("clear", evidence, cause=f"no sample is read by two ranks, but for {but}")
    if size is None:
        return too_short(
            _answer(
                "inconclusive",
                evidence,
                cause="no sample was read twice, but the run ended before the epoch and the data set's size is not known",
                fix="run a whole epoch, or declare dataset_size",
            )
        )
    expected_unique = size * (1 - _product(1 - min(1.0, len(keys) / size) for keys in seen.of_rank))
    meetings = seen.total - expected_unique
    if meetings >= MEETINGS:
        return _answer(
            "clear",
            evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
            cause="no sample is read by two ranks, where ranks that each shuffle all data would have met often",
        )
    return too_short(
        _answer(
            "inconclusive",
            evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
            cause=f"no sample was read twice, but the run saw {seen.total:,} of {plural(size, 'sample')} only: "
            "ranks that each shuffle all data might not have met yet",
            fix="run a whole epoch, or more steps",
        )
    )


def _cannot_tell_equal_data(evidence: dict[str, Quantity]) -> Verdict:
    return _answer(
        "inconclusive",
        evidence,
        cause="ranks read equal samples, but the data set itself may hold equal samples: hashes of the content cannot "
        "tell one from the other",
        fix="record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide",
    )


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
