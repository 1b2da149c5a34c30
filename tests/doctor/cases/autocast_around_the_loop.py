"""One autocast block around the whole loop: its casts of the weights are kept, and grow old."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "amp-07", "found": ["mixed-precision-setup/autocast-stays-open"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step():
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    loss.backward()
    optimizer.step()  # <- here


if sick:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for _ in range(12):
            step()
else:
    for _ in range(12):
        step()
