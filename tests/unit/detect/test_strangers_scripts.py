"""Scripts as people write them, two ranks each, with the probe and without a process group: who is accused of what."""

import itertools
import random

import numpy as np
import pytest

from labkit import detect
from labkit.record.probe import Probe
from labkit.record.schema import Run
from labkit.record.store import read_rank

from ..builders import in_batches, record_of, shares, shuffled
from .test_any_epoch import READS

RANKS, SIZE, BATCH = 2, 100, 8
SCRIPTS = {}


def script(*found: str, **left_open: str):
    """A script, what must be found in it, and what may be left open; all else is clear, or does not apply."""

    def keep(program):
        SCRIPTS[program.__name__] = (program, set(found), {name.replace("_", "-") for name in left_open})
        return program

    return keep


def rows(ids, data=0) -> np.ndarray:
    """Content of samples, another in each data set."""
    return np.array([[i, data] for i in ids], np.int64).reshape(-1, 2)


def loader(ids, data=0, batch=BATCH):
    return [(rows(part, data), part) for part in in_batches(list(ids), batch)]


def proper(rank, seed, size=SIZE, data=0):
    return loader(shares(shuffled(size, seed), RANKS)[rank], data)


def all_of_it(seed, size=SIZE, data=0):
    return loader(shuffled(size, seed), data)


def read(probe, batches, epoch=0, **how):
    for _ in probe.batches(batches, epoch=epoch, ids_at=1, **how):
        pass


def by_hand(probe, batches, epoch=0):
    """A loop of one's own, that never says where an epoch ends."""
    for samples, ids in batches:
        probe.begin_step(epoch)
        probe.samples("train", samples, ids)
        probe.end_step()


def verdicts_of(program, folder) -> dict:
    logs = []
    for rank in range(RANKS):
        with Probe(folder / f"rank-{rank:05d}.jsonl", rank=rank, world_size=RANKS) as probe:
            program(probe, rank)
        logs.append(read_rank(folder / f"rank-{rank:05d}.jsonl"))
    record = record_of(Run("variant", tuple(logs), 1.0))
    return {name: detect.detector(name)(record) for name in READS}


