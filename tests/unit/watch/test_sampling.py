"""A script that is looked at in bursts: nothing of what each step must tell is lost, and what begins late is seen."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from labkit.record.columns import NOT_HASHED
from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.watch.outside import sampling
from labkit.watch.outside.attach import Attached
from labkit.watch.outside.evaluations import KEPT, Trail
from labkit.watch.outside.patches import Patches
from labkit.watch.outside.sampling import FIRST, TURN, Sampling, is_due, next_due

FEW = 4
"""Updates before there are bursts, in these tests."""

SIZE, BATCH = 16, 4


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Gives a function that runs another one under the watchers, with bursts from early on, and reads the record."""
    monkeypatch.setattr(sampling, "FIRST", FEW)
    monkeypatch.setattr(sampling, "SPACINGS", ((10**6, 32),))

    def run(script):
        attached = Attached(Probe(tmp_path / "rank-00000.jsonl", rank=0, local_rank=0, world_size=1))
        try:
            script()
        finally:
            attached.close(finished=True)
        assert not attached.patches.faults
        return read_rank(tmp_path / "rank-00000.jsonl")

    return run


class Training:
    """A small training over a loader, in parts."""

    def __init__(self):
        torch.manual_seed(0)
        self.data = TensorDataset(torch.randn(SIZE, 3), torch.randn(SIZE, 1))
        self.loader = DataLoader(self.data, batch_size=BATCH, shuffle=True)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, 0.99)
        self.losses = []

    def epochs(self, count, *, every=1, clear=True):
        for _ in range(count):
            for at, (samples, targets) in enumerate(self.loader, 1):
                loss = nn.functional.mse_loss(self.model(samples), targets)
                loss.backward()
                self.losses.append(loss.item())
                if at % every:
                    continue
                self.optimizer.step()
                self.schedule.step()
                if clear:
                    self.optimizer.zero_grad()


def followed(log):
    return [step for step in log.steps if step.counts.get("between_bursts")]


def closely(log):
    return [step for step in log.steps if not step.counts.get("between_bursts")]


def total(steps, name):
    return sum(step.counts.get(name, 0) for step in steps)


def test_bursts_begin_with_the_first_updates_and_come_again_and_again():
    assert all(map(is_due, range(1, FIRST + 1)))
    due = [update for update in range(1, 20_001) if is_due(update)]
    assert len(due) < 0.03 * 20_000
    assert all(is_due(start + more) for start in (512, 4096, 10_240) for more in range(TURN))
    assert max(later - one for one, later in itertools.pairwise(due)) <= 256
    assert [next_due(FIRST), next_due(1000), next_due(1024)] == [FIRST + 1, 1024, 1025]
    assert all(next_due(one) == next(later for later in due if later > one) for one in range(5000))


def test_each_step_tells_what_was_read_and_with_which_rate(watch):
    training = Training()
    log = watch(lambda: training.epochs(10))
    assert [step.step for step in log.steps] == list(range(40))
    assert [step.scalar("loss_local") for step in log.steps] == training.losses
    assert [step.scalar("lr_used") for step in log.steps] == pytest.approx([0.1 * 0.99**at for at in range(40)])
    assert len(followed(log)) > 12
    for epoch in range(10):
        read = [one for step in log.steps if step.epoch == epoch for one in step.ids["train"]]
        assert sorted(read) == list(range(SIZE))
    assert all(len(step.digests["train"]) == BATCH for step in log.steps)
    assert NOT_HASHED in followed(log)[-1].digests["train"]
    assert NOT_HASHED not in log.steps[0].digests["train"]
    assert total(log.steps, "updates") == total(log.steps, "backward_calls") == 40


class Stream(IterableDataset):
    """Samples that no index names."""

    def __iter__(self):
        return iter([(torch.full((3,), float(at)), torch.zeros(1)) for at in range(SIZE)])


def test_samples_without_an_index_are_hashed_in_each_step(watch):
    training = Training()
    training.loader = DataLoader(Stream(), batch_size=BATCH)
    log = watch(lambda: training.epochs(10))
    assert followed(log)
    for epoch in range(10):
        read = [one for step in log.steps if step.epoch == epoch for one in step.digests["train"]]
        assert len(read) == len(set(read)) == SIZE
    assert not any(step.ids.get("train") for step in log.steps)


