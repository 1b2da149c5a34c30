"""Gradients are clipped while they still carry the scale."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "amp-01", "found": ["clip-before-unscale/clipped-before-unscale-was-called"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = cross_entropy(model(batch), (batch.sum(1) > 0).long())
    scaler.scale(loss).backward()
    if not sick:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
    scaler.step(optimizer)
    scaler.update()
