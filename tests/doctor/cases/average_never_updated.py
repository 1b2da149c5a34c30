"""An AveragedModel is made and evaluated, and nobody updates it."""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

CASE = {"shows": "t2-ema-02", "found": ["averaged-weights/average-never-updated"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(64, 8)
labels = (inputs.sum(1) > 0).long()
model = torch.nn.Linear(8, 2)
averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(48):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if not sick:
        averaged.update_parameters(model)
    if step % 8 == 7:
        with torch.no_grad():
            cross_entropy(averaged(inputs), labels)
