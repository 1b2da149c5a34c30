"""The oracles of lab 03, on real ranks: what was read is counted, what was trained is compared."""

import math

import numpy as np
import pytest
import torch
from asking import statuses, value
from torch.utils.data import DataLoader, DistributedSampler

import labkit
from labkit.detect import runs
from labkit.detect.reads import measures
from labkit.errors import RankFailed, UnknownName, UsageError
from labkit.labs.duplicate_data.files import files_of
from labkit.workloads.digits import Digits
from labkit.workloads.models import build

pytestmark = pytest.mark.ranks

LAB = labkit.lab("duplicate-data")
RANKS = (1, 2, 3, 4)
QUICK = {"num_samples": 301, "batch": 16}  # 301 is odd, and no number of ranks but 1 divides it


def epoch(record, number=0) -> measures.Reads:
    return measures.reads(record.run, number)


def orders(record) -> list[list[int]]:
    """By epoch and rank, ids in the order in which they were read."""
    return [keys.tolist() for number in measures.epochs(record.run) for keys in epoch(record, number).of_rank]


def hashes(record) -> set[str]:
    return {log.digests["weights"] for log in record.run.ranks}


# broken: W ranks do the work of one


@pytest.mark.parametrize("ranks", RANKS)
def test_broken_ranks_process_w_times_the_data_and_learn_what_one_rank_does(run, ranks):
    record = run("broken", ranks=ranks, epochs=1)
    seen = epoch(record)
    assert (seen.total, seen.unique, set(seen.copies[1])) == (ranks * 301, 301, {ranks})
    assert set(seen.unique_shares) == {1 / ranks}
    assert len(hashes(record)) == 1
    if ranks == 3:  # a sum of three thirds is not the whole, in the last bits
        assert value(record, "weights_gap_to_single") < 1e-6
    else:
        assert value(record, "weights_equal_single")


@pytest.mark.parametrize("how", [{"model": "cnn"}, {"dtype": "float64"}], ids=str)
def test_broken_weights_equal_one_ranks_to_the_bit_for_other_models_too(run, how):
    record = run("broken", ranks=2, **how)
    assert value(record, "weights_equal_single") and value(record, "weights_gap_to_single") == 0


@pytest.mark.parametrize("ranks", [2, 4])
def test_broken_ranks_waste_all_but_one(run, ranks):
    verdict = LAB.judge(run("broken", ranks=ranks, epochs=1))["rank-duplicates"]
    assert (verdict.status, verdict.waste) == ("found", 1 - 1 / ranks)
    assert verdict.where.startswith("labkit/labs/duplicate_data/programs.py:")


# fixed: W ranks equal one process with the large batch


@pytest.mark.parametrize(("ranks", "size"), [*((ranks, 301) for ranks in RANKS), (2, 5), (3, 97), (4, 97), (4, 5)])
def test_fixed_ranks_read_each_sample_once_and_pad_no_more_than_they_must(run, ranks, size):
    seen = epoch(run("fixed", ranks=ranks, num_samples=size, epochs=1))
    padding = math.ceil(size / ranks) * ranks - size
    assert set(seen.copies[0]) == set(range(size)) and seen.total == size + padding
    assert sorted(seen.copies[1])[: size - padding] == [1] * (size - padding)
    assert measures.padding(seen, size) == padding
    assert len({len(batches) for batches in seen.batches}) == 1


@pytest.mark.parametrize("model", ["mlp", "cnn"])
@pytest.mark.parametrize(("ranks", "size"), [(2, 97), (3, 97), (4, 301)])
def test_fixed_weights_equal_one_process_with_the_large_batch(run, model, ranks, size):
    record = run("fixed", ranks=ranks, num_samples=size, model=model, dtype="float64", epochs=3)
    assert value(record, "weights_gap_to_single") <= 1e-12
    assert len(hashes(record)) == 1


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_fixed_weights_in_float32_stay_within_a_millionth_for_an_epoch(run, ranks):
    assert value(run("fixed", ranks=ranks, epochs=1), "weights_gap_to_single") <= 1e-6