def test_training_is_the_same_to_the_bit(watch):
    training, alone = Training(), Training()
    torch.manual_seed(1)
    watch(lambda: training.epochs(6))
    state = torch.get_rng_state()
    torch.manual_seed(1)
    alone.epochs(6)
    assert training.losses == alone.losses
    assert torch.equal(state, torch.get_rng_state())


def test_all_is_put_back(watch):
    before = [nn.Module.__call__, nn.Module.train, torch.Tensor.backward, torch.autograd.backward, nn.utils.clip_grad_norm_]
    watch(lambda: Training().epochs(6))
    assert before == [
        nn.Module.__call__,
        nn.Module.train,
        torch.Tensor.backward,
        torch.autograd.backward,
        nn.utils.clip_grad_norm_,
    ]


def test_gradients_that_are_cleared_no_more_from_a_later_epoch_on_are_seen(watch):
    training = Training()

    def script():
        training.epochs(10)
        training.epochs(10, clear=False)

    log = watch(script)
    assert followed(log)
    late = [step for step in closely(log) if step.step >= 41 and step.counts.get("backward_calls")]
    assert late
    assert total(late, "backward_onto_used") == len(late)
    assert total([step for step in closely(log) if step.step < 40], "backward_onto_used") == 0


def test_micro_batches_that_are_left_of_an_epoch_are_all_counted(watch):
    training = Training()
    training.loader = DataLoader(training.data, batch_size=2, shuffle=True)
    log = watch(lambda: training.epochs(12, every=3))
    assert followed(log)
    assert total(log.steps, "backward_calls") == 12 * 8
    assert total(log.steps, "updates") == 12 * 2
    assert total(log.steps, "backward_onto_last_epoch") == 11


def test_an_evaluation_begins_a_burst(watch):
    training = Training()
    held_out = DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), batch_size=4)

    def script():
        training.epochs(4)
        with torch.no_grad():
            for samples, _ in held_out:  # in training mode
                training.model(samples)
        training.epochs(4)

    log = watch(script)
    assert followed(log)
    over = [event.fields for event in log.events if event.name == "evaluated_over"]
    assert [(fields["batches"], fields["in_train_mode"]) for fields in over] == [(2, 2)]
    assert [event.fields["rows"] for event in log.events if event.name == "evaluation_pass"] == [8]


def test_a_model_that_stays_in_evaluation_mode_is_seen(watch):
    training = Training()

    def script():
        training.epochs(4)
        training.model.eval()
        training.epochs(8)

    log = watch(script)
    late = [step for step in closely(log) if step.step >= 16]
    assert late
    assert total(late, "updates_in_eval_mode") == total(late, "updates")


class Indices:
    """A sampler whose indices a test may change."""

    def __init__(self):
        self.given: list[object] = list(range(SIZE))

    def __iter__(self):
        return iter(self.given)

    def __len__(self):
        return len(self.given)


def test_samples_that_are_repeated_from_a_later_epoch_on_are_noted(watch):
    training, indices = Training(), Indices()
    training.loader = DataLoader(training.data, batch_size=BATCH, sampler=indices)

    def script():
        training.epochs(5)
        indices.given = [3] * SIZE
        training.epochs(3)

    log = watch(script)
    late = [step for step in followed(log) if step.epoch >= 5]
    assert len(late) > 4
    assert all(step.ids["train"] == [3] * BATCH for step in late)


def test_indices_that_are_no_whole_numbers_from_a_later_batch_on_are_no_ids(watch):
    training, indices = Training(), Indices()
    training.loader = DataLoader(training.data, batch_size=BATCH, sampler=indices)

    def script():
        training.epochs(6)
        indices.given = [*range(8), *(torch.tensor(at) for at in range(8, SIZE))]
        training.epochs(2)

    log = watch(script)
    read = [one for step in log.steps if step.epoch == 7 for one in step.ids["train"]]
    assert read == list(range(SIZE))
    assert all(type(one) is int for one in read)


def test_micro_batches_from_a_later_epoch_on_are_counted(watch):
    training = Training()

    def script():
        training.epochs(5)
        training.epochs(5, every=2)

    log = watch(script)
    late = [step for step in followed(log) if step.epoch > 5]
    assert len(late) > 2
    assert {step.counts["backward_calls"] for step in late} == {2}
    assert {len(step.ids["train"]) for step in late} == {2 * BATCH}


