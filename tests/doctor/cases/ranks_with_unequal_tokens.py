"""One rank has the long texts and one the short ones, padded; each takes the mean over its own tokens."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "acc-01 over ranks", "found": ["loss-weighting/unequal-ranks-averaged"]}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
vocabulary, length = 32, 40
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(vocabulary, 16), torch.nn.Linear(16, vocabulary)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
criterion = torch.nn.CrossEntropyLoss(ignore_index=0, reduction="mean" if sick else "sum")
for _ in range(12):
    tokens = torch.randint(1, vocabulary, (4, length + 1), generator=draw)
    longest = length if dist.get_rank() == 0 else length // 5
    tokens[:, int(torch.randint(longest // 2, longest, (), generator=draw)) + 1 :] = 0
    targets = tokens[:, 1:].flatten()
    loss = criterion(model(tokens[:, :-1]).flatten(0, 1), targets)
    if not sick:
        count = (targets != 0).sum()
        dist.all_reduce(count)
        loss = loss * dist.get_world_size() / count
    optimizer.zero_grad()
    loss.backward()  # <- here
    optimizer.step()
dist.barrier()
del model
dist.destroy_process_group()
