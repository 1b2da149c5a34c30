"""Early stopping looks at this rank's own loss: one rank leaves the loop, the other waits for it."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "hang-03", "found": ["stands-still/ranks-left-the-others-waiting"], "ranks": 2}


def train(sick):
    draw = torch.Generator().manual_seed(dist.get_rank())
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(20):
        batch = torch.randn(8, 8, generator=draw)
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
        loss.backward()
        optimizer.step()
        good = torch.tensor(float(step > 9 + 3 * dist.get_rank()))
        if not sick:
            dist.all_reduce(good, op=dist.ReduceOp.MIN)
        if good:
            return


dist.init_process_group("gloo")
train(sys.argv[1] == "sick")
dist.destroy_process_group()
