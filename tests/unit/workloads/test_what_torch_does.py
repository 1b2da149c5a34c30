"""What lessons say of torch itself: the loader's defaults, and when a schedule that is left out is missed."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset


def test_a_loader_has_no_workers_and_each_worker_fetches_two_batches_ahead_by_default():
    data = TensorDataset(torch.zeros(1))
    assert DataLoader(data).num_workers == 0
    assert DataLoader(data, num_workers=1).prefetch_factor == 2


def losses(rate_of_step, *, resume_at=None, steps=12):
    """Losses of a descent on x²; from `resume_at` on weights and optimizer are restored, the scheduler begins anew."""
    weight = torch.nn.Parameter(torch.tensor(1.0))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scheduler, found = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_of_step), []
    for step in range(steps):
        if step == resume_at:
            kept = optimizer.state_dict()
            optimizer = torch.optim.SGD([weight], lr=0.1)
            scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate_of_step)
            optimizer.load_state_dict(kept)
        loss = weight.square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("resume_at", [3, 4, 7])
@pytest.mark.parametrize("rate", [lambda step: (step + 1) / 20, lambda step: 1 / (1 + step)], ids=["warm-up", "decay"])
def test_a_schedule_that_moves_at_each_step_is_missed_two_steps_after_the_resume(rate, resume_at):
    whole, resumed = losses(rate), losses(rate, resume_at=resume_at)
    assert next(step for step in range(12) if whole[step] != resumed[step]) == resume_at + 2
