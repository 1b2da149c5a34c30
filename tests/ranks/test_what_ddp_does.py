"""What lessons say of DistributedDataParallel and of torch's agent, seen on torch itself."""

from __future__ import annotations

import uuid

import pytest
import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel

from labkit.labs.overlap import Config
from labkit.labs.overlap.workload import build_model
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks


def statistics_after_a_forward_pass(context):
    """BatchNorm's running mean of each rank, made to differ on the ranks before the pass: with buffers sent, without."""
    found = []
    for sent in (True, False):
        norm = nn.BatchNorm1d(2, momentum=0.0)  # the batch itself changes nothing
        wrapped = DistributedDataParallel(norm, broadcast_buffers=sent)
        mean = dict(norm.named_buffers())["running_mean"]
        mean.fill_(float(context.rank))
        wrapped(torch.ones(4, 2) + context.rank)
        found.append(mean.tolist())
    return found


def test_a_forward_pass_sends_buffers_where_a_module_has_some(tmp_path):
    first, second = launch(statistics_after_a_forward_pass, None, ranks=2, folder=tmp_path).values
    assert first == [[0.0, 0.0], [0.0, 0.0]]
    assert second == [[0.0, 0.0], [1.0, 1.0]], "with broadcast_buffers rank 1 has rank 0's"


def test_the_model_of_the_overlap_lab_has_no_buffers_to_send():
    assert list(build_model(Config(layers=2, width=8), seed=0).buffers()) == []


def weights_of_ranks_seeded_apart(context):
    torch.manual_seed(context.rank)
    model = nn.Linear(3, 3)
    before = model.weight.detach().clone()
    DistributedDataParallel(model)
    return before.tolist(), model.weight.detach().tolist()


def test_at_the_start_all_ranks_get_the_first_ranks_weights(tmp_path):
    (own, first), (other, second) = launch(weights_of_ranks_seeded_apart, None, ranks=2, folder=tmp_path).values
    assert own != other
    assert first == second == own


def gradients_by_hooks_of_torch(context):
    """What each hook makes of gradients of 1e5, 1 and 1e-9: an error's name where DDP refuses the hook."""
    found = []
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook):
        model = nn.Linear(3, 1, bias=False)
        wrapped = DistributedDataParallel(model)
        try:
            wrapped.register_comm_hook(None, hook)
        except TypeError as error:
            found.append(type(error).__name__)
        else:
            wrapped(torch.tensor([[1e5, 1.0, 1e-9]])).sum().backward()
            assert model.weight.grad is not None
            found.append(model.weight.grad.flatten().tolist())
    return found


def test_the_fp16_hook_loses_what_fp16_cannot_hold_and_the_bf16_hook_is_refused_on_gloo(tmp_path):
    for whole, half, refused in launch(gradients_by_hooks_of_torch, None, ranks=2, folder=tmp_path).values:
        assert whole == pytest.approx([1e5, 1.0, 1e-9])
        assert half == [float("inf"), 1.0, 0.0]
        assert refused == "TypeError"


def ports_of_two_attempts(backend: str, **config) -> list[int]:
    """Ports at which ranks would meet in an agent's first attempt and in its second."""
    from torch.distributed.elastic.rendezvous import RendezvousParameters
    from torch.distributed.elastic.rendezvous import registry as rendezvous

    asked = RendezvousParameters(backend, "127.0.0.1:0", uuid.uuid4().hex, 1, 1, local_addr="127.0.0.1", **config)
    handler = rendezvous.get_rendezvous_handler(asked)
    try:
        rounds = [handler.next_rendezvous().bootstrap_store_info for _ in range(2)]
        return [one.master_port for one in rounds if one is not None]
    finally:
        handler.shutdown()


@pytest.mark.parametrize(("disabled", "stores"), [("0", 1), ("1", 2)])
def test_the_agents_store_outlives_an_attempt_unless_it_is_told_not_to(monkeypatch, disabled, stores):
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", disabled)
    ports = ports_of_two_attempts("c10d")
    assert (len(ports), len(set(ports))) == (2, stores)


def test_the_static_rendezvous_shares_its_store_whatever_the_variable_says(monkeypatch):
    from torch.distributed.elastic.rendezvous.static_tcp_rendezvous import StaticTCPRendezvous

    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    assert StaticTCPRendezvous("127.0.0.1", 0, 0, 1, "id", 1).use_agent_store
