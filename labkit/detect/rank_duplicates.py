"""Do ranks read the same data?

Two signs: all ranks read the same batch at the same step, or a sample is read by more ranks than equal steps on all
ranks explain. Equal content is not yet a duplicate read: data may hold equal samples, and with replacement a sample may
come anywhere. What could come of these alone is `inconclusive`.
"""

from __future__ import annotations

from ..record.measures import (
    Quantity,
    Reads,
    dataset_size,
    epochs,
    expected_unique_share,
    filling,
    first_epoch,
    order_repeats,
    reads,
    sampler_padding,
    sharers,
    strangers,
)
from ..record.schema import Record, Run
from ..words import plural
from .explanations import (
    EQUAL_SAMPLES,
    MEETINGS,
    UNSPLIT,
    allowed_repeats,
    copies_in_data,
    listed_several_times,
    one_filled_batch,
    split_by_count,
    unless_contents_change,
    with_replacement,
)
from .verdict import Verdict, answering

NAME = "rank-duplicates"
QUESTION = "Do the ranks read the same data?"
_answer = answering(NAME, QUESTION)

IDENTICAL_FIX = (
    "give the DataLoader a DistributedSampler(data, world_size, rank) instead of shuffle=True, and call "
    "sampler.set_epoch(epoch) at the start of each epoch"
)


def detect(record: Record) -> Verdict:
    """Judge the first epoch of the run under study."""
    return unless_contents_change(_judge(record.run), record.run)


def _judge(run: Run) -> Verdict:
    if run.world_size == 1:
        return _answer("not_applicable", cause="one rank cannot repeat what another reads", fix="run with 2 ranks or more")
    seen = first_epoch(run)
    if seen is None or seen.total == 0:
        return _answer(
            "not_applicable",
            cause="the program recorded no samples",
            fix="record each batch with probe.samples(name, batch) or read it through probe.batches(loader)",
        )
    apart = strangers(run)
    if apart:
        return _answer(
            "found",
            {"ranks_apart": Quantity(len(apart), f"of {run.world_size}")},
            cause=f"rank {apart[0].head.rank} does not read what the other ranks of data_rank "
            f"{apart[0].head.facts['data_rank']} read, though they hold one model together",
            fix="give the sampler the data-parallel rank and size of the mesh, and one seed; the same on all ranks of a "
            "group",
            where=str(run.fact("loader_where", "")) or None,
        )
    if seen.world_size == 1:
        return _answer("not_applicable", cause="by data_rank all ranks share one share of the data: nobody else reads any")
    size = dataset_size(run)
    where = str(run.fact("loader_where", "")) or None
    evidence = _evidence(seen, size, run.fact("batch_size"))
    waste = 1 - float(seen.unique_shares.mean())
    if seen.identical_steps >= 0.9 and seen.unique > 1:
        if copies_in_data(seen, size) and not _identical_in_another_order(run):
            return _cannot_tell_equal_data(evidence)
        share = "every step" if seen.identical_steps == 1 else f"{seen.identical_steps:.0%} of the steps"
        return _answer(
            "found",
            evidence,
            cause=f"in {share} all {seen.world_size} ranks read the same samples in the same order: they do the work of one",
            fix=IDENTICAL_FIX,
            where=where,
            waste=waste,
        )
    twins = seen.twins
    if twins and seen.unique > 1 and (not copies_in_data(seen, size) or _twins_in_another_order(run, twins)):
        ranks = [share[0].head.rank for share in sharers(run)]
        said = "; ".join(f"ranks {' and '.join(str(ranks[at]) for at in group)}" for group in twins)
        return _answer(
            "found",
            evidence,
            cause=f"{said} read the same samples in the same order, at every step: such a group does the work of one rank",
            fix="give the sampler of each its own rank of all (dist.get_rank(), not the local or the node's rank). Where a "
            "group holds one model together (tensor or pipeline parallelism) this is as it should be: say so with "
            "probe.declare(data_rank=...)",
            where=where,
            waste=waste,
        )
    extra, allowed = seen.across_ranks, allowed_repeats(seen, size)
    if extra <= allowed:
        if seen.key == "digest" and seen.repeats_of_shared > allowed:
            return _cannot_tell_equal_data(evidence)
        return _clear_if_it_would_show(seen, size, evidence)
    if split_by_count(seen, size) and seen.key == "digest" and seen.repeats_of_shared <= EQUAL_SAMPLES * seen.total:
        return _answer("clear", evidence, cause="the ranks share the data out; a few samples are equal")
    read_by_ranks = int(seen.ranks_reading.sum())
    shared_out = size is not None and seen.complete and read_by_ranks <= size + sampler_padding(size, seen.world_size)
    if copies_in_data(seen, size) or (seen.key == "digest" and shared_out):
        return _cannot_tell_equal_data(evidence)
    if one_filled_batch(seen, size):
        return _answer(
            "inconclusive",
            evidence,
            cause=f"the epoch is one step with {extra:,} repeated reads: a loader that fills its last batch up from the "
            "start makes them too",
            fix="use a smaller batch or more data, so that an epoch has several steps",
        )
    if with_replacement(seen, size):
        return _answer(
            "inconclusive",
            evidence,
            cause="ranks read each other's samples no more often than drawing with replacement would make them",
            fix="draw without replacement for one epoch, and judge the whole of it",
        )
    if listed_several_times(seen, size):
        return _answer(
            "inconclusive",
            evidence,
            cause="some samples are read several times, by one rank as often as by several: a list that holds them several "
            "times (oversampling), shared out, does that",
            fix="judge one epoch of the plain list; or give each entry of the list an id of its own",
        )
    if size is not None and read_by_ranks >= UNSPLIT * size:
        return _answer(
            "found",
            evidence,
            cause=f"the {seen.world_size} ranks together read {read_by_ranks / size:.1f} times the data set in one "
            "epoch: each goes through all of it in an order of its own",
            fix=IDENTICAL_FIX,
            where=where,
            waste=waste,
        )
    return _answer(
        "found",
        evidence,
        cause=f"{extra:,} reads are of samples that another rank reads too, {extra / seen.total:.0%} of all: "
        "the ranks' shares of the data overlap",
        fix="build the shares from one permutation that is the same on every rank, and take every W-th of it, as "
        "DistributedSampler does",
        where=where,
        waste=waste,
    )


