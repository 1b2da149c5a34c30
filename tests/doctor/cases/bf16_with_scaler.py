"""A gradient scaler with bf16, which needs none."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "amp-03", "found": ["mixed-precision-setup/bf16-with-a-scaler"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=sick)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    scaler.scale(loss).backward()  # <- here
    scaler.step(optimizer)
    scaler.update()
