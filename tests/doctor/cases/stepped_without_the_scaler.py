"""The loss is scaled, and the optimizer is stepped without its scaler."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "scaler.step missing", "found": ["mixed-precision-setup/stepped-without-the-scaler"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    scaler.scale(loss).backward()
    if sick:
        optimizer.step()  # <- here
    else:
        scaler.step(optimizer)
        scaler.update()
