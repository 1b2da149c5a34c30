"""What lessons and docstrings say of torch itself: loaders, a schedule that is left out, what its async_save leaves open."""

import threading
from pathlib import Path

import pytest
import torch
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import async_save
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


alone = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")


def saved(folder, value, writer=FileSystemWriter):
    """The future of one tensor's save in the background."""
    return async_save({"weights": torch.full((64,), value)}, storage_writer=writer(folder), no_dist=True)


def loaded(folder):
    state = {"weights": torch.empty(64)}
    load(state, checkpoint_id=folder, no_dist=True)
    return state["weights"]


@alone
def test_a_bit_that_flips_in_what_async_save_wrote_is_loaded_unseen(tmp_path):
    saved(tmp_path, 1.0).result()
    path = tmp_path / "__0_0.distcp"
    content = bytearray(path.read_bytes())
    content[content.index(torch.ones(4).numpy().tobytes()) + 2] ^= 64
    path.write_bytes(content)
    assert not torch.equal(loaded(tmp_path), torch.ones(64))


class Dies(FileSystemWriter):
    """Is ended when half of a file is written."""

    def write_data(self, plan, planner):
        path = Path(self.path) / "__0_0.distcp"
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        raise RuntimeError("ended")


@alone
@pytest.mark.filterwarnings("ignore:Detected an existing checkpoint")
def test_a_save_that_dies_spoils_an_older_one_of_the_same_name(tmp_path):
    saved(tmp_path, 1.0).result()
    assert torch.equal(loaded(tmp_path), torch.ones(64))
    with pytest.raises(CheckpointException, match="RuntimeError: ended"):
        saved(tmp_path, 2.0, Dies).result()
    with pytest.raises(CheckpointException, match="corrupted"):
        loaded(tmp_path)


@alone
def test_what_is_to_be_done_after_the_write_is_done_after_its_outcome_is_out_and_cannot_change_it(tmp_path):
    seen, outcome_is_out, ended = [], threading.Event(), threading.Event()

    def complete(_future):
        seen.append(outcome_is_out.wait(20))
        ended.set()
        raise RuntimeError("no room for the marker")

    future = saved(tmp_path, 1.0)
    future.add_done_callback(complete)
    future.result()
    outcome_is_out.set()
    assert ended.wait(20) and seen == [True]
    assert future.exception() is None
