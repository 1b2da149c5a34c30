"""The backward pass runs within autocast."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "autocast backward", "found": ["mixed-precision-setup/backward-in-autocast"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
        if sick:
            loss.backward()  # <- here
    if not sick:
        loss.backward()
    optimizer.step()
