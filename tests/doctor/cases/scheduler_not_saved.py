"""A checkpoint with the optimizer and without its scheduler."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "ck-03", "found": ["checkpoint-files/scheduler-not-saved"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for _ in range(12):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    schedule.step()
state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
if not sick:
    state["schedule"] = schedule.state_dict()
with tempfile.TemporaryDirectory() as folder:
    torch.save(state, os.path.join(folder, "last.pt"))  # <- here