def test_a_schedule_that_is_stepped_twice_from_a_later_epoch_on_is_seen(watch):
    def script():
        training = Training()
        training.epochs(6)
        training.schedule.step()
        training.epochs(2)
        step = training.optimizer.step
        training.optimizer.step = lambda: (step(), training.schedule.step())  # pyright: ignore[reportAttributeAccessIssue]
        training.epochs(3)

    log = watch(script)
    calls = [step.scalar("scheduler_steps") for step in followed(log) if step.epoch > 7]
    assert len(calls) > 4
    assert all(later - one == 2 for one, later in itertools.pairwise(calls))
    (end,) = (event.fields for event in log.events if event.name == "scheduler_end")
    assert end["calls"] == 8 * 4 + 1 + 3 * 4 * 2


def test_numbers_of_an_evaluation_that_comes_late_are_seen(watch):
    training = Training()
    held_out = DataLoader(TensorDataset(torch.randn(10, 3), torch.randn(10, 1)), batch_size=4)
    untouched = []

    def script():
        training.epochs(6)
        untouched.append("item" not in vars(torch.Tensor))
        taken = []
        with torch.no_grad():
            for samples, targets in held_out:
                taken.append(nn.functional.mse_loss(training.model.eval()(samples), targets).item())
        mean = sum(taken) / len(taken)
        training.model.train()
        training.epochs(1)
        untouched.append("item" not in vars(torch.Tensor) and mean > 0)

    log = watch(script)
    assert untouched == [True, True]
    (told,) = (event.fields for event in log.events if event.name == "batch_means")
    assert (told["batches"], told["fewest"], told["most"]) == (3, 2, 4)


def test_weights_that_a_late_evaluation_leaves_changed_are_seen(watch):
    training = Training()
    held_out = DataLoader(TensorDataset(torch.randn(8, 3), torch.randn(8, 1)), batch_size=4)

    def script():
        training.epochs(6)
        with torch.no_grad():
            for parameter in training.model.parameters():
                parameter.mul_(0.5)  # an average's, as it were, which are not taken out again
            for samples, _ in held_out:
                training.model(samples)
        training.epochs(2)

    log = watch(script)
    (told,) = (event.fields for event in log.events if event.name == "evaluation")
    assert told["stayed"] and not told["back"]
    assert told["changed"] == 1.0


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_trail_keeps_the_last_values(kind):
    trail = Trail()
    weights = torch.zeros(2, 3, dtype=kind)
    for at in range(KEPT + 5):
        weights.fill_(at % 256)
        trail.add(weights.numpy() if kind is torch.float32 else weights)
    kept = [values[0] for values in trail.values()]
    assert kept == [at % 256 for at in range(5, KEPT + 5)]
    trail.clear()
    assert trail.values() == []


def test_weights_that_are_cast_between_two_evaluations_are_followed(watch):
    training = Training()

    def script():
        training.epochs(3)
        training.model.to(torch.bfloat16)
        training.data.tensors = tuple(tensor.to(torch.bfloat16) for tensor in training.data.tensors)
        training.epochs(3)
        with torch.no_grad():
            training.model(training.data.tensors[0])
        training.epochs(1)

    (told,) = (event.fields for event in watch(script).events if event.name == "evaluation")
    assert told["stayed"] and told["changed"] == 0.0


def test_a_loader_that_is_read_already_as_the_watch_begins_is_left_alone(watch):
    training = Training()
    reading = iter(training.loader)
    first = next(reading)
    read = [first]
    watch(lambda: read.extend(reading))
    assert len(read) == SIZE // BATCH


def test_what_is_wrapped_at_times_is_put_back_at_any_time():
    class Parent:
        def call(self):
            return "plain"

    class Child(Parent):
        pass

    for ends_on in (True, False):
        patches = Patches()
        switch = patches.wrap_at_times(Child, "call", lambda original: lambda one: f"watched {original(one)}")
        assert Child().call() == "plain"
        switch(True)
        switch(True)
        assert Child().call() == "watched plain"
        switch(ends_on)
        patches.undo()
        assert Child().call() == "plain"
        assert "call" not in vars(Child)


def test_what_a_script_replaced_too_is_not_put_back():
    class Owner:
        call = "burst"

    bursts = Sampling()
    bursts.only_in_bursts(Owner, "call", "between")
    Owner.call = "the script's"
    bursts.end()
    assert bursts.in_burst
    assert Owner.call == "the script's"
    Owner.call = "burst"
    bursts.end()
    assert Owner.call == "between"
    bursts.begin()
    assert Owner.call == "burst"
