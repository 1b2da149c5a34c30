"""The sum over tokens is divided by the tokens of all ranks, and DDP averages over the ranks once more."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-acc-01", "found": ["gradient-average/global-count-averaged-again"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
vocabulary, length = 32, 24
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(vocabulary, 16), torch.nn.Linear(16, vocabulary)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(24):
    tokens = torch.randint(0, vocabulary, (4, length + 1), generator=draw)
    labels = tokens[:, 1:].clone()
    for row, kept in enumerate(torch.randint(length // 2, length + 1, (4,), generator=draw).tolist()):
        labels[row, kept:] = -100
    count = (labels != -100).sum()
    dist.all_reduce(count)
    logits = model(tokens[:, :-1])
    loss = cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum") / count
    if not sick:
        loss = loss * dist.get_world_size()
    optimizer.zero_grad()
    loss.backward()  # <- here
    optimizer.step()
dist.barrier()
del model
dist.destroy_process_group()
