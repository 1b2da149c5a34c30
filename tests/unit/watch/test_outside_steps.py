"""Which batches a step used: also where a wrapper reads ahead, or the script only looks at a batch."""

from __future__ import annotations

import pytest
import torch

from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.watch.outside.steps import Pass, Steps


@pytest.fixture
def steps(tmp_path):
    probe = Probe(tmp_path / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1)
    probe.hold()
    return Steps(probe)


def batch(number):
    return torch.full((2, 3), float(number)), torch.full((2,), number)


def read(steps, of, number):
    data = batch(number)
    steps.fetched(of, data, [2 * number, 2 * number + 1], 0, 1)
    return data


def used(steps, given):
    steps.forward(2, True, (given, {}))
    steps.backward(3, 4, 0.5)
    steps.stepped(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]), 5, 6)


def written(steps):
    steps.close()
    steps.probe.close()
    return read_rank(steps.probe.path)


def epochs(steps, copied):
    """Two epochs of four batches, each read one ahead as wrappers do that must know which batch is the last."""
    for number in range(2):
        of = Pass(0, number, 8)
        ahead = read(steps, of, 0)
        for place in range(1, 5):
            now = ahead
            if place < 4:
                ahead = read(steps, of, place)
            else:
                steps.pass_ended(of)
            used(steps, (now[0].clone() if copied else now[0],))


def test_batches_that_are_read_ahead_belong_to_the_steps_that_use_them(steps):
    epochs(steps, copied=False)
    log = written(steps)
    assert [list(step.ids["train"]) for step in log.steps] == [[2 * at, 2 * at + 1] for at in (0, 1, 2, 3)] * 2
    assert [step.epoch for step in log.steps] == [0] * 4 + [1] * 4
    assert [event.fields["epoch"] for event in log.events if event.name == "epoch_end"] == [0, 1]


def test_on_another_device_they_are_known_by_how_far_ahead_they_are_read(steps):
    epochs(steps, copied=True)
    log = written(steps)
    # what is read before the first pass of the first epoch cannot be told apart yet
    assert [list(step.ids.get("train", [])) for step in log.steps][4:] == [[2 * at, 2 * at + 1] for at in (0, 1, 2, 3)]
    assert sorted(i for step in log.steps[:4] for i in step.ids.get("train", [])) == list(range(8))
    assert not steps.pending and [step.epoch for step in log.steps] == [0] * 4 + [1] * 4


def test_a_new_epoch_begins_with_its_first_batch_and_not_when_the_last_one_is_over(steps):
    of = Pass(0, 0, 4)
    first, last = read(steps, of, 0), None
    last = read(steps, of, 1)
    used(steps, (first[0],))
    steps.pass_ended(of)
    assert not steps.new_epoch
    used(steps, (last[0],))
    read(steps, Pass(0, 1, 4), 0)
    assert steps.new_epoch


def test_a_batch_that_is_only_looked_at_is_not_trained_on(steps):
    read(steps, Pass(0, 0, 8, dropped=lambda: True), 3)
    for place in range(2):
        of = Pass(0, 1, 8)
        used(steps, (read(steps, of, place)[0],))
    assert [list(step.ids["train"]) for step in written(steps).steps] == [[0, 1], [2, 3]]


def test_a_batch_whose_iterator_is_gone_may_be_all_that_is_trained_on(steps):
    data = read(steps, Pass(0, 0, 8, dropped=lambda: True), 3)
    used(steps, (data[0],))
    assert [list(step.ids["train"]) for step in written(steps).steps] == [[6, 7]]


def test_two_loaders_a_step_are_both_used(steps):
    one, other = Pass(0, 0, 8), Pass(1, 0, 8)
    for place in range(2):
        read(steps, one, place), used(steps, (read(steps, other, 2 + place)[0],))
    assert [sorted(step.ids["train"]) for step in written(steps).steps] == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_the_score_on_the_training_data_is_no_validation_whichever_loader_reads_them(steps):
    def evaluated(of):
        steps.forward(2, False, ((read(steps, of, 0)[0],), {}))
        steps.pass_ended(of)

    train = Pass(0, 0, 2, all_of=5)
    used(steps, (read(steps, train, 0)[0],))
    evaluated(Pass(1, 0, 2, all_of=5))
    evaluated(Pass(2, 0, 2, all_of=6))
    assert len(written(steps).seen) == 1  # of the other data set
