"""The weights are cast to bf16 for the forward pass and back for the update: what small updates add is rounded away."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "casts in the loop", "found": ["mixed-precision-setup/weights-cast-in-the-loop"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    if sick:
        model.bfloat16()  # <- here
        loss = cross_entropy(model(batch.bfloat16()), (batch.sum(1) > 0).long())
    else:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    loss.backward()
    if sick:
        model.float()
    optimizer.step()