@script()
def epochs_are_numbered_from_one_with_gaps(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in (1, 2, 5, 9):
        read(probe, proper(rank, epoch), epoch)


@script()
def nobody_says_the_epoch(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(5):
        read(probe, proper(rank, epoch))


@script("order")
def nobody_says_the_epoch_and_the_sampler_does_not_hear_it_either(probe, rank):
    probe.declare(dataset_size=SIZE)
    for _ in range(5):
        read(probe, proper(rank, 0))


@script("rank-duplicates")
def nobody_says_the_epoch_and_ranks_are_identical_from_the_third_on(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(5):
        read(probe, proper(rank, epoch) if epoch < 2 else all_of_it(epoch))


@script(worker_duplicates="ends are not recorded")
def an_endless_loop(probe, rank):
    probe.declare(dataset_size=200)
    for epoch in range(6):
        by_hand(probe, proper(rank, epoch, 200))


@script("rank-duplicates", worker_duplicates="ends are not recorded")
def an_endless_loop_with_own_shuffles_from_the_middle_on(probe, rank):
    probe.declare(dataset_size=400)
    for epoch in range(6):
        by_hand(probe, proper(rank, epoch, 400) if epoch < 3 else all_of_it(10 * epoch + rank, 400))


@script("order", worker_duplicates="ends are not recorded")
def an_endless_loop_in_one_order(probe, rank):
    probe.declare(dataset_size=200)
    for _ in range(6):
        by_hand(probe, proper(rank, 0, 200))


@script(worker_duplicates="ends are not recorded")
def an_endless_sampler_whose_batches_span_two_epochs(probe, rank):
    probe.declare(dataset_size=SIZE)
    drawn = itertools.chain.from_iterable(shuffled(SIZE, epoch)[rank::RANKS] for epoch in itertools.count())
    by_hand(probe, loader(itertools.islice(drawn, 480)))


@script(rank_duplicates="drawn with replacement", worker_duplicates="drawn with replacement")
def an_endless_loop_that_draws_with_replacement(probe, rank):
    probe.declare(dataset_size=200)
    drawn = random.Random(rank)
    by_hand(probe, loader(drawn.choices(range(200), k=600)))


@script()
def two_data_sets_one_after_the_other_that_count_ids_from_zero(probe, rank):
    probe.declare(dataset_size=160)
    for epoch in range(3):
        read(probe, proper(rank, epoch), epoch)
        read(probe, proper(rank, epoch, 60, data=1), epoch)


@script(coverage="a sample is missing, or two count as one")
def two_data_sets_that_count_ids_from_zero_and_one_sample_that_is_not_read(probe, rank):
    probe.declare(dataset_size=160)
    for epoch in range(3):
        read(probe, proper(rank, epoch), epoch)
        read(probe, proper(rank, epoch, 59, data=1), epoch)


@script(worker_duplicates="the second loader is left before its end", coverage="the same")
def two_data_sets_in_turn(probe, rank):
    probe.declare(dataset_size=200)
    for epoch in range(3):
        both = (probe.batches(proper(rank, epoch, data=data), epoch=epoch, ids_at=1) for data in (0, 1))
        list(zip(*both, strict=False))


@script()
def two_passes_over_the_same_data_in_one_epoch(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch, half in itertools.product(range(3), range(2)):
        read(probe, proper(rank, 2 * epoch + half), epoch)


@script(rank_duplicates="an evaluation", order="an evaluation")
def an_evaluation_on_all_ranks_that_has_no_name_of_its_own(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(3):
        read(probe, proper(rank, epoch), epoch)
        read(probe, loader(range(40), data=1), epoch)


@script(validation_leak="its ids count from 0 too")
def an_evaluation_on_all_ranks(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(3):
        read(probe, proper(rank, epoch), epoch)
        read(probe, loader(range(40), data=1), epoch, name="validation")


@script()
def ids_that_number_each_ranks_own_part(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(3):
        own = shuffled(SIZE // RANKS, epoch)
        read(probe, [(rows([2 * i + rank for i in part]), part) for part in in_batches(own, BATCH)], epoch)


@script(rank_duplicates="one epoch", coverage="one epoch")
def ids_that_number_each_ranks_own_part_in_one_epoch(probe, rank):
    probe.declare(dataset_size=SIZE)
    own = shuffled(SIZE // RANKS, 0)
    read(probe, [(rows([2 * i + rank for i in part]), part) for part in in_batches(own, BATCH)])


@script("coverage")
def a_generator_that_is_used_up_after_an_epoch(probe, rank):
    probe.declare(dataset_size=SIZE)
    once = iter(proper(rank, 0))
    for epoch in range(4):
        read(probe, once, epoch)


@script()
def micro_batches_of_one_step(probe, rank):
    probe.declare(dataset_size=96)
    for epoch in range(3):
        micro = proper(rank, epoch, 96)
        for at in range(0, len(micro), 2):
            probe.begin_step(epoch)
            for samples, ids in micro[at : at + 2]:
                probe.samples("train", samples, ids)
            probe.end_step()
        probe.event("epoch_end", epoch=epoch)


@script(worker_duplicates="cut short", coverage="cut short")
def every_epoch_is_cut_short(probe, rank):
    probe.declare(dataset_size=400)
    for epoch in range(6):
        list(itertools.islice(probe.batches(proper(rank, epoch, 400), epoch=epoch, ids_at=1), 6))


@script("rank-duplicates")
def an_epoch_in_chunks_of_one_iterator_with_own_shuffles(probe, rank):
    probe.declare(dataset_size=400)
    for epoch in range(3):
        rest = iter(all_of_it(10 * epoch + rank, 400))
        for _ in range(10):
            read(probe, itertools.islice(rest, 5), epoch)


@script()
def an_epoch_in_chunks_of_one_iterator(probe, rank):
    probe.declare(dataset_size=400)
    for epoch in range(3):
        rest = iter(proper(rank, epoch, 400))
        for _ in range(5):
            read(probe, itertools.islice(rest, 5), epoch)


@script()
def a_rank_with_a_sample_less(probe, rank):
    probe.declare(dataset_size=101)
    for epoch in range(3):
        read(probe, loader(shuffled(101, epoch)[rank::RANKS]), epoch)


@script("rank-duplicates", "coverage")
def identical_from_a_step_within_the_epoch_on(probe, rank):
    probe.declare(dataset_size=300)
    order = shuffled(300, 0)
    read(probe, loader([*order[:100][rank::RANKS], *order[100:200]]))


@script()
def a_quarter_of_the_data_an_epoch(probe, rank):
    probe.declare(dataset_size=120)
    for epoch in range(8):
        quarter = shuffled(120, epoch // 4)[epoch % 4 * 30 : (epoch % 4 + 1) * 30]
        read(probe, loader(quarter[rank::RANKS]), epoch)


@script(validation_leak="trained on after the last validation")
def a_last_training_on_all_data(probe, rank):
    order = shuffled(200, 0)
    for epoch in range(5):
        used = random.Random(epoch).sample(order[: 160 if epoch < 4 else 200], 160 if epoch < 4 else 200)
        read(probe, loader(used[rank::RANKS]), epoch)
        if epoch < 4:
            probe.seen("validation", epoch, rows(order[160:]), order[160:])


@script("worker-duplicates")
def workers_that_read_it_all_from_the_third_epoch_on(probe, rank):
    probe.declare(dataset_size=SIZE)
    for epoch in range(4):
        read(probe, [batch for batch in proper(rank, epoch) for _ in range(3 if epoch > 1 else 1)], epoch)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_accused_of_what_is_wrong_with_it_and_of_nothing_else(name, tmp_path):
    program, found, left_open = SCRIPTS[name]
    said = verdicts_of(program, tmp_path)
    assert {one for one, verdict in said.items() if verdict.status == "found"} == found, said
    assert {one for one, verdict in said.items() if verdict.status == "inconclusive"} == left_open, said


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (two_data_sets_one_after_the_other_that_count_ids_from_zero, "every-sample-read-by-content"),
        (two_data_sets_that_count_ids_from_zero_and_one_sample_that_is_not_read, "loaders-may-share-ids"),
        (a_generator_that_is_used_up_after_an_epoch, "iterator-used-up"),
    ],
)
def test_what_several_loaders_and_used_up_ones_read_is_told_apart(program, reason, tmp_path):
    assert verdicts_of(program, tmp_path)["coverage"].reason == reason
