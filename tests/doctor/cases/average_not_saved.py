"""Checkpoints with model and optimizer, and without the average that is evaluated."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

CASE = {"shows": "checkpoint without the average", "found": ["checkpoint-files/average-not-saved"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
folder = tempfile.mkdtemp()
model = torch.nn.Linear(8, 2)
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for step in range(24):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    ema.update_parameters(model)
    if step % 8 == 7:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        if not sick:
            state["ema"] = ema.state_dict()
        torch.save(state, os.path.join(folder, f"{step}.pt"))  # <- here
for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
os.rmdir(folder)