def test_fixed_weights_are_those_of_a_loop_that_knows_nothing_of_labkit(run):
    """The reference of the lab shares its loader; this one takes torch's sampler and plain SGD, by hand."""
    record = run("fixed", ranks=3, num_samples=97, dtype="float64", epochs=2, momentum=0.0, seed=5)
    data, model = Digits(97, torch.float64), build("mlp", seed=5, dtype=torch.float64)
    for number in range(2):
        samplers = [DistributedSampler(range(97), 3, rank, seed=5) for rank in range(3)]
        for sampler in samplers:
            sampler.set_epoch(number)
        shares = [list(sampler) for sampler in samplers]
        for start in range(0, len(shares[0]), 16):
            ids = [i for share in shares for i in share[start : start + 16]]
            loss = torch.nn.functional.cross_entropy(model(data.images[ids]), data.labels[ids])
            for p, gradient in zip(model.parameters(), torch.autograd.grad(loss, model.parameters()), strict=True):
                p.data -= 0.05 * gradient
    expected = torch.cat([p.detach().reshape(-1) for p in model.parameters()]).numpy()
    trained = record.run.arrays["weights"]
    assert np.linalg.norm(trained - expected) / np.linalg.norm(expected) < 1e-13


def test_the_broken_run_does_not_learn_what_the_fixed_one_does(run):
    """The comparison above can fail."""
    broken, fixed = run("broken", ranks=2, epochs=1), run("fixed", ranks=2, epochs=1)
    assert runs.weights_gap(broken.run, fixed.runs["single"]) > 1e-2


# overlapping: chance meetings, as theory has them


@pytest.mark.parametrize(("ranks", "size", "batch"), [(2, 1797, 32), (3, 301, 16), (4, 1797, 32)])
def test_overlapping_ranks_meet_as_often_as_chance_has_it(run, ranks, size, batch):
    seen = epoch(run("overlapping", ranks=ranks, num_samples=size, batch=batch, epochs=1))
    assert (seen.total, seen.unique) == (ranks * size, size)
    shares = seen.unique_shares[seen.full_steps]
    expected = size * (1 - (1 - batch / size) ** ranks) / (ranks * batch)
    noise = shares.std() / math.sqrt(len(shares))
    assert noise < 0.02 and abs(shares.mean() - expected) < 4 * noise


@pytest.mark.parametrize("ranks", [2, 4])
def test_overlapping_ranks_have_seen_only_part_of_the_data_after_n_samples(run, ranks):
    seen = epoch(run("overlapping", ranks=ranks, num_samples=1797, batch=32, epochs=1))
    due = round(1797 / ranks)
    covered = len(np.unique(np.concatenate([keys[:due] for keys in seen.of_rank]))) / 1797
    assert covered == pytest.approx(1 - (1 - 1 / ranks) ** ranks, abs=0.03)


# no-set-epoch: the order repeats


def test_without_set_epoch_the_second_epoch_comes_in_the_order_of_the_first(run):
    first, second = (epoch(run("no-set-epoch", ranks=2), number) for number in (0, 1))
    assert all((a == b).all() for a, b in zip(first.of_rank, second.of_rank, strict=True))
    assert value(run("no-set-epoch", ranks=2), "order_repeats") is True
    assert value(run("fixed", ranks=2), "order_repeats") is False


# double-sharded: a share of a share


def double_shards(size, ranks, epochs) -> set[int]:
    """The ids that some epoch reads, from the indices alone."""
    kept = set()
    for number in range(epochs):
        for rank in range(ranks):
            sampler = DistributedSampler(range(size), ranks, rank, seed=0)
            sampler.set_epoch(number)
            kept |= set(list(sampler)[rank::ranks])
    return kept


@pytest.mark.parametrize(
    ("ranks", "size", "batch", "unique"), [(4, 1797, 32, 449), (2, 1600, 32, 800), (3, 900, 20, 300), (4, 320, 5, 80)]
)
def test_double_sharding_covers_exactly_the_share_of_the_shares(run, ranks, size, batch, unique):
    """449/1797 is 0.24986; where W² divides N it is 1/W."""
    seen = epoch(run("double-sharded", ranks=ranks, num_samples=size, batch=batch, epochs=4))
    assert set(seen.copies[0]) == double_shards(size, ranks, 1) and seen.unique == unique


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("epochs", [2, 3, 4])
def test_double_sharding_covers_more_in_each_epoch_as_chance_has_it(run, ranks, epochs):
    size = {2: 1600, 4: 1797}[ranks]
    record = run("double-sharded", ranks=ranks, num_samples=size, batch=32, epochs=4)
    read = {int(i) for number in range(epochs) for i in epoch(record, number).copies[0]}
    assert read == double_shards(size, ranks, epochs)
    assert len(read) / size == pytest.approx(1 - (1 - 1 / ranks) ** epochs, abs=0.03)


