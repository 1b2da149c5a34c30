"""Data parallel by hand: weights sent once, gradients summed in one flat tensor, the loss reduced to be printed."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

RANKS = 3


def flat(tensors):
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
for tensor in model.state_dict().values():
    dist.broadcast(tensor, src=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _epoch in range(2):
    for _ in range(8):
        batch = torch.randn(8, 8)
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
        loss.backward()
        whole = flat([parameter.grad for parameter in model.parameters()])
        dist.all_reduce(whole)
        sizes = [parameter.numel() for parameter in model.parameters()]
        for parameter, part in zip(model.parameters(), whole.split(sizes), strict=True):
            parameter.grad.copy_(part.view_as(parameter) / world)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    dist.barrier()
dist.destroy_process_group()
