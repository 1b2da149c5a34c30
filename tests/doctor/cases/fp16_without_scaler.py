"""fp16 autocast without a scaler: small gradients become 0."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "amp fp16", "found": ["mixed-precision-setup/fp16-without-a-scaler"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=not sick)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):  # <- here
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
