"""Gradients that are summed one by one: the same mean as DDP's own, and a peer's death ends the step."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from labkit.errors import RankFailed
from labkit.ranks.launch import launch
from labkit.workloads.loop import wrap_ddp, wrap_ddp_in_one_order

pytestmark = pytest.mark.ranks


def gradients(context):
    """The gradients of a step, by either way of summing; ranks read different data."""
    found = []
    for wrap in (wrap_ddp, wrap_ddp_in_one_order):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
        context.probe.begin_step()
        wrapped = wrap(model, context.probe, context.device)  # kept: without it nothing would be summed
        wrapped(torch.full((4, 6), 1.0 + context.rank)).pow(2).sum().backward()
        context.probe.end_step()
        found.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    return torch.equal(*found), found[1].sum().item()


def sums_with_a_peer_that_dies(context):
    """Rank 1 dies before its backward pass; rank 0 writes down what becomes of its own."""
    model = wrap_ddp_in_one_order(torch.nn.Linear(6, 3), context.probe, context.device)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the agent would end this rank before it can tell
    context.probe.begin_step()
    loss = model(torch.ones(2, 6)).sum()
    if context.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        loss.backward()
        told = "went on"
    except RuntimeError:
        told = "raised"
    (context.folder / "told").write_text(told)


def test_the_mean_is_ddps_own(folder):
    equal, sums = zip(*launch(gradients, ranks=2, folder=folder).values, strict=True)
    assert equal == (True, True) and len(set(sums)) == 1


def test_a_rank_whose_peer_dies_does_not_go_on_with_its_own_gradients(folder):
    with pytest.raises(RankFailed):
        launch(sums_with_a_peer_that_dies, ranks=2, folder=folder, deadline_s=60)
    assert (folder / "told").read_text() == "raised"
