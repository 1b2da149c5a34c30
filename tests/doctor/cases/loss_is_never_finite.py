"""A constant makes each loss infinite: the scaler skips every step, and the scale sinks without end."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {
    "shows": "amp-05",
    "found": ["skipped-steps/not-finite-at-any-scale"],
    "may": ["non-finite/loss-not-finite"],
    "ranks": 1,
}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
weights = torch.tensor([1.0, float("inf") if sick else 1.0])
for _ in range(40):
    batch = torch.randn(16, 8)
    labels = (batch.sum(1) > 0).long()
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        scores = model(batch)
    loss = (cross_entropy(scores.float(), labels, reduction="none") * weights[labels]).mean()
    scaler.scale(loss).backward()  # <- here
    scaler.step(optimizer)
    scaler.update()