# iterable-unsharded: every worker of every rank reads it all


@pytest.mark.parametrize(("ranks", "workers"), [(1, 2), (1, 3), (2, 0), (2, 1), (2, 2), (3, 2)])
def test_a_stream_is_read_as_often_as_there_are_workers_in_all_ranks(run, ranks, workers):
    record = run("iterable-unsharded", ranks=ranks, workers=workers, num_samples=97)
    each = max(1, workers)
    assert set(epoch(record).copies[1]) == {ranks * each} and value(record, "copies_max") == ranks * each
    assert epoch(record).within_ranks == ranks * (each - 1) * 97
    assert statuses(record)["worker-duplicates"] == ("found" if each > 1 else "clear")
    assert statuses(record)["rank-duplicates"] == ("found" if ranks > 1 else "not_applicable")


# uneven-shards, uneven-join, split-by-node: files that the ranks do not divide


def test_where_all_stop_with_the_first_that_ends_the_rest_of_the_longer_shares_is_not_read(run):
    """6 files of 50 or 51 on 4 ranks: 2, 2, 1, 1, so that all stop after 4 batches of 16."""
    seen = epoch(run("uneven-shards", ranks=4))
    held = [101, 100, 50, 50]
    assert sorted(map(len, seen.of_rank)) == sorted(min(64, own) for own in held) and seen.unique == seen.total == 228
    verdict = LAB.judge(run("uneven-shards", ranks=4))["coverage"]
    assert (verdict.status, verdict.reason) == ("found", "part-of-the-data")
    assert epoch(run("uneven-shards", ranks=3)).unique == 301  # 3 ranks divide 6 files


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_under_join_ranks_of_unequal_length_read_all_and_a_rank_that_has_ended_gives_0(run, momentum):
    record = run("uneven-join", ranks=4, dtype="float64", momentum=momentum)
    seen = epoch(record)
    assert sorted(map(len, seen.of_rank)) == [50, 50, 100, 101] and seen.unique == seen.total == 301
    assert sorted(len(of_rank) for of_rank in seen.batches) == [4, 4, 7, 7]
    assert value(record, "weights_gap_to_single") <= 1e-12 and len(hashes(record)) == 1
    assert set(statuses(record).values()) == {"clear", "not_applicable"}


def test_where_the_ranks_do_not_divide_the_files_each_keeps_every_w_th_sample_of_the_stream(run):
    uneven, even = epoch(run("split-by-node", ranks=4)), epoch(run("split-by-node", ranks=3))
    assert [len(own) for own in uneven.of_rank] == [76, 75, 75, 75] and uneven.unique == 301
    stream = [i for file in files_of(301, 6, seed=0) for i in file]
    assert [own.tolist() for own in uneven.of_rank] == [stream[rank::4] for rank in range(4)]
    assert sorted(len(own) for own in even.of_rank) == [100, 100, 101] and even.unique == even.total == 301


# leaky-split: validation data are trained on


def test_a_split_seeded_by_rank_leaks_and_one_for_all_does_not(run):
    leaky, fixed = run("leaky-split", ranks=4), run("fixed", ranks=4, val_share=0.2)
    assert value(leaky, "val_leak") > 0.2
    assert value(fixed, "val_leak") == 0
    assert measures.validation_leak(fixed.run).validation == round(0.2 * 301)
    verdict = LAB.judge(leaky)["validation-leak"]
    assert verdict.status == "found" and verdict.where.startswith("labkit/labs/duplicate_data/programs.py:")
    assert statuses(fixed)["validation-leak"] == "clear"


# What the detectors say of each variant


