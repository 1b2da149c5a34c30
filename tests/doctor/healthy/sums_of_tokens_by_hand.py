"""Gradients of token sums are added up over ranks and micro-batches, then divided once by the tokens of all: no wrapper."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
vocabulary, K = 32, 3
model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, 16), torch.nn.Linear(16, vocabulary))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    count = torch.zeros(())
    optimizer.zero_grad()
    for _ in range(K):
        length = int(torch.randint(4, 40, (), generator=draw))
        tokens = torch.randint(0, vocabulary, (2, length + 1), generator=draw)
        logits = model(tokens[:, :-1])
        cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum").backward()
        count += 2 * length
    dist.all_reduce(count)
    works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
    for parameter, work in zip(model.parameters(), works, strict=True):
        work.wait()
        parameter.grad /= count
    norm = torch.sqrt(sum(parameter.grad.square().sum() for parameter in model.parameters()))
    if norm > 0.5:
        for parameter in model.parameters():
            parameter.grad *= 0.5 / norm
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