def _identical_in_another_order(run: Run) -> bool:
    """Whether ranks are identical in a second epoch too, in a new order: equal samples would be dealt out anew."""
    others = epochs(run)[1:2]
    return bool(others) and reads(run, others[0]).identical_steps >= 0.9 and order_repeats(run) is False


def _twins_in_another_order(run: Run, twins: list[tuple[int, ...]]) -> bool:
    """Whether the same ranks read the same in a second epoch too, in a new order: equal samples would be dealt out anew."""
    others = epochs(run)[1:2]
    return bool(others) and reads(run, others[0]).twins == twins and order_repeats(run) is False


def _clear_if_it_would_show(seen: Reads, size: int | None, evidence: dict[str, Quantity]) -> Verdict:
    """No overlap was seen: an answer only if ranks that shuffle for themselves would have met by now."""
    if seen.complete:
        but = "what fills the last batches up" if filling(seen, size) else "the sampler's padding"
        return _answer("clear", evidence, cause=f"no sample is read by two ranks, but for {but}")
    if size is None:
        return _answer(
            "inconclusive",
            evidence,
            cause="no sample was read twice, but the run ended before the epoch and the data set's size is not known",
            fix="run a whole epoch, or declare dataset_size",
        )
    expected_unique = size * (1 - _product(1 - min(1.0, len(keys) / size) for keys in seen.of_rank))
    meetings = seen.total - expected_unique
    if meetings >= MEETINGS:
        return _answer(
            "clear",
            evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
            cause="no sample is read by two ranks, where ranks that each shuffle all data would have met often",
        )
    return _answer(
        "inconclusive",
        evidence | {"meetings_expected_if_unsplit": Quantity(meetings, "samples")},
        cause=f"no sample was read twice, but the run saw {seen.total:,} of {plural(size, 'sample')} only: "
        "ranks that each shuffle all data might not have met yet",
        fix="run a whole epoch, or more steps",
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