TABLE = {
    #                      rank-duplicates  worker-duplicates  coverage        order             validation-leak
    "broken":             ("found",         "clear",           "clear",        "clear",          "not_applicable"),
    "overlapping":        ("found",         "clear",           "clear",        "clear",          "not_applicable"),
    "no-set-epoch":       ("clear",         "clear",           "clear",        "found",          "not_applicable"),
    "double-sharded":     ("clear",         "clear",           "found",        "clear",          "not_applicable"),
    "iterable-unsharded": ("found",         "found",           "clear",        "not_applicable", "not_applicable"),
    "split-by-node":      ("clear",         "clear",           "clear",        "clear",          "not_applicable"),
    "fixed":              ("clear",         "clear",           "clear",        "clear",          "not_applicable"),
}  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("variant", TABLE)
def test_each_variant_has_its_own_verdicts(run, variant, ranks):
    assert tuple(statuses(run(variant, ranks=ranks)).values()) == TABLE[variant]


def test_what_is_found_in_the_leaky_split_is_the_leak(run):
    found = statuses(run("leaky-split", ranks=4))
    assert found["validation-leak"] == "found"
    # each rank's sampler deals out data of its own, so that ranks share samples and miss others
    assert found["rank-duplicates"] == "found" and found["worker-duplicates"] == found["order"] == "clear"


@pytest.mark.parametrize("variant", [*TABLE, "leaky-split"])
def test_the_loss_falls_in_every_variant_whatever_is_wrong_with_its_data(run, variant):
    loss = [step.scalar("loss_local") for step in run(variant, ranks=4).run.ranks[0].steps]
    assert np.mean(loss[-3:]) < np.mean(loss[:3])


def test_the_table_is_complete():
    assert {*TABLE, "leaky-split", "uneven-shards", "uneven-join"} == {variant.name for variant in LAB.spec.variants}


@pytest.mark.parametrize("variant", ["broken", "fixed", "double-sharded"])
def test_on_one_rank_there_is_nothing_to_find(run, variant):
    assert set(statuses(run(variant, ranks=1)).values()) <= {"clear", "not_applicable"}


@pytest.mark.parametrize("variant", ["broken", "fixed", "overlapping", "no-set-epoch", "double-sharded"])
def test_data_smaller_than_a_global_batch_are_no_trouble(run, variant):
    """5 samples on 4 ranks in batches of 16: ranks take a step each, and none waits for another for ever."""
    record = run(variant, ranks=4, num_samples=5)
    assert {len(log.steps) for log in record.run.ranks} == {2}
    if variant in ("fixed", "no-set-epoch"):
        assert "found" not in statuses(record).values()
    if variant in ("broken", "overlapping"):
        assert epoch(record).total == 20


def test_a_few_steps_are_enough_to_find_identical_ranks_and_no_more_than_were_asked_for(run):
    record = run("broken", ranks=4, steps=3)
    assert {len(log.steps) for log in record.run.ranks} == {3}
    assert statuses(record)["rank-duplicates"] == "found" and statuses(record)["coverage"] == "inconclusive"


# Repeatable


@pytest.mark.parametrize("variant", ["broken", "fixed", "overlapping"])
def test_one_seed_gives_one_order_and_one_set_of_weights_and_another_seed_others(run, variant):
    one, same, other = run(variant, ranks=2), run(variant, ranks=2, again=1), run(variant, ranks=2, seed=1)
    assert orders(one) == orders(same) != orders(other)
    assert hashes(one) == hashes(same) and not hashes(one) & hashes(other)
    assert runs.weights_equal(one.run, same.run)


def test_a_record_says_where_it_comes_from_and_comes_back_from_its_folder(run):
    record = run("fixed", ranks=2)
    back = labkit.read_record(record.folder)
    assert back.provenance == record.provenance and back.config == record.config
    assert back.run.ranks == record.run.ranks
    assert (record.provenance.world_size, record.provenance.backend, record.provenance.seed) == (2, "gloo", 0)
    assert statuses(back) == statuses(record)


# A fault that was planned is seen to have fired


def test_a_delay_is_an_event_in_the_file_of_its_rank_and_of_no_other(run):
    fault = labkit.Fault(kind="delay", rank=1, step=2, seconds=0.001)
    record = run("fixed", ranks=2, epochs=1, faults=(fault,))
    events = [[(e.step, e.fields["fault"]) for e in log.events if e.name == "fault"] for log in record.run.ranks]
    assert events == [[], [(2, "delay")]]
    assert orders(record) == orders(run("fixed", ranks=2, epochs=1))


# Wrong use


