"""What comes to an optimizer, what it changes and what a scaler does is recorded from outside, and changes nothing."""

import pytest
import torch
from torch import nn

from labkit.record import store
from labkit.record.probe import Probe
from labkit.watch import watch_optimizer, watch_precision, watch_scaler, watch_updates
from labkit.watch.ddp import watch_ddp
from labkit.watch.optimizer import tell_known_parameters


@pytest.fixture
def folder(tmp_path):
    return tmp_path


def record_of(folder, program):
    with Probe(folder / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        program(probe)
    return store.read_run(folder, "variant", 1.0, 1)


def one_weight(value, gradient, dtype=torch.float32):
    weight = nn.Parameter(torch.tensor(value, dtype=dtype))
    weight.grad = torch.tensor(gradient, dtype=dtype)
    return weight, torch.optim.SGD([weight], lr=1.0)


def test_zeros_overflows_and_lost_updates_are_counted_and_the_norm_is_of_what_the_optimizer_takes(folder):
    def program(probe):
        # 256 + 1 is no bfloat16: the nearest is 256 itself
        _, optimizer = one_weight([256.0, 256.0, 1.0, 1.0], [0.0, -1.0, -3.0, float("inf")], torch.bfloat16)
        watch = watch_optimizer(optimizer, probe)
        probe.begin_step()
        optimizer.step()
        probe.end_step()
        watch.close()

    run = record_of(folder, program)
    (step,) = run.ranks[0].steps
    assert step.counts == {
        "updates": 1,
        "gradient_elements": 4,
        "gradient_zeros": 1,
        "gradient_nonfinite": 1,
        "weights_unchanged": 2,
        "updates_lost": 1,
        "weights_nonfinite": 1,
    }
    assert step.scalars["grad_norm"] == "inf"
    assert run.arrays["gradient_exponents"].sum() == 2, "of the finite ones that are not 0: powers 0 and 1"
    (memory,) = run.ranks[0].events
    assert memory.name == "memory" and memory.fields["parameters"] == memory.fields["gradients"] == 8


def test_the_memory_that_is_kept_at_the_first_update_holds_the_optimizers_state_and_is_told_once(folder):
    def program(probe):
        model = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(model.parameters())
        watch = watch_optimizer(optimizer, probe)
        for _ in range(2):
            probe.begin_step()
            model(torch.ones(1, 3)).sum().backward()
            optimizer.step()
        probe.end_step()
        watch.close()

    (memory,) = record_of(folder, program).ranks[0].events
    weights = 4 * (3 * 2 + 2)
    assert memory.fields["parameters"] == memory.fields["gradients"] == weights
    assert memory.fields["optimizer_state"] == 2 * weights + 2 * 4, "two moments, and a counter for each tensor"


def test_a_step_counts_once_however_many_watches_see_it(folder):
    def program(probe):
        _, optimizer = one_weight([1.0], [1.0])
        with watch_updates(probe):
            watches = [watch_optimizer(optimizer, probe), watch_optimizer(optimizer, probe)]
            for _ in range(2):
                probe.begin_step()
                optimizer.step()
                optimizer.step()
            probe.end_step()
            for watch in watches:
                watch.close()

    assert [step.counts["updates"] for step in record_of(folder, program).ranks[0].steps] == [2, 2]


def test_a_scaler_that_leaves_a_step_out_is_asked_and_no_update_follows(folder):
    def program(probe):
        weight, optimizer = one_weight([1.0], [0.0])
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)  # pyright: ignore[reportPrivateImportUsage]
        watches = [watch_optimizer(optimizer, probe), watch_scaler(scaler, probe)]
        for factor in (1.0, float("inf")):
            probe.begin_step()
            optimizer.zero_grad()
            scaler.scale((weight * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
        probe.end_step()
        for watch in watches:
            watch.close()
        probe.begin_step()
        optimizer.zero_grad()
        scaler.scale(weight.sum()).backward()
        scaler.step(optimizer)

    taken, left_out, unwatched = record_of(folder, program).ranks[0].steps
    assert taken.counts["scaler_steps"] == taken.counts["updates"] == 1 and taken.scalars["scale"] == 4.0
    assert left_out.counts == {"scaler_steps": 1}
    assert not unwatched.counts and not unwatched.scalars


def trained(folder, *, watched: bool) -> torch.Tensor:
    """The weights after some steps under autocast, with dropout, so that a watch that drew numbers would show."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Probe(folder / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        watch = watch_precision(model, optimizer, probe, check_casts=True) if watched else None
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(7):
                probe.begin_step()
                optimizer.zero_grad()
                model(torch.ones(4, 6)).float().square().sum().backward()
                optimizer.step()
                probe.end_step()
        if watch is not None:
            watch.close()
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def test_a_watched_loop_trains_the_same_weights_and_one_whose_casts_are_kept_shows(folder):
    (folder / "plain").mkdir()
    assert torch.equal(trained(folder, watched=True), trained(folder / "plain", watched=False))
    steps = store.read_run(folder, "variant", 1.0, 1).ranks[0].steps
    assert [step.counts.get("forward_checks", 0) for step in steps] == [1, 1, 1, 1, 1, 0, 0]
    assert all(step.counts["forward_stale"] == step.counts["autocast_open_at_update"] == 1 for step in steps[:5])
    assert all(step.counts["forwards_bfloat16"] == 1 for step in steps), "the watch's own passes are none of the loop's"


def test_a_loop_that_opens_autocast_for_each_pass_has_no_stale_casts(folder):
    def program(probe):
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watch = watch_precision(model, optimizer, probe, check_casts=True)
        for _ in range(2):
            probe.begin_step()
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(torch.ones(1, 3)).sum()
            loss.backward()
            optimizer.step()
        probe.end_step()
        watch.close()

    steps = record_of(folder, program).ranks[0].steps
    assert all(step.counts["forward_checks"] == 1 and "forward_stale" not in step.counts for step in steps)


def test_parameters_that_an_optimizer_holds_and_the_model_does_not_have_are_orphans(folder):
    def program(probe):
        model, other = nn.Linear(3, 2), nn.Linear(3, 2)
        tell_known_parameters(model, torch.optim.SGD([model.weight, *other.parameters()], lr=0.1), probe)

    (event,) = record_of(folder, program).ranks[0].events
    assert event.fields == {"known": 1, "parameters": 2, "orphans": 2}


def test_what_the_face_names_is_there_and_other_names_are_refused_with_the_list():
    from labkit import watch

    assert watch.watch_ddp is watch_ddp
    assert all(getattr(watch, name) is not None for name in watch.__all__)
    with pytest.raises(AttributeError, match="watch_precision"):
        watch.no_such_name  # noqa: B018
