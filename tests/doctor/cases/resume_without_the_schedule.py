"""The optimizer is restored, its schedule begins anew and raises the learning rate again."""

import io
import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-lr-02", "found": ["resume-is-whole/schedule-not-given"], "ranks": 1}

sick = sys.argv[1] == "sick"


def made():
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)


def train(model, optimizer, schedule, steps):
    for _ in range(steps):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
        schedule.step()


torch.manual_seed(0)
parts = made()
train(*parts, 20)
file = io.BytesIO()
names = ("model", "optimizer", "schedule")
torch.save({name: part.state_dict() for name, part in zip(names, parts, strict=True)}, file)
file.seek(0)

parts = made()
saved = torch.load(file)  # <- here
for name, part in zip(names, parts, strict=True):
    if not sick or name != "schedule":
        part.load_state_dict(saved[name])
train(*parts, 15)
