"""Weights saved under DDP are loaded with strict=False: no name fits, and nothing is said."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "loaded state not matching", "found": ["resume-is-whole/nothing-was-loaded"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)


def train(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(8):
        batch = torch.randn(16, 8)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
train(model)
saved = {f"module.{name}": value.clone() for name, value in model.state_dict().items()}
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
if not sick:
    saved = {name.removeprefix("module."): value for name, value in saved.items()}
model.load_state_dict(saved, strict=False)  # <- here
train(model)
