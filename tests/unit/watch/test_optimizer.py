"""Updates of weights are counted from what optimizers do, not from what a program says."""

import pytest
import torch

from labkit.detect.utilisation.measures import trains_nothing
from labkit.record import store
from labkit.record.probe import Probe
from labkit.watch.optimizer import watch_updates


def watched(folder, make_step, steps=3):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with Probe(folder / "rank-00000.jsonl", rank=0, world_size=1) as probe, watch_updates(probe):
        for _ in range(steps):
            probe.begin_step()
            weight.sum().backward()
            make_step(optimizer)
    return store.read_run(folder, "variant", 1.0, 1)


def test_each_step_of_any_optimizer_counts(tmp_path):
    run = watched(tmp_path, lambda optimizer: optimizer.step())
    assert [step.counts["updates"] for step in run.ranks[0].steps] == [1, 1, 1]
    assert not trains_nothing(run)


def test_a_loop_that_computes_gradients_and_never_steps_trains_nothing(tmp_path):
    assert trains_nothing(watched(tmp_path, lambda optimizer: optimizer.zero_grad()))


def test_a_loop_of_no_steps_is_not_said_to_train_nothing(tmp_path):
    assert not trains_nothing(watched(tmp_path, lambda optimizer: None, steps=0))


def test_a_program_that_nobody_watched_is_not_said_to_train_nothing(tmp_path):
    with Probe(tmp_path / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        probe.begin_step()
    assert not trains_nothing(store.read_run(tmp_path, "variant", 1.0, 1))


def test_nothing_is_counted_when_the_watch_is_over(tmp_path):
    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with Probe(tmp_path / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        with pytest.raises(KeyError), watch_updates(probe):
            raise KeyError
        probe.begin_step()
        optimizer.step()
        assert probe.counted("updates") == 0