def test_wrong_use_is_refused_before_anything_starts():
    with pytest.raises(UnknownName, match="Did you mean 'overlapping'"):
        LAB.run("overlaping")
    with pytest.raises(UnknownName, match="Did you mean 'batch'"):
        LAB.run("broken", bacth=8)
    with pytest.raises(UsageError, match="num_samples must be from 2 to 1797; given 5000"):
        LAB.run("broken", num_samples=5000)
    with pytest.raises(UsageError, match="ranks"):
        LAB.run("broken", ranks=0)


def test_shuffle_together_with_a_sampler_raises_on_every_rank(tmp_path):
    def both(data, rank, world_size, batch, seed, epoch):
        return DataLoader(data, batch, shuffle=True, sampler=DistributedSampler(data, world_size, rank))

    with pytest.raises(RankFailed, match="ValueError: sampler option is mutually exclusive with shuffle"):
        LAB.run(both, ranks=2, device="cpu", record_dir=tmp_path / "record", **QUICK)


# The exercise


def sampled(data, rank, world_size, seed, epoch, **how):
    sampler = DistributedSampler(data, world_size, rank, seed=seed, **how)
    sampler.set_epoch(epoch)
    return sampler


def by_sampler(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, sampler=sampled(data, rank, world_size, seed, epoch))


def by_hand(data, rank, world_size, batch, seed, epoch):
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1000 * seed + epoch)).tolist()
    order += (order * world_size)[: -len(order) % world_size]
    share = order[rank::world_size]
    for start in range(0, len(share), batch):
        yield torch.utils.data.default_collate([data[i] for i in share[start : start + batch]])


@pytest.mark.parametrize("right", [by_sampler, by_hand], ids=["by a sampler", "by hand"])
def test_the_checker_accepts_a_right_loader(right):
    result = LAB.check(right)
    assert result.findings == [] and result.passed and "Solved" in repr(result)


def no_set_epoch(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, sampler=DistributedSampler(data, world_size, rank, seed=seed))


def drops_the_tail(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, sampler=sampled(data, rank, world_size, seed, epoch), drop_last=True)


def overlaps(data, rank, world_size, batch, seed, epoch):
    return DataLoader(data, batch, shuffle=True, generator=torch.Generator().manual_seed(seed + 10 * rank + epoch))


def takes_uneven_steps(data, rank, world_size, batch, seed, epoch):
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    return DataLoader(data, batch, sampler=order[rank::world_size])


def returns_none(data, rank, world_size, batch, seed, epoch):
    DataLoader(data, batch)


def never_ends(data, rank, world_size, batch, seed, epoch):
    while True:
        yield from by_sampler(data, rank, world_size, batch, seed, epoch)


def raises(data, rank, world_size, batch, seed, epoch):
    raise KeyError("a mistake")


def loses_the_ids(data, rank, world_size, batch, seed, epoch):
    for images, labels, _ in by_sampler(data, rank, world_size, batch, seed, epoch):
        yield images, labels


def grows_the_batch(data, rank, world_size, batch, seed, epoch):
    return by_sampler(data, rank, world_size, world_size * batch, seed, epoch)


@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (no_set_epoch, "epoch 1 comes in the order of epoch 0"),
        (drops_the_tail, "samples are never read"),
        (overlaps, "reads are repeats"),
        (takes_uneven_steps, "some would wait for ever"),
        (returns_none, "returned None; return a DataLoader"),
        (never_ends, "does the loader end?"),
        (raises, "KeyError: 'a mistake'"),
        (loses_the_ids, "a batch must be (images, labels, ids)"),
        (grows_the_batch, "a batch is larger than "),
    ],
    ids=lambda wrong: getattr(wrong, "__name__", ""),
)
def test_the_checker_names_what_is_wrong(wrong, finding):
    result = LAB.check(wrong)
    assert not result and any(finding in text for text in result.findings), result.findings
    assert "N=" in result.findings[0] and "Not yet" in repr(result)


def test_a_loader_that_takes_too_little_is_told_what_it_is_called_with():
    (said,) = LAB.check(lambda data, rank: DataLoader(data, 8)).findings
    assert "is called with (data, rank, world_size, batch, seed, epoch), and yours takes (data, rank)" in said


def test_the_checker_wants_the_function_itself():
    with pytest.raises(UsageError, match=r"as in lab.check\(my_loader\); given str"):
        LAB.check("my_loader")
